import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { messages } from "./anthropic.ts";
import { BadRequest } from "./conversation.ts";
import { chatCompletions } from "./openai-chat.ts";
import { responses } from "./openai-responses.ts";

/**
 * Stands in for the providers' APIs, so that the agent loops run without a network or a key: `node examples/agent-loops/stand-in/main.ts` prints where it listens.
 * Answers have the shapes of the real ones; requests that the real APIs would refuse for a call without a result or a tool without a schema are refused.
 */
export interface StandIn {
  readonly url: string;
  /** What was asked, oldest first. */
  readonly requests: readonly { readonly path: string; readonly body: unknown }[];
  readonly close: () => Promise<void>;
}

interface Api {
  readonly path: RegExp;
  readonly answer: (body: never) => object;
}

const apis: readonly Api[] = [
  { path: /^\/v1\/messages$/, answer: messages },
  { path: /^\/v1\/chat\/completions$/, answer: chatCompletions },
  { path: /^\/v1\/responses$/, answer: responses },
];

export const startStandIn = async (port = 0): Promise<StandIn> => {
  const requests: { path: string; body: unknown }[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const api = apis.find((candidate) => candidate.path.test(path));
    if (!api) return send(response, 404, { error: { type: "not_found_error", message: `nothing is at ${path}` } });
    const body = await json(request);
    requests.push({ path, body });
    try {
      send(response, 200, api.answer(body as never));
    } catch (thrown) {
      if (!(thrown instanceof BadRequest)) throw thrown;
      send(response, 400, { error: { type: "invalid_request_error", code: 400, message: thrown.message } });
    }
  };
  const server: Server = createServer((request, response) => {
    answer(request, response).catch((fault: unknown) => response.destroy(fault instanceof Error ? fault : undefined));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const { port: bound } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${bound}`, requests, close };
};

const send = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

if (import.meta.main) {
  const { url } = await startStandIn(Number(process.env.PORT ?? 0));
  process.stdout.write(`${url}\n`);
}
