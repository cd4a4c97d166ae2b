import type { IncomingMessage, ServerResponse } from "node:http";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { PoolReply } from "../worker-pool.ts";
import { type FromServed, type ServedCall, type ToServed, windowBytes } from "./served-messages.ts";

export interface RelayDeps {
  /** Runs the call in an instance; settles when that has ended. */
  readonly run: (call: ServedCall) => Promise<PoolReply>;
  /** What became of a request that was not answered as the component meant it. */
  readonly log: (text: string) => void;
}

/** Brings one request to an instance and its response back, as both come: what is under way in either direction is bounded. */
export const relay = async (request: IncomingMessage, response: ServerResponse, { run, log }: RelayDeps): Promise<void> => {
  const { port1: port, port2 } = new MessageChannel();
  const outward = new Outward(port, response);
  const inward = new Inward(port, request);
  port.on("message", (message: FromServed) => {
    if (message.kind === "taken") inward.taken(message.count);
    else outward.take(message);
  });
  response.on("close", () => {
    if (!response.writableFinished) tell(port, { kind: "gone" });
  });
  const head = {
    method: request.method ?? "GET",
    target: request.url ?? "/",
    authority: request.headers.host ?? null,
    headers: request.rawHeaders,
  };
  inward.start();
  const { reply } = await run({ kind: "serve", head, port: port2 });
  if (reply.kind === "failed") {
    outward.fail(reply.code, reply.ran);
    log(`a request was not served: ${reply.code}: ${reply.text}`);
  } else {
    // Its last messages are on their way; they come before the port closes.
    const why = await outward.ended;
    if (why !== null) log(`a request was not served: ${why}`);
  }
  port.close();
};

const tell = (port: MessagePort, message: ToServed): void => port.postMessage(message);

/** The request's body on its way to the instance. */
class Inward {
  readonly #port: MessagePort;
  readonly #request: IncomingMessage;
  #outstanding = 0;

  constructor(port: MessagePort, request: IncomingMessage) {
    this.#port = port;
    this.#request = request;
  }

  start(): void {
    this.#request.on("data", (chunk: Buffer) => {
      this.#outstanding += chunk.length;
      tell(this.#port, { kind: "bytes", bytes: chunk });
      if (this.#outstanding >= windowBytes) this.#request.pause();
    });
    this.#request.on("end", () => tell(this.#port, { kind: "end", trailers: this.#request.rawTrailers }));
    this.#request.on("error", () => tell(this.#port, { kind: "gone" }));
  }

  taken(count: number): void {
    this.#outstanding -= count;
    if (this.#outstanding < windowBytes && this.#request.isPaused()) this.#request.resume();
  }
}

/** The response on its way to the client. */
class Outward {
  readonly #port: MessagePort;
  readonly #response: ServerResponse;
  readonly #settle: (why: string | null) => void;
  #hasEnded = false;
  /** Settles when the response is whole, with null, or will never be, with why. */
  readonly ended: Promise<string | null>;

  constructor(port: MessagePort, response: ServerResponse) {
    this.#port = port;
    this.#response = response;
    const { promise, resolve } = Promise.withResolvers<string | null>();
    this.ended = promise;
    this.#settle = resolve;
    // A thread that was ended says nothing more.
    port.on("close", () => this.#settle("its thread ended"));
  }

  take(message: Exclude<FromServed, { kind: "taken" }>): void {
    if (this.#hasEnded) return;
    switch (message.kind) {
      case "head":
        this.#response.writeHead(message.status, this.#framed(message.headers));
        return;
      case "bytes":
        this.#write(message.bytes);
        return;
      case "end":
        this.#hasEnded = true;
        if (message.trailers.length > 0) this.#response.addTrailers(pairs(message.trailers));
        this.#response.end(() => this.#settle(null));
        if (this.#response.destroyed) this.#settle(null);
        return;
      case "cut":
        this.#settle(message.why);
        this.fail("Cut", true);
    }
  }

  /** Ends a response that will never be whole: with a status if none was sent, else so that the client sees that it is cut. */
  fail(code: string, ran: boolean): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#response.headersSent) this.#response.destroy();
    else refuse(this.#response, ran ? (code === "Deadline" ? 504 : 500) : 503);
    this.#settle(code);
  }

  #write(bytes: Uint8Array): void {
    const taken = (): void => tell(this.#port, { kind: "taken", count: bytes.length });
    this.#response.write(bytes, taken);
  }

  /** We frame what the component writes: a length that it announced and did not keep would be another message's beginning. */
  #framed(headers: readonly string[]): string[] {
    const kept: string[] = [];
    for (let at = 0; at + 1 < headers.length; at += 2) {
      const [name = "", value = ""] = headers.slice(at, at + 2);
      if (name !== "content-length") kept.push(name, value);
    }
    return kept;
  }
}

const pairs = (flat: readonly string[]): [string, string][] => {
  const paired: [string, string][] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) paired.push([flat[at] ?? "", flat[at + 1] ?? ""]);
  return paired;
};

const reasons: Readonly<Record<number, string>> = {
  401: "this server takes requests from its bridge alone",
  500: "the server failed",
  503: "the server is busy or not ready",
  504: "the server took too long",
};

/** An answer of the host's own, which ends the connection: what else came on it is not read. */
export const refuse = (response: ServerResponse, status: number): void => {
  const body = `${reasons[status] ?? ""}\n`;
  const again = status === 503 ? { "retry-after": "1" } : {};
  response.writeHead(status, { "content-type": "text/plain", "content-length": Buffer.byteLength(body), connection: "close", ...again });
  response.end(body);
};
