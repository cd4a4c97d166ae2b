import type { ServerResponse } from "node:http";
import type { MessagePort } from "node:worker_threads";
import { messageOf } from "../../api/errors.ts";
import { costOf, type FromServed, type ToServed } from "./served-messages.ts";

/** The response on its way to the client. */
export class Outward {
  readonly #port: MessagePort;
  readonly #response: ServerResponse;
  readonly #settle: (why: string | null) => void;
  #hasEnded = false;
  /** What the client was sent; null where it went before. */
  status: number | null = null;
  /** Bytes of the body that the component wrote. */
  sent = 0;
  /** Settles when the response is whole, with null, or will never be, with why. */
  readonly ended: Promise<string | null>;

  constructor(port: MessagePort, response: ServerResponse) {
    this.#port = port;
    this.#response = response;
    const { promise, resolve } = Promise.withResolvers<string | null>();
    this.ended = promise;
    this.#settle = resolve;
    response.on("close", () => this.#settle(response.writableFinished ? null : "the client went away"));
    // A thread that was ended says nothing more.
    port.on("close", () => {
      if (!this.#hasEnded) this.#settle("its thread ended");
    });
  }

  take(message: Exclude<FromServed, { kind: "taken" }>): void {
    if (this.#hasEnded) return;
    try {
      this.#pass(message);
    } catch (error) {
      // What is refused here would be the end of a process that serves others too.
      this.#settle(`its response can't be sent: ${messageOf(error)}`);
      this.fail("Unsendable", true);
    }
  }

  /** Ends a response that will never be whole: with a status if none was sent, else so that the client sees that it is cut. */
  fail(code: string, ran: boolean): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#response.headersSent) this.#response.destroy();
    else if (!this.#response.destroyed) {
      this.status = ran ? (code === "Deadline" ? 504 : 500) : 503;
      refuse(this.#response, this.status);
    }
    this.#settle(code);
  }

  /** Ends the connection of a client that does not read to the end. */
  giveUp(): void {
    this.#settle("the client did not read its response");
    this.#response.destroy();
  }

  #pass(message: Exclude<FromServed, { kind: "taken" }>): void {
    switch (message.kind) {
      case "head":
        if (this.#response.destroyed) return;
        this.status = message.status;
        this.#response.writeHead(message.status, framed(message.headers));
        // The body may be long in coming.
        this.#response.flushHeaders();
        return;
      case "bytes":
        this.#write(message.bytes);
        return;
      case "end":
        this.#hasEnded = true;
        if (message.trailers.length > 0) this.#response.addTrailers(pairs(message.trailers));
        this.#response.end(() => this.#settle(null));
        return;
      case "cut":
        this.#settle(message.why);
        this.fail("Cut", true);
    }
  }

  #write(bytes: Uint8Array): void {
    this.sent += bytes.length;
    const taken: ToServed = { kind: "taken", count: costOf(bytes) };
    this.#response.write(bytes, () => this.#port.postMessage(taken));
  }
}

/** We frame what the component writes: a length that it announced and did not keep would be another message's beginning. */
const framed = (headers: readonly string[]): string[] => {
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const [name = "", value = ""] = headers.slice(at, at + 2);
    if (name !== "content-length") kept.push(name, value);
  }
  return kept;
};

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

/** An answer of the host's own. After 401 nothing more is read: whoever may not come here may not make us read either. */
export const refuse = (response: ServerResponse, status: number): void => {
  const body = `${reasons[status] ?? ""}\n`;
  const again = status === 503 ? { "retry-after": "1" } : {};
  const last = status === 401 ? { connection: "close" } : {};
  response.writeHead(status, { "content-type": "text/plain", "content-length": Buffer.byteLength(body), ...last, ...again });
  response.end(body);
};
