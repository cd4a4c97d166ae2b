import type { CallContext } from "../call-context.ts";
import { GuestError } from "../guest-error.ts";
import { denied, type ErrorCode } from "./error-code.ts";
import { Fields } from "./fields.ts";
import { OutgoingBody } from "./outgoing-body.ts";
import { RequestBody } from "./request-body.ts";

export type Method = { readonly tag: string; readonly val?: string };
export type Scheme = { readonly tag: "HTTP" | "HTTPS" } | { readonly tag: "other"; readonly val: string };

const plainFailure = (): GuestError<undefined> => new GuestError(undefined);

/** Longest method, authority and path taken from a guest. */
const mostMethodLength = 32;
const mostAuthorityLength = 512;
const mostPathLength = 16 * 1024;

/** What a request said when it was handed over. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly scheme: Scheme | undefined;
  readonly authority: string | undefined;
  readonly headers: Fields;
  readonly body: RequestBody;
}

/** `wasi:http/types`: a request being made. A class for each call, since the guest constructs it and its body belongs to the call. */
export class OutgoingRequest implements Disposable {
  readonly #context: CallContext;
  readonly #headers: Fields;
  #method: Method = { tag: "get" };
  #path: string | undefined;
  #scheme: Scheme | undefined;
  #authority: string | undefined;
  #body: RequestBody | null = null;
  #isHandedOver = false;

  constructor(context: CallContext, headers: Fields) {
    this.#context = context;
    this.#headers = Fields.frozen(headers);
  }

  /** The request as it is now; its body, where the guest took none, is empty. Throws `ErrorCode` for what cannot be sent at all. */
  static handOver(request: OutgoingRequest): RequestHead {
    const method = request.#method.tag === "other" ? (request.#method.val ?? "") : request.#method.tag.toUpperCase();
    if (["CONNECT", "TRACE"].includes(method.toUpperCase())) throw new GuestError<ErrorCode>({ tag: "HTTP-request-method-invalid" });
    const taken = request.#body;
    const body = taken ?? new RequestBody(request.#context, request.#declaredLength());
    if (taken === null) body.finish();
    request.#isHandedOver = true;
    return {
      method,
      path: request.#path ?? "/",
      scheme: request.#scheme,
      authority: request.#authority,
      headers: request.#headers,
      body,
    };
  }

  method(): Method {
    return this.#method;
  }

  setMethod(method: Method): void {
    if (method.tag === "other" && !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method.val ?? "")) throw plainFailure();
    if ((method.val ?? "").length > mostMethodLength) throw plainFailure();
    this.#method = method;
  }

  pathWithQuery(): string | undefined {
    return this.#path;
  }

  setPathWithQuery(path: string | undefined): void {
    // Printable ASCII without a space or `#`: what a request line can carry (RFC 9112, 3.2.1).
    if (path !== undefined && (path.length > mostPathLength || !/^\/[!-"$-~]*$/.test(path))) throw plainFailure();
    this.#path = path;
  }

  scheme(): Scheme | undefined {
    return this.#scheme;
  }

  setScheme(scheme: Scheme | undefined): void {
    if (scheme?.tag === "other" && !/^[a-zA-Z][a-zA-Z0-9+.-]{0,31}$/.test(scheme.val)) throw plainFailure();
    this.#scheme = scheme;
  }

  authority(): string | undefined {
    return this.#authority;
  }

  setAuthority(authority: string | undefined): void {
    if (authority !== undefined && (authority.length > mostAuthorityLength || !/^[^\s/?#\\]+$/.test(authority))) throw plainFailure();
    this.#authority = authority;
  }

  headers(): Fields {
    return Fields.frozen(this.#headers);
  }

  body(): OutgoingBody {
    if (this.#body !== null || this.#isHandedOver) throw plainFailure();
    this.#body = new RequestBody(this.#context, this.#declaredLength());
    return new OutgoingBody(this.#context, this.#body);
  }

  [Symbol.dispose](): void {
    if (!this.#isHandedOver) this.#body?.abort({ tag: "HTTP-protocol-error" });
  }

  #declaredLength(): number | null {
    const values = this.#headers.get("content-length");
    if (values.length === 0) return null;
    const text = Buffer.concat(values.map((value) => Buffer.from(value))).toString("latin1");
    if (values.length > 1 || !/^[0-9]{1,15}$/.test(text)) throw new GuestError(denied("the content-length header is not one whole number"));
    return Number(text);
  }
}

/** `wasi:http/types`: how long the guest wants to wait, in nanoseconds. The host's own limits hold as well. */
export class RequestOptions {
  #connect: bigint | undefined;
  #firstByte: bigint | undefined;
  #betweenBytes: bigint | undefined;

  connectTimeout(): bigint | undefined {
    return this.#connect;
  }

  setConnectTimeout(duration: bigint | undefined): void {
    this.#connect = duration;
  }

  firstByteTimeout(): bigint | undefined {
    return this.#firstByte;
  }

  setFirstByteTimeout(duration: bigint | undefined): void {
    this.#firstByte = duration;
  }

  betweenBytesTimeout(): bigint | undefined {
    return this.#betweenBytes;
  }

  setBetweenBytesTimeout(duration: bigint | undefined): void {
    this.#betweenBytes = duration;
  }
}
