import { buildConnector, type Dispatcher, Pool } from "undici";
import { messageOf, Transient } from "../api/errors.ts";
import type { HostExchange, HostRefusal, HostReply, HostStats, HostUse } from "../api/host.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../api/json.ts";
import { contentBlocks } from "./content-blocks.ts";
import type { Endpoint, EndpointTls } from "./state.ts";

/**
 * What became of one call sent to one host.
 *
 * - `replied`: the host judged the ticket good and says what came of the call.
 * - `refused`: the host refused the ticket or the body; nothing ran.
 * - `unreachable`: the request did not get there; nothing ran.
 * - `lost`: it may have got there, and no answer came: nobody knows whether it ran.
 */
export type Dispatched =
  | { readonly kind: "replied"; readonly reply: HostReply }
  | { readonly kind: "refused"; readonly refusal: HostRefusal }
  | { readonly kind: "unreachable"; readonly message: string }
  | { readonly kind: "lost"; readonly message: string };

/** Sends the exact bytes that were judged, with their ticket, to one host. Never rejects. */
export type Dispatch = (endpoint: Endpoint, ticket: string, body: Uint8Array) => Promise<Dispatched>;

export interface HostDispatcher {
  readonly dispatch: Dispatch;
  close(): Promise<void>;
}

export interface DispatchLimits {
  /** Connections kept to one host: at least as many as it runs and queues calls, else calls wait here unseen. */
  readonly connections: number;
  /** How long beyond an endpoint's own deadline an answer is waited for. */
  readonly graceMs: number;
  /** Largest answer read: text and structured value, either escaped. */
  readonly replyBytes: number;
  /** Hosts that a pool of connections is kept for. */
  readonly hosts: number;
}

export const defaultDispatchLimits: DispatchLimits = { connections: 64, graceMs: 15_000, replyBytes: 16 * 1024 * 1024, hosts: 1024 };

/** How long a connection may take, its handshake included. */
const connectMs = 5_000;

/** There is no connection to the host that was meant, so nothing was sent and nothing can have run. */
class NotConnected extends Transient {}

/**
 * Speaks to hosts over HTTP/1.1, keeping connections by address and, with TLS, by whom they are for: where a pod's address is used again, no connection to the one
 * before is.
 */
export const dispatchToHost = (limits: DispatchLimits = defaultDispatchLimits): HostDispatcher => {
  const pools = new Map<string, Pool>();

  const poolFor = ({ url, tls }: Endpoint): Pool => {
    const key = tls === undefined ? url : JSON.stringify([url, tls.servername, tls.ca]);
    const known = pools.get(key);
    pools.delete(key);
    const pool =
      known ??
      new Pool(url, { connections: limits.connections, pipelining: 1, maxResponseSize: limits.replyBytes, connect: connectorTo(tls) });
    pools.set(key, pool);
    for (const [oldest, idle] of pools) {
      if (pools.size <= limits.hosts) break;
      pools.delete(oldest);
      // Graceful: calls under way keep their connections until they end.
      idle.close().catch(() => idle.destroy());
    }
    return pool;
  };

  return {
    dispatch: async (endpoint, ticket, body) => {
      const waitMs = endpoint.deadlineMs + limits.graceMs;
      try {
        const { status, text } = await exchanged(poolFor(endpoint), {
          method: "POST",
          path: "/v1/call",
          headers: { "content-type": "application/json", "ambit-ticket": ticket },
          body,
          headersTimeout: waitMs,
          bodyTimeout: waitMs,
        });
        return answerOf(status, parseJson(text, { maxLength: limits.replyBytes, maxDepth: replyDepth }));
      } catch (thrown) {
        return { kind: thrown instanceof NotConnected ? "unreachable" : "lost", message: messageOf(thrown) };
      }
    },
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.close()));
      pools.clear();
    },
  };
};

