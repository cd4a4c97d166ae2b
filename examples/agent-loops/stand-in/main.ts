import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2Server, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";
import { json } from "node:stream/consumers";
import { messages } from "./anthropic.ts";
import { converse } from "./bedrock.ts";
import { BadRequest } from "./conversation.ts";
import { generateContent } from "./gemini.ts";
import { chatCompletions } from "./openai-chat.ts";
import { responses } from "./openai-responses.ts";

/**
 * Stands in for the providers' APIs, so that the agent loops run without a network or a key: `node examples/agent-loops/stand-in/main.ts` prints where it listens.
 * Answers have the shapes of the real ones; requests that the real APIs would refuse for a call without a result or a tool without a schema are refused.
 */
export interface StandIn {
  readonly url: string;
  /** The same over HTTP/2, which is all that Bedrock's SDK speaks. */
  readonly http2Url: string;
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
  { path: /^\/v1(beta)?\/models\/[^/]+:generateContent$/, answer: generateContent },
  { path: /^\/model\/[^/]+\/converse$/, answer: converse },
];

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

export const startStandIn = async (port = 0): Promise<StandIn> => {
  const requests: { path: string; body: unknown }[] = [];
  const answer = async (request: Request, response: Response): Promise<void> => {
    const path = decodeURIComponent((request.url ?? "").split("?", 1)[0] ?? "");
    const api = apis.find((candidate) => candidate.path.test(path));
    if (!api) return send(response, 404, { error: { type: "not_found_error", message: `nothing is at ${path}` } });
    const body = await json(request);
    requests.push({ path, body });
    try {
      send(response, 200, api.answer(body as never));
    } catch (thrown) {
      if (!(thrown instanceof BadRequest)) throw thrown;
      send(response, 400, { message: thrown.message, error: { type: "invalid_request_error", code: 400, message: thrown.message } });
    }
  };
  const listener = (request: Request, response: Response): void => {
    answer(request, response).catch((fault: unknown) => {
      process.stderr.write(`${fault}\n`);
      response.destroy();
    });
  };
  const servers = [await listening(createHttpServer(listener), port), await listening(createHttp2Server(listener), 0)];
  const [url = "", http2Url = ""] = servers.map(({ server }) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const close = async (): Promise<void> => {
    for (const { server, open } of servers) {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    }
  };
  return { url, http2Url, requests, close };
};

const listening = async <Kind extends Server>(
  server: Kind,
  port: number,
): Promise<{ readonly server: Kind; readonly open: Set<Socket> }> => {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return { server, open };
};

const send = (response: Response, status: number, body: object): void => {
  const text = JSON.stringify(body);
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(text);
};

if (import.meta.main) {
  const { url, http2Url } = await startStandIn(Number(process.env.PORT ?? 0));
  process.stdout.write(`${url}\n${http2Url} for Bedrock\n`);
}
