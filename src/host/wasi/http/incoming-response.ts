import type { IncomingMessage } from "node:http";
import type { CallContext } from "../call-context.ts";
import { GuestError } from "../guest-error.ts";
import { Pollable, type Readiness } from "../poll.ts";
import { IoError } from "../streams.ts";
import { Bell } from "./bell.ts";
import { type ErrorCode, errorCodeOf } from "./error-code.ts";
import { Fields } from "./fields.ts";
import { IncomingBody, type IncomingBytes } from "./incoming-body.ts";

type Result<Ok, Err> = { readonly tag: "ok"; readonly val: Ok } | { readonly tag: "err"; readonly val: Err };

/** The bytes of a response's body on their way from the connection to the guest; they stay in the socket until the guest reads. */
export class ResponseBody implements IncomingBytes {
  readonly #context: CallContext;
  readonly #message: IncomingMessage;
  readonly #host: string;
  readonly #abandon: () => void;
  readonly #arrived = new Bell();
  #failure: ErrorCode | null = null;
  #hasEnded = false;

  constructor(context: CallContext, message: IncomingMessage, host: string, abandon: () => void) {
    this.#context = context;
    this.#message = message;
    this.#host = host;
    this.#abandon = abandon;
    message.on("readable", () => this.#arrived.ring());
    message.on("end", () => {
      this.#hasEnded = true;
      this.#arrived.ring();
    });
    message.on("error", (error) => this.fail(errorCodeOf(error, this.#host)));
    message.on("close", () => {
      if (!this.#hasEnded) this.fail({ tag: "HTTP-response-incomplete" });
    });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get trailers(): Fields | undefined {
    return this.#message.rawTrailers.length > 0 ? Fields.received(this.#message.rawTrailers) : undefined;
  }

  readonly readiness: Readiness = {
    kind: "event",
    isReady: () => this.#failure !== null || this.#hasEnded || this.#message.readableLength > 0,
    wait: (wake) => this.#arrived.wait(wake),
  };

  fail(reason: ErrorCode): void {
    this.#failure ??= reason;
    this.#arrived.ring();
  }

  read(max: number): Uint8Array | null {
    if (this.#hasEnded) return null;
    if (this.#failure !== null) throw new IoError(`the response failed: ${describe(this.#failure)}`, { kind: "http", code: this.#failure });
    const length = Math.min(max, this.#message.readableLength);
    const chunk: Buffer | null = length === 0 ? this.#message.read(0) : this.#message.read(length);
    if (chunk === null) return new Uint8Array();
    if (!this.#context.charge("responseBodyBytes", chunk.length)) {
      this.fail({ tag: "HTTP-response-body-size", val: undefined });
      this.#abandon();
      return this.read(max);
    }
    return chunk;
  }

  abandon(): void {
    this.#abandon();
  }
}

const describe = (code: ErrorCode): string => (code.tag === "internal-error" ? code.val : code.tag);

/** `wasi:http/types`: a response whose head has come. */
export class IncomingResponse implements Disposable {
  readonly #context: CallContext;
  readonly #status: number;
  readonly #headers: Fields;
  readonly #body: ResponseBody;
  #isConsumed = false;

  constructor(context: CallContext, status: number, headers: Fields, body: ResponseBody) {
    this.#context = context;
    this.#status = status;
    this.#headers = headers;
    this.#body = body;
  }

  status(): number {
    return this.#status;
  }

  headers(): Fields {
    return Fields.frozen(this.#headers);
  }

  consume(): IncomingBody {
    if (this.#isConsumed) throw new GuestError(undefined);
    this.#isConsumed = true;
    return new IncomingBody(this.#context, this.#body);
  }

  [Symbol.dispose](): void {
    if (!this.#isConsumed) this.#body.abandon();
  }
}

/** What an exchange comes to: a response's head, or why there is none. */
export interface ExchangeOutcome {
  readonly settled: () => Result<IncomingResponse, ErrorCode> | null;
  readonly wait: (wake: () => void) => () => void;
  /** The guest wants the response now: what it has written of the body has to go out. */
  readonly hurry: () => void;
  readonly abandon: () => void;
}

/** `wasi:http/types`: a response that may not have come yet. */
export class FutureIncomingResponse implements Disposable {
  readonly #context: CallContext;
  readonly #outcome: ExchangeOutcome;
  #isTaken = false;

  constructor(context: CallContext, outcome: ExchangeOutcome) {
    this.#context = context;
    this.#outcome = outcome;
  }

  subscribe(): Pollable {
    this.#outcome.hurry();
    return new Pollable(this.#context, { kind: "event", isReady: () => this.#outcome.settled() !== null, wait: this.#outcome.wait });
  }

  get(): Result<Result<IncomingResponse, ErrorCode>, undefined> | undefined {
    this.#outcome.hurry();
    const settled = this.#outcome.settled();
    if (settled === null) return undefined;
    if (this.#isTaken) return { tag: "err", val: undefined };
    this.#isTaken = true;
    return { tag: "ok", val: settled };
  }

  [Symbol.dispose](): void {
    if (!this.#isTaken) this.#outcome.abandon();
  }
}
