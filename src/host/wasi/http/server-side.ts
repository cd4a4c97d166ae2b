import type { CallContext } from "../call-context.ts";
import { GuestError } from "../guest-error.ts";
import type { ErrorCode } from "./error-code.ts";
import { Fields } from "./fields.ts";
import { IncomingBody } from "./incoming-body.ts";
import { OutgoingBody } from "./outgoing-body.ts";
import type { Method, Scheme } from "./outgoing-request.ts";
import { type ServedExchange, ServedResponseBody } from "./served-exchange.ts";

/** `wasi:http/types`: a request that is served. Only a component that is an MCP server is ever given one (docs/host.md, serving). */
export class IncomingRequest {
  readonly #context: CallContext;
  readonly #exchange: ServedExchange;
  readonly #headers: Fields;
  #isConsumed = false;

  constructor(context: CallContext, exchange: ServedExchange) {
    this.#context = context;
    this.#exchange = exchange;
    this.#headers = Fields.received(exchange.head.headers);
  }

  method(): Method {
    const { method } = this.#exchange.head;
    return known.has(method) ? { tag: method.toLowerCase() } : { tag: "other", val: method };
  }

  pathWithQuery(): string | undefined {
    return this.#exchange.head.target;
  }

  scheme(): Scheme | undefined {
    return { tag: "HTTP" };
  }

  authority(): string | undefined {
    return this.#exchange.head.authority ?? undefined;
  }

  headers(): Fields {
    return Fields.frozen(this.#headers);
  }

  consume(): IncomingBody {
    if (this.#isConsumed) throw new GuestError(undefined);
    this.#isConsumed = true;
    return new IncomingBody(this.#context, this.#exchange.request);
  }

  [Symbol.dispose](): void {
    if (!this.#isConsumed) this.#exchange.request.abandon();
  }
}

const known: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);

/** `wasi:http/types`: a response being made. */
export class OutgoingResponse {
  readonly #context: CallContext;
  readonly #headers: Fields;
  readonly #body = new ServedResponseBody();
  #status = 200;

  constructor(context: CallContext, headers: Fields) {
    this.#context = context;
    this.#headers = Fields.frozen(headers);
  }

  static handOver(response: OutgoingResponse, exchange: ServedExchange): boolean {
    return exchange.respond(response.#status, response.#headers, response.#body);
  }

  statusCode(): number {
    return this.#status;
  }

  /** An interim response would be taken for the last one. */
  setStatusCode(status: number): void {
    if (status < 200 || status > 599) throw new GuestError(undefined);
    this.#status = status;
  }

  headers(): Fields {
    return Fields.frozen(this.#headers);
  }

  body(): OutgoingBody {
    if (this.#body.isTaken) throw new GuestError(undefined);
    this.#body.isTaken = true;
    return new OutgoingBody(this.#context, this.#body);
  }
}

/** `wasi:http/types`: where the response to a request goes, once. */
export class ResponseOutparam {
  readonly #exchange: ServedExchange;

  constructor(exchange: ServedExchange) {
    this.#exchange = exchange;
  }

  static set(
    param: ResponseOutparam,
    response: { readonly tag: "ok"; readonly val: OutgoingResponse } | { readonly tag: "err"; readonly val: ErrorCode },
  ): void {
    if (response.tag === "ok") OutgoingResponse.handOver(response.val, param.#exchange);
    else param.#exchange.refuse(response.val);
  }
}
