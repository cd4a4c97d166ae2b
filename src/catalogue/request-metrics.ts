import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type MetricsRegistry, secondBuckets } from "../kube/metrics.ts";

/** What requests are counted as, by the first path that fits; anything else is `other`, whatever was asked for. */
const routes: readonly (readonly [RegExp, string])[] = [
  [/^\/v1\/declarations(\?|$)/, "/v1/declarations"],
  [/^\/v1\/declarations\//, "/v1/declarations/{name}"],
  [/^\/v1\/search(\?|$)/, "/v1/search"],
  [/^\/v1\/calls(\?|$)/, "/v1/calls"],
  [/^\/v1\/openapi\.json(\?|$)/, "/v1/openapi.json"],
  [/^\/mcp(\?|$)/, "/mcp"],
  [/^\/(healthz|readyz)(\?|$)/, "probe"],
];

/** The route of a request, of a fixed list. */
export const routeOf = ({ url = "" }: IncomingMessage): string => routes.find(([path]) => path.test(url))?.[1] ?? "other";

/** The method, of a fixed list. */
export const methodOf = ({ method = "" }: IncomingMessage): string => (knownMethods.has(method) ? method : "other");

const knownMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "DELETE", "OPTIONS"]);

export interface RequestMetricsOptions {
  readonly metrics: MetricsRegistry;
  /** Milliseconds on a clock that never jumps. */
  readonly monotonic: () => number;
}

/** Counts what a server is asked and what it answers, from outside of it. */
export const countRequests = (server: Pick<Server, "prependListener" | "on">, { metrics, monotonic }: RequestMetricsOptions): void => {
  const requests = metrics.counter({
    name: "ambit_http_requests_total",
    help: "Requests that were answered, by route, method and status; status 0 where the caller went before there was one.",
    labels: ["route", "method", "code"],
  });
  const seconds = metrics.histogram({
    name: "ambit_http_request_duration_seconds",
    help: "From a request's head to the end of its answer; streams, which end when they end, are not in it.",
    labels: ["route"],
    buckets: secondBuckets,
  });
  const underWay = metrics.gauge({
    name: "ambit_http_requests_in_flight",
    help: "Requests that are being answered now, open streams among them.",
    labels: ["route"],
  });
  let open = 0;
  const connections = metrics.gauge({
    name: "ambit_connections",
    help: "Connections that are open, idle ones and those in a handshake among them.",
    labels: [],
    collect: () => connections.set({}, open),
  });
  server.on("connection", (socket: Socket) => {
    open++;
    socket.once("close", () => {
      open--;
    });
  });
  const counts = new Map<string, number>();
  const count = (route: string, by: number): void => {
    const now = (counts.get(route) ?? 0) + by;
    counts.set(route, now);
    underWay.set({ route }, now);
  };
  server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
    const route = routeOf(request);
    const method = methodOf(request);
    const started = monotonic();
    count(route, 1);
    response.once("close", () => {
      count(route, -1);
      requests.add({ route, method, code: response.headersSent ? String(response.statusCode) : "0" });
      if (!isStream(response)) seconds.observe({ route }, (monotonic() - started) / 1000);
    });
  });
};

const isStream = (response: ServerResponse): boolean => String(response.getHeader("content-type") ?? "").startsWith("text/event-stream");
