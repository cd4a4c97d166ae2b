import type { CallContext } from "../call-context.ts";
import { GuestError } from "../guest-error.ts";
import { type OutputSink, OutputStream } from "../streams.ts";
import type { ErrorCode } from "./error-code.ts";
import type { Fields } from "./fields.ts";

/** The bytes of a message's body on their way from the guest. */
export interface OutgoingBytes {
  readonly sink: () => OutputSink;
  /** No more will come. Gives why the body is wrong, or null. */
  readonly finish: (trailers: Fields | undefined) => ErrorCode | null;
  /** The body will never be whole. */
  readonly abort: (reason: ErrorCode) => void;
}

/** `wasi:http/types`: the body of a request, or of a response to one that is served. Dropped without `finish`, its message does not count as sent. */
export class OutgoingBody implements Disposable {
  readonly #context: CallContext;
  readonly #body: OutgoingBytes;
  #isTaken = false;

  constructor(context: CallContext, body: OutgoingBytes) {
    this.#context = context;
    this.#body = body;
  }

  static finish(body: OutgoingBody, trailers: Fields | undefined): void {
    const wrong = body.#body.finish(trailers);
    if (wrong !== null) throw new GuestError(wrong);
  }

  write(): OutputStream {
    if (this.#isTaken) throw new GuestError(undefined);
    this.#isTaken = true;
    return new OutputStream(this.#context, this.#body.sink());
  }

  [Symbol.dispose](): void {
    this.#body.abort({ tag: "HTTP-protocol-error" });
  }
}
