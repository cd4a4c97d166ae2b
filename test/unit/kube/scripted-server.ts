import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { ClusterAccess } from "../../../src/kube/access.ts";
import { type ClientOptions, ClusterClient } from "../../../src/kube/client.ts";
import type { ManualClock } from "./manual-clock.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A plain answer, a stream that the test goes on writing to, or none at all. */
export type Reply =
  | { readonly status?: number; readonly headers?: Record<string, string>; readonly json?: unknown; readonly text?: string }
  | { readonly stream: (response: ServerResponse) => void }
  | { readonly hang: true };

/** An HTTP server on loopback that answers as a test says, and remembers what it was asked. */
export class ScriptedServer implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  readonly #server;
  answer: (request: SeenRequest, index: number) => Reply | Promise<Reply>;

  private constructor(answer: (request: SeenRequest, index: number) => Reply | Promise<Reply>) {
    this.answer = answer;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(answer: ScriptedServer["answer"]): Promise<ScriptedServer> {
    const made = new ScriptedServer(answer);
    await new Promise<void>((resolve) => made.#server.listen(0, "127.0.0.1", resolve));
    return made;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`);
  }

  client(clock: ManualClock, options: Partial<ClientOptions> = {}): ClusterClient {
    const access: ClusterAccess = { server: this.url, namespace: "default", credentials: async () => ({ headers: {}, tls: {} }) };
    return new ClusterClient({ access, clock, random: () => 0, userAgent: "test", ...options });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://server");
    const seen = { method: request.method ?? "", path: pathname, query: searchParams, headers: request.headers, body: await text(request) };
    this.seen.push(seen);
    const reply = await this.answer(seen, this.seen.length - 1);
    if ("hang" in reply) return;
    if ("stream" in reply) {
      response.writeHead(200, { "content-type": "application/json" });
      response.flushHeaders();
      reply.stream(response);
      return;
    }
    response.writeHead(reply.status ?? 200, { "content-type": "application/json", ...reply.headers });
    response.end(reply.text ?? JSON.stringify(reply.json ?? {}));
  }
}

/** Waits until `condition` holds; throws when it does not within a few seconds. */
export const until = async (condition: () => boolean, what: string, withinMs = 5000): Promise<void> => {
  const deadline = performance.now() + withinMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
};
