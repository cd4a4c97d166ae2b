import { GuestError } from "../guest-error.ts";
import { NeverMade } from "../never-made.ts";
import { Fields } from "./fields.ts";

/** The server's half of `wasi:http/types`. A tool is not called through HTTP: it is never given a request, and a response has nowhere to go. */
export class IncomingRequest extends NeverMade {}
export class ResponseOutparam extends NeverMade {}

export class OutgoingResponse {
  readonly #headers: Fields;
  #status = 200;

  constructor(headers: Fields) {
    this.#headers = Fields.frozen(headers);
  }

  statusCode(): number {
    return this.#status;
  }

  setStatusCode(status: number): void {
    if (status < 100 || status > 999) throw new GuestError(undefined);
    this.#status = status;
  }

  headers(): Fields {
    return Fields.frozen(this.#headers);
  }

  body(): never {
    throw new GuestError(undefined);
  }
}
