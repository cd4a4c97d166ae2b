import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { type Context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, type Tracer, trace } from "@opentelemetry/api";
import type { HostStats } from "../api/host.ts";
import { gateNames } from "../grants/gates.ts";
import { Admission, type AdmissionDeps, type CallAnswer, type CallRequest } from "./admission.ts";
import type { Caller } from "./caller.ts";
import type { Dispatch, Dispatched } from "./dispatch.ts";
import type { JournalEntry } from "./journal.ts";
import type { Offers } from "./offers.ts";
import { methodOf, routeOf } from "./request-metrics.ts";
import type { Endpoint } from "./state.ts";

export interface CallTracers {
  readonly catalogue: Tracer;
  /** For what a host tells of a call: it reaches nobody, and so exports nothing itself. */
  readonly host: Tracer;
}

/** The call that is being traced, while it is. */
interface TracedCall {
  readonly span: Span;
  readonly context: Context;
}

/**
 * Spans from a request to its tool's code, following the agent's where it sent `traceparent`. They hold names that were reviewed and codes, never a value of an
 * argument or of a result, nor a name that a caller made up.
 *
 *   POST /v1/calls             the agent's request
 *     execute_tool list_issues   one call; an event for each gate's verdict
 *       dispatch                   the hop to a host; a second one where nothing ran at the first
 *         queue, run                 as the host said (of the service ambit-host)
 *           GET api.example.com        a request that the tool made
 */
export class CallTracing {
  readonly #tracers: CallTracers;
  readonly #requests = new AsyncLocalStorage<Context>();

  constructor(tracers: CallTracers) {
    this.#tracers = tracers;
  }

  /** Makes each request of a server a span, whose context all that it causes finds again. */
  follow(server: Pick<Server, "listeners" | "removeAllListeners" | "on">): void {
    const listeners = server.listeners("request");
    server.removeAllListeners("request");
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      const proceed = (): void => {
        for (const listener of listeners) listener.call(server, request, response);
      };
      const route = routeOf(request);
      if (route === "probe") return proceed();
      const span = this.#tracers.catalogue.startSpan(
        `${methodOf(request)} ${route}`,
        { kind: SpanKind.SERVER, attributes: { "http.request.method": methodOf(request), "http.route": route } },
        parentNamed(request.headers.traceparent) ?? ROOT_CONTEXT,
      );
      response.once("close", () => {
        const code = response.headersSent ? response.statusCode : 0;
        span.setAttribute("http.response.status_code", code);
        if (code >= 500 || code === 0) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      });
      this.#requests.run(trace.setSpan(ROOT_CONTEXT, span), proceed);
    });
  }

  /** An admission whose calls are spans. */
  admission(deps: AdmissionDeps): Admission {
    return new TracedAdmission(deps, this.#tracers, () => this.#requests.getStore() ?? ROOT_CONTEXT);
  }
}

class TracedAdmission extends Admission {
  readonly #tracer: Tracer;
  readonly #requestContext: () => Context;
  readonly #calls: AsyncLocalStorage<TracedCall>;

  constructor(deps: AdmissionDeps, tracers: CallTracers, requestContext: () => Context) {
    const calls = new AsyncLocalStorage<TracedCall>();
    super({
      ...deps,
      dispatch: tracedDispatch(deps.dispatch, tracers, () => calls.getStore()),
      journal: (entry) => {
        const span = calls.getStore()?.span;
        if (span?.isRecording()) describe(span, entry);
        deps.journal(span?.isRecording() ? { ...entry, trace: span.spanContext().traceId } : entry);
      },
    });
    this.#tracer = tracers.catalogue;
    this.#requestContext = requestContext;
    this.#calls = calls;
  }

  override async call(caller: Caller, offers: Offers, request: CallRequest): Promise<CallAnswer> {
    const within = this.#requestContext();
    const named = parentNamed(request.traceparent);
    const around = trace.getSpanContext(within);
    const links = named && around ? [{ context: around }] : [];
    const parent = named ?? within;
    const span = this.#tracer.startSpan("execute_tool", { kind: SpanKind.INTERNAL, links }, parent);
    try {
      return await this.#calls.run({ span, context: trace.setSpan(parent, span) }, () => super.call(caller, offers, request));
    } finally {
      span.end();
    }
  }
}

