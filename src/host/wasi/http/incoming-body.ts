import type { CallContext } from "../call-context.ts";
import { GuestError } from "../guest-error.ts";
import { Pollable, type Readiness } from "../poll.ts";
import { InputStream } from "../streams.ts";
import type { ErrorCode } from "./error-code.ts";
import type { Fields } from "./fields.ts";

type Result<Ok, Err> = { readonly tag: "ok"; readonly val: Ok } | { readonly tag: "err"; readonly val: Err };

/** The bytes of a message's body on their way to the guest. */
export interface IncomingBytes {
  readonly hasEnded: boolean;
  readonly trailers: Fields | undefined;
  readonly readiness: Readiness;
  /** As an `InputSource` reads. Throws `IoError`. */
  readonly read: (max: number) => Uint8Array | null;
  /** The guest wants no more of it. */
  readonly abandon: () => void;
}

/** `wasi:http/types`: the body of a response, or of a request that is served. A response's that is dropped before its end closes the connection. */
export class IncomingBody implements Disposable {
  readonly #context: CallContext;
  readonly #body: IncomingBytes;
  #isTaken = false;

  constructor(context: CallContext, body: IncomingBytes) {
    this.#context = context;
    this.#body = body;
  }

  static finish(body: IncomingBody): FutureTrailers {
    if (!body.#body.hasEnded) body.#body.abandon();
    return new FutureTrailers(body.#context, body.#body.trailers);
  }

  stream(): InputStream {
    if (this.#isTaken) throw new GuestError(undefined);
    this.#isTaken = true;
    return new InputStream(this.#context, {
      read: (max) => this.#body.read(max),
      readiness: this.#body.readiness,
      close: () => undefined,
    });
  }

  [Symbol.dispose](): void {
    if (!this.#body.hasEnded) this.#body.abandon();
  }
}

/** `wasi:http/types`: trailers, which are there once the body has been read to its end. A body given up before that has none. */
export class FutureTrailers {
  readonly #context: CallContext;
  readonly #trailers: Fields | undefined;
  #isTaken = false;

  constructor(context: CallContext, trailers: Fields | undefined) {
    this.#context = context;
    this.#trailers = trailers;
  }

  subscribe(): Pollable {
    return new Pollable(this.#context, { kind: "always" });
  }

  get(): Result<Result<Fields | undefined, ErrorCode>, undefined> {
    if (this.#isTaken) return { tag: "err", val: undefined };
    this.#isTaken = true;
    return { tag: "ok", val: { tag: "ok", val: this.#trailers } };
  }
}
