import { Invalid } from "../../../api/errors.ts";
import { allowing } from "../../../egress/allowed-host.ts";
import { type Target, type Scheme as TargetScheme, targetOf } from "../../../egress/target.ts";
import type { CallContext } from "../call-context.ts";
import { GuestError } from "../guest-error.ts";
import { IoError } from "../streams.ts";
import { denied, type ErrorCode } from "./error-code.ts";
import { Exchange, type ExchangeTimeouts, type Granted, targetText } from "./exchange.ts";
import { Fields } from "./fields.ts";
import { FutureTrailers, IncomingBody } from "./incoming-body.ts";
import { FutureIncomingResponse, IncomingResponse } from "./incoming-response.ts";
import { OutgoingBody } from "./outgoing-body.ts";
import { OutgoingRequest, type RequestHead, RequestOptions } from "./outgoing-request.ts";
import { IncomingRequest, OutgoingResponse, ResponseOutparam } from "./server-side.ts";

/** Both interfaces of one call: its classes make bodies that belong to the call. */
export const httpOf = (context: CallContext) => {
  class CallRequest extends OutgoingRequest {
    constructor(headers: Fields) {
      super(context, headers);
    }
  }
  class CallResponse extends OutgoingResponse {
    constructor(headers: Fields) {
      super(context, headers);
    }
  }
  const types = {
    Fields,
    OutgoingRequest: CallRequest,
    OutgoingBody,
    RequestOptions,
    IncomingResponse,
    IncomingBody,
    FutureIncomingResponse,
    FutureTrailers,
    IncomingRequest,
    ResponseOutparam,
    OutgoingResponse: CallResponse,
    httpErrorCode: (error: IoError): ErrorCode | undefined => {
      const code = IoError.codeOf(error);
      return code?.kind === "http" ? code.code : undefined;
    },
  };
  const handler = {
    handle: (request: OutgoingRequest, options: RequestOptions | undefined): FutureIncomingResponse => send(context, request, options),
  };
  return { types, handler };
};

const send = (context: CallContext, request: OutgoingRequest, options: RequestOptions | undefined): FutureIncomingResponse => {
  const head = OutgoingRequest.handOver(request);
  // Denied requests count as well: each leaves a line in the log.
  if (!context.charge("requests", 1)) throw new GuestError<ErrorCode>({ tag: "connection-limit-reached" });
  const verdict = judge(context, head);
  if (verdict.refusal !== undefined) {
    context.made.deny();
    context.options.denied({
      target: verdict.target,
      detail: verdict.refusal.tag === "internal-error" ? verdict.refusal.val : verdict.refusal.tag,
    });
    head.body.fail(verdict.refusal);
    throw new GuestError(verdict.refusal);
  }
  if (context.countOpen(Exchange) >= context.options.budgets.connections) {
    throw new GuestError<ErrorCode>({ tag: "connection-limit-reached" });
  }
  const exchange = context.hold(new Exchange(context, verdict, head, timeoutsOf(context, options)));
  void exchange.run();
  return new FutureIncomingResponse(context, exchange);
};

type Verdict = (Granted & { readonly refusal?: undefined }) | { readonly target: string; readonly refusal: ErrorCode };

/** Whether the grants admit a request: scheme, host and effective port, and one name for the host throughout. */
const judge = (context: CallContext, head: RequestHead): Verdict => {
  const said = `${head.scheme?.tag === "other" ? head.scheme.val : (head.scheme?.tag ?? "HTTPS").toLowerCase()}://${head.authority ?? ""}`;
  const refuse = (reason: string): Verdict => ({ target: said, refusal: denied(reason) });
  if (head.authority === undefined) return { target: said, refusal: { tag: "HTTP-request-URI-invalid" } };
  if (head.scheme?.tag === "other") return refuse(`the scheme of ${said} is not http or https`);
  const scheme: TargetScheme = head.scheme?.tag === "HTTP" ? "http" : "https";
  const target = readTarget(scheme, head.authority);
  if (typeof target === "string") return refuse(target);
  const by = allowing(context.options.allowedHosts, target);
  if (by === undefined) return refuse(`${targetText(target)} is not granted to this tool`);
  for (const value of head.headers.get("host")) {
    const named = readTarget(scheme, Buffer.from(value).toString("latin1"));
    if (typeof named === "string" || named.host !== target.host || named.port !== target.port) {
      return refuse(`the Host header differs from the request's authority, ${targetText(target)}`);
    }
  }
  return { target, by };
};

const readTarget = (scheme: TargetScheme, authority: string): Target | string => {
  try {
    return targetOf(scheme, authority);
  } catch (error) {
    if (error instanceof Invalid) return error.message;
    throw error;
  }
};

const timeoutsOf = (context: CallContext, options: RequestOptions | undefined): ExchangeTimeouts => {
  const most = context.options.budgets.connectTimeoutMs;
  return {
    connectMs: Math.min(milliseconds(options?.connectTimeout()) ?? most, most),
    firstByteMs: milliseconds(options?.firstByteTimeout()),
    betweenBytesMs: milliseconds(options?.betweenBytesTimeout()),
  };
};

/** A guest's nanoseconds as what a timer takes; null for none, and for more than a timer can hold. */
const milliseconds = (duration: bigint | undefined): number | null => {
  if (duration === undefined) return null;
  const whole = duration / 1_000_000n + 1n;
  return whole > 2_147_483_647n ? null : Number(whole);
};
