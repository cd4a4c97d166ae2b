import type { IncomingHttpHeaders } from "node:http";
import { isJsonObject, type JsonObject, type JsonValue } from "../../api/json.ts";
import { RpcError, type RpcMessage, type RpcRequest, rpcCodes } from "./messages.ts";

/** The revision in which every request says by itself what it needs. */
export const statelessRevision = "2026-07-28";

/** Those that begin with `initialize` and go on under a session id, the newest first. */
export const sessionRevisions = ["2025-11-25", "2025-06-18", "2025-03-26"] as const;
export type SessionRevision = (typeof sessionRevisions)[number];

/** What a client without the header speaks (2025-11-25, "Protocol Version Header"). */
const revisionWithoutHeader: SessionRevision = "2025-03-26";

export const metaKeys = {
  protocolVersion: "io.modelcontextprotocol/protocolVersion",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
} as const;

const versionHeader = "mcp-protocol-version";

export const isSessionRevision = (text: unknown): text is SessionRevision => sessionRevisions.some((known) => known === text);

export const metaOf = (params: JsonObject): JsonObject | undefined => (isJsonObject(params._meta) ? params._meta : undefined);

/**
 * Whether a message is of a revision with sessions. What carries a version in its `_meta` is not; an `initialize` without is; anything else is what its header
 * says.
 */
export const isOfSessions = (headers: IncomingHttpHeaders, message: RpcMessage): boolean => {
  if (metaOf(message.params)?.[metaKeys.protocolVersion] !== undefined) return false;
  const version = headers[versionHeader];
  return message.method === "initialize" || version === undefined || isSessionRevision(version);
};

/** The revision that messages of sessions are in, as the header says; null for another. */
export const sessionRevisionIn = (headers: IncomingHttpHeaders): SessionRevision | null => {
  const version = headers[versionHeader] ?? revisionWithoutHeader;
  return isSessionRevision(version) ? version : null;
};

/** Names in `params` that a header repeats, by method (2026-07-28, "Standard Request Headers"). */
const namedBy: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
]);

/**
 * Checks what each request of 2026-07-28 must say, and that its headers say the same as its body. Throws `RpcError` with status 400: -32602 for what is missing in
 * `_meta`, -32020 for headers, -32022 for another revision.
 */
export const checkStateless = (headers: IncomingHttpHeaders, { method, params }: RpcRequest): void => {
  const meta = metaOf(params);
  const version = meta?.[metaKeys.protocolVersion];
  if (typeof version !== "string") throw incomplete(metaKeys.protocolVersion);
  if (!isJsonObject(meta?.[metaKeys.clientCapabilities])) throw incomplete(metaKeys.clientCapabilities);
  if (headers[versionHeader] !== version) throw mismatch("MCP-Protocol-Version", headers[versionHeader]);
  if (version !== statelessRevision) {
    throw new RpcError(rpcCodes.unsupportedVersion, "Unsupported protocol version", {
      status: 400,
      data: { supported: [statelessRevision], requested: version.slice(0, 128) },
    });
  }
  if (headers["mcp-method"] !== method) throw mismatch("Mcp-Method", headers["mcp-method"]);
  const named = namedBy.get(method);
  if (named !== undefined) checkName(headers["mcp-name"], params[named]);
};

const checkName = (header: string | readonly string[] | undefined, name: JsonValue | undefined): void => {
  if (typeof name !== "string") return;
  if (typeof header !== "string" || decodedHeader(header) !== name) throw mismatch("Mcp-Name", header);
};

const encodedPattern = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The value that a header stands for (2026-07-28, "Value Encoding"); null for none. */
export const decodedHeader = (value: string): string | null => {
  if (!value.startsWith("=?base64?")) return /^[\x20-\x7e\t]*$/.test(value) ? value : null;
  const [, base64] = encodedPattern.exec(value) ?? [];
  if (base64 === undefined) return null;
  const bytes = Buffer.from(base64, "base64");
  if (bytes.toString("base64") !== base64) return null;
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
};

const incomplete = (key: string): RpcError =>
  new RpcError(rpcCodes.invalidParams, `Invalid params: params._meta has no ${key}`, { status: 400 });

const mismatch = (header: string, value: unknown): RpcError =>
  new RpcError(
    rpcCodes.headerMismatch,
    value === undefined ? `Header mismatch: ${header} is missing` : `Header mismatch: ${header} is not what the body says`,
    { status: 400 },
  );
