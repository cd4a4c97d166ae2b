import type { IncomingMessage } from "node:http";
import type { MessagePort } from "node:worker_threads";
import { costOf, type ToServed, windowBytes } from "./served-messages.ts";

/** What is read and dropped of a body that nobody wants, so that its sender comes to read the answer, and for how long. */
const droppedBytes = 1024 * 1024;
const dropMs = 2_000;

/** The request's body on its way to the instance. */
export class Inward {
  readonly #port: MessagePort;
  readonly #request: IncomingMessage;
  readonly #read = (chunk: Buffer): void => this.#take(chunk);
  #outstanding = 0;
  /** Bytes of the body that came. */
  received = 0;

  constructor(port: MessagePort, request: IncomingMessage) {
    this.#port = port;
    this.#request = request;
  }

  start(): void {
    this.#request.on("data", this.#read);
    this.#request.on("end", () => this.#tell({ kind: "end", trailers: this.#request.rawTrailers }));
    this.#request.on("error", () => this.#tell({ kind: "gone" }));
  }

  taken(count: number): void {
    this.#outstanding -= count;
    if (this.#outstanding < windowBytes && this.#request.isPaused()) this.#request.resume();
  }

  /** Nobody reads the body any more. */
  stop(): void {
    this.#request.off("data", this.#read);
    drop(this.#request);
  }

  #take(chunk: Buffer): void {
    this.received += chunk.length;
    this.#outstanding += costOf(chunk);
    this.#tell({ kind: "bytes", bytes: chunk });
    if (this.#outstanding >= windowBytes) this.#request.pause();
  }

  #tell(message: ToServed): void {
    this.#port.postMessage(message);
  }
}

/**
 * Reads what is left of a request that was answered. A connection that is closed with unread bytes loses the answer on its way (RFC 9112, 9.6); one on which too much is left can't be kept.
 */
export const drop = (request: IncomingMessage): void => {
  if (request.complete || request.destroyed) return;
  let count = 0;
  const end = (): void => void request.socket.destroy();
  const timer = setTimeout(end, dropMs);
  request.on("close", () => clearTimeout(timer));
  request.on("end", () => clearTimeout(timer));
  request.on("data", (chunk: Buffer) => {
    count += chunk.length;
    if (count > droppedBytes) end();
  });
  request.resume();
};
