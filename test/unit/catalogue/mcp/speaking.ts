import { compactJson, isJsonObject, type JsonObject, parseJson } from "../../../../src/api/json.ts";
import { type Answer, serving } from "../serving.ts";
import { objectIn } from "../world.ts";

/** What a client of 2026-07-28 says in each request. */
export const statelessMeta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
} as const;

export interface Said {
  readonly status: number;
  readonly headers: Answer["headers"];
  readonly text: string;
  readonly result: JsonObject;
  readonly error: { readonly code?: number; readonly message?: string; readonly data?: JsonObject };
}

const saidIn = ({ status, headers, text }: Answer): Said => {
  const body = headers["content-type"] === "application/json" ? parseJson(text) : {};
  const { result, error } = isJsonObject(body) ? body : {};
  return { status, headers, text, result: isJsonObject(result) ? result : {}, error: (isJsonObject(error) ? error : {}) as Said["error"] };
};

/** A catalogue, asked over MCP. */
export const speaking = async (...given: Parameters<typeof serving>) => {
  const served = await serving(...given);
  const say = async (message: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Said> =>
    saidIn(await served.post("/mcp", typeof message === "string" ? message : JSON.stringify(message), headers));
  const headersOf = (method: string, params: JsonObject): Record<string, string> => ({
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(typeof params.name === "string" && { "mcp-name": params.name }),
  });
  /** As a client of 2026-07-28 asks. */
  const askAlone = (method: string, params: JsonObject = {}, headers: Readonly<Record<string, string>> = {}): Promise<Said> =>
    say(compactJson({ jsonrpc: "2.0", id: 7, method, params: { _meta: statelessMeta, ...params } }), {
      ...headersOf(method, params),
      ...headers,
    });
  const initialize = async (protocolVersion = "2025-11-25"): Promise<Said> =>
    say({
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: { protocolVersion, capabilities: {}, clientInfo: { name: "t", version: "1" } },
    });
  /** As a client of an earlier revision asks. */
  const askInSession = (session: string, method: string, params: JsonObject = {}): Promise<Said> =>
    say(compactJson({ jsonrpc: "2.0", id: 7, method, params }), { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" });
  return { ...served, say, askAlone, initialize, askInSession, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
};

/** The messages of a stream that has ended. */
export const eventsIn = (text: string): JsonObject[] =>
  text
    .split("\n\n")
    .flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? [])
    .map((data) => objectIn(data));
