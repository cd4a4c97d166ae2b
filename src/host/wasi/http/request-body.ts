import type { ClientRequest } from "node:http";
import type { CallContext } from "../call-context.ts";
import { IoError, type OutputSink } from "../streams.ts";
import { Bell } from "./bell.ts";
import type { ErrorCode } from "./error-code.ts";
import { Fields } from "./fields.ts";
import type { OutgoingBytes } from "./outgoing-body.ts";

/** What is kept of a body before it has to be sent in pieces: small bodies go out whole, with their length. */
const keptBytes = 64 * 1024;

/**
 * The bytes of a request's body on their way from the guest to the connection.
 *
 * Nothing is sent until the whole body is known, more than `keptBytes` have come, or the guest waits for the response; then `started` rings. A body that
 * began to be sent without its end known goes out in chunks.
 */
export class RequestBody implements OutgoingBytes {
  readonly started = new Bell();
  readonly #context: CallContext;
  readonly #declaredLength: number | null;
  readonly #room = new Bell();
  #kept: Uint8Array[] = [];
  #written = 0;
  #state: "open" | "finished" | "ended" = "open";
  #isStarted = false;
  #failure: ErrorCode | null = null;
  #request: ClientRequest | null = null;

  constructor(context: CallContext, declaredLength: number | null) {
    this.#context = context;
    this.#declaredLength = declaredLength;
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** The length to declare; null: not known yet, send in chunks. */
  get length(): number | null {
    return this.#declaredLength ?? (this.#state === "finished" ? this.#written : null);
  }

  /** Sends what there is and from now on everything as it comes. */
  pipeTo(request: ClientRequest): void {
    this.#request = request;
    request.on("drain", () => this.#room.ring());
    for (const chunk of this.#kept) request.write(chunk);
    this.#kept = [];
    if (this.#state === "finished") request.end();
    this.#room.ring();
  }

  /** No more will come. Gives why the body is wrong, or null. */
  finish(trailers?: Fields): ErrorCode | null {
    if (this.#state !== "open") return this.#failure;
    if (trailers !== undefined && Fields.entriesOf(trailers).length > 0) {
      const reason: ErrorCode = { tag: "internal-error", val: "a request cannot have trailers here" };
      this.abort(reason);
      return reason;
    }
    if (this.#declaredLength !== null && this.#declaredLength !== this.#written) {
      const wrong: ErrorCode = { tag: "HTTP-request-body-size", val: BigInt(this.#written) };
      this.abort(wrong);
      return wrong;
    }
    this.#state = "finished";
    this.#request?.end();
    this.start();
    return this.#failure;
  }

  /** The body will never be whole: whatever was sent of it must not count as a request. */
  abort(reason: ErrorCode): void {
    if (this.#state !== "open") return;
    this.fail(reason);
    this.#request?.destroy();
    this.start();
  }

  /** The exchange has failed: writes fail from now on. */
  fail(reason: ErrorCode): void {
    this.#failure ??= reason;
    this.#state = "ended";
    this.#kept = [];
    this.#room.ring();
  }

  get failure(): ErrorCode | null {
    return this.#failure;
  }

  start(): void {
    this.#isStarted = true;
    this.started.ring();
  }

  sink(): OutputSink {
    return {
      room: () => this.#roomLeft(),
      write: (bytes) => this.#write(bytes),
      flush: () => undefined,
      readiness: { kind: "event", isReady: () => this.#failure !== null || this.#roomLeft() !== 0, wait: this.#room.wait },
      close: () => undefined,
    };
  }

  #roomLeft(): number | null {
    if (this.#failure !== null) throw new IoError(`the request failed: ${this.#failure.tag}`, { kind: "http", code: this.#failure });
    if (this.#state !== "open") return null;
    if (this.#request !== null) return this.#request.writableNeedDrain ? 0 : keptBytes;
    // One write past the mark is taken, so that the mark is passed and the body starts.
    return this.#written > keptBytes ? 0 : keptBytes;
  }

  #write(bytes: Uint8Array): void {
    const tooMuch = this.#declaredLength !== null && this.#written + bytes.length > this.#declaredLength;
    if (tooMuch || !this.#context.charge("requestBodyBytes", bytes.length)) {
      const reason: ErrorCode = { tag: "HTTP-request-body-size", val: BigInt(this.#written + bytes.length) };
      this.abort(reason);
      throw new IoError("the request's body is longer than declared or than a call may send", { kind: "http", code: reason });
    }
    this.#written += bytes.length;
    if (this.#request !== null) {
      this.#request.write(bytes);
      return;
    }
    this.#kept.push(bytes);
    if (this.#written > keptBytes) this.start();
  }
}
