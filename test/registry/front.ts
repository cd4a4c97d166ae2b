import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";

/** An HTTP server on loopback that plays what stands around a registry: a token server, a storage that blobs redirect to, a proxy that tampers. */
export interface Front extends AsyncDisposable {
  /** `127.0.0.1:PORT`, or `localhost:PORT` with TLS. */
  readonly authority: string;
  /** Every request it got, in order. */
  readonly requests: readonly {
    readonly method: string;
    readonly url: URL;
    readonly authorization: string | null;
    readonly body: string;
  }[];
}

export type Answer = (request: Front["requests"][number], response: ServerResponse) => void | Promise<void>;

/** Starts a server that answers by `answer`. */
export const startFront = async (answer: Answer, tls?: { readonly key: Buffer; readonly cert: Buffer }): Promise<Front> => {
  const requests: Front["requests"][number][] = [];
  const listener: RequestListener = (message, response) => {
    record(message).then((request) => {
      requests.push(request);
      return answer(request, response);
    }, response.destroy.bind(response));
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    authority: `${tls === undefined ? "127.0.0.1" : "localhost"}:${(server.address() as AddressInfo).port}`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};

const record = async (message: IncomingMessage): Promise<Front["requests"][number]> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return {
    method: message.method ?? "",
    url: new URL(message.url ?? "/", "http://front"),
    authorization: message.headers.authorization ?? null,
    body: Buffer.concat(chunks).toString(),
  };
};

/** Answers with what the registry answers to the same path. */
export const forwardTo =
  (registry: string): Answer =>
  async ({ url }, response) => {
    const answer = await fetch(`http://${registry}${url.pathname}`, { headers: { accept: "*/*" } });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  };