/** What the journal says of a call, as attributes and events. */
const describe = (span: Span, entry: JournalEntry): void => {
  if (entry.tool !== null) {
    span.updateName(`execute_tool ${entry.name}`);
    span.setAttributes({ "gen_ai.tool.name": entry.name, "ambit.grant": entry.tool, "ambit.workload": entry.workload ?? "" });
  }
  span.setAttributes({ "gen_ai.operation.name": "execute_tool", "ambit.call.id": entry.id, "ambit.outcome": entry.outcome });
  span.setAttribute("enduser.id", entry.subject);
  if (entry.code !== null) span.setAttribute("error.type", entry.code);
  if (entry.outcome === "failed" || entry.outcome === "in-doubt") span.setStatus({ code: SpanStatusCode.ERROR });
  // Judging that failed has no verdict of a gate.
  if (entry.gate === "fault") return;
  for (const gate of gateNames) {
    const refused = gate === entry.gate;
    span.addEvent("gate", { "ambit.gate": gate, "ambit.verdict": refused ? "refused" : "admitted" });
    if (refused) return;
  }
};

const tracedDispatch =
  (dispatch: Dispatch, { catalogue, host }: CallTracers, callOf: () => TracedCall | undefined): Dispatch =>
  async (endpoint, ticket, body) => {
    const call = callOf();
    if (!call?.span.isRecording()) return dispatch(endpoint, ticket, body);
    const startTime = wallMs();
    const span = catalogue.startSpan("dispatch", { kind: SpanKind.CLIENT, startTime, attributes: attributesOf(endpoint) }, call.context);
    const dispatched = await dispatch(endpoint, ticket, body);
    const endTime = wallMs();
    if (dispatched.kind === "replied") {
      spansOfHost(host, trace.setSpan(call.context, span), dispatched.reply.stats, startTime, endTime);
    }
    const fault = faultOf(dispatched);
    if (fault !== null) span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute("error.type", fault);
    span.end(endTime);
    return dispatched;
  };

const attributesOf = ({ podUid, component }: Endpoint) => ({ "k8s.pod.uid": podUid, "ambit.component": component });

const faultOf = (dispatched: Dispatched): string | null => {
  if (dispatched.kind === "refused") return dispatched.refusal.code;
  return dispatched.kind === "replied" ? null : dispatched.kind;
};

/** A host tells how long, not when: what it does not account for, the way there and back, is taken to be as long either way. */
const spansOfHost = (tracer: Tracer, parent: Context, { queueMs, runMs, use }: HostStats, from: number, to: number): void => {
  const queuedAt = from + Math.max(0, to - from - queueMs - runMs) / 2;
  const ranAt = queuedAt + queueMs;
  tracer.startSpan("queue", { startTime: queuedAt }, parent).end(ranAt);
  const run = tracer.startSpan("run", { startTime: ranAt }, parent);
  const inRun = trace.setSpan(parent, run);
  for (const { method, host, atMs, ms, status } of use?.exchanges ?? []) {
    const startTime = ranAt + atMs;
    const span = tracer.startSpan(`${method} ${host}`, { kind: SpanKind.CLIENT, startTime }, inRun);
    span.setAttributes({ "http.request.method": method, "ambit.allowed-host": host });
    if (status === null) span.setStatus({ code: SpanStatusCode.ERROR });
    else span.setAttribute("http.response.status_code", status);
    span.end(startTime + ms);
  }
  if (use) run.setAttributes({ "ambit.requests": use.requests, "ambit.requests.denied": use.deniedRequests });
  run.end(ranAt + runMs);
};

/** Milliseconds since the epoch, as finely as the clock that never jumps tells. */
const wallMs = (): number => performance.timeOrigin + performance.now();

/** The parent that a caller names, by the rules of https://www.w3.org/TR/trace-context/; null where it names none. */
const parentNamed = (traceparent: string | string[] | undefined): Context | null => {
  const [, version, traceId, spanId, flags, more] = (typeof traceparent === "string" && traceparentPattern.exec(traceparent)) || [];
  if (traceId === undefined || spanId === undefined || version === "ff" || (version === "00" && more)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  const traceFlags = Number.parseInt(flags ?? "", 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
};

const traceparentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.{0,256})?$/;