/** One request and the whole of its answer, without the stream that undici would make of it: that costs a third of the exchange. */
const exchanged = (pool: Pool, request: Dispatcher.DispatchOptions): Promise<{ readonly status: number; readonly text: string }> =>
  new Promise((resolve, reject) => {
    let status = 0;
    const chunks: Buffer[] = [];
    pool.dispatch(request, {
      // Without it, undici takes the handler for one of its older kind.
      onRequestStart: () => undefined,
      onResponseStart: (_controller, statusCode) => {
        status = statusCode;
      },
      onResponseData: (_controller, chunk) => {
        chunks.push(chunk);
      },
      onResponseEnd: () => {
        const [only] = chunks;
        resolve({ status, text: (chunks.length === 1 && only ? only : Buffer.concat(chunks)).toString("utf8") });
      },
      onResponseError: (_controller, error) => reject(error),
    });
  });

/** Connects as undici does, and tells what fails until then from what fails later. */
const connectorTo = (tls: EndpointTls | undefined): buildConnector.connector => {
  const connect = buildConnector({ ...tls, timeout: connectMs });
  return (options, done) =>
    connect(options, (error, socket) => {
      if (error) done(new NotConnected("HostUnreachable", messageOf(error), { cause: error }), null);
      else if (socket) done(null, socket);
    });
};

/** A structured value may nest as deep as an argument, inside the reply's own object. */
const replyDepth = 130;

const answerOf = (status: number, body: JsonValue): Dispatched => {
  if (!isJsonObject(body)) throw malformed(status);
  if (body.refused === true && refusing(status) && typeof body.code === "string" && typeof body.message === "string") {
    return { kind: "refused", refusal: { refused: true, code: body.code, message: body.message } };
  }
  if (status !== 200) throw malformed(status);
  return { kind: "replied", reply: replyOf(body, status) };
};

/** A host that failed within itself (500) may have run something, whatever it says. */
const refusing = (status: number): boolean => (status >= 400 && status < 500) || status === 503;

const replyOf = (body: JsonObject, status: number): HostReply => {
  const { outcome, text, structured, code, ran } = body;
  const stats = statsOf(body.stats);
  if (typeof text !== "string") throw malformed(status);
  const content = body.content === undefined ? undefined : contentBlocks(body.content);
  if (content === null) throw malformed(status);
  const told = { text, ...(content !== undefined && { content }), stats };
  if (outcome === "ok") return structured === undefined ? { outcome, ...told } : { outcome, ...told, structured };
  if (outcome === "tool-error") return { outcome, ...told };
  if (outcome === "failed" && typeof code === "string" && typeof ran === "boolean") return { outcome, code, text, ran, stats };
  throw malformed(status);
};

/** What a host says of itself is for those who watch; what is no figure counts as nothing. */
const statsOf = (stats: JsonValue | undefined): HostStats => {
  if (!isJsonObject(stats)) return { queueMs: 0, runMs: 0 };
  const use = isJsonObject(stats.use) ? { use: useOf(stats.use) } : {};
  return { queueMs: figure(stats.queueMs), runMs: figure(stats.runMs), ...use };
};

const useOf = (use: JsonObject): HostUse => ({
  requests: figure(use.requests),
  deniedRequests: figure(use.deniedRequests),
  sentBytes: figure(use.sentBytes),
  receivedBytes: figure(use.receivedBytes),
  writtenFileBytes: figure(use.writtenFileBytes),
  exchanges: Array.isArray(use.exchanges) ? use.exchanges.slice(0, mostExchanges).filter(isJsonObject).map(exchangeOf) : [],
});

/** As many as a host tells. */
const mostExchanges = 16;

const exchangeOf = ({ method, host, atMs, ms, status }: JsonObject): HostExchange => ({
  method: word(method, 16),
  host: word(host, 300),
  atMs: figure(atMs),
  ms: figure(ms),
  status: typeof status === "number" ? figure(status) : null,
});

const figure = (value: JsonValue | undefined): number =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0;

const word = (value: JsonValue | undefined, longest: number): string => (typeof value === "string" ? value.slice(0, longest) : "");

const malformed = (status: number): Transient =>
  new Transient("HostAnswerMalformed", `the host answered with status ${status} and no reply in its shape`);
