import { isDeepStrictEqual } from "node:util";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { messageOf, Transient } from "../api/errors.ts";
import { compactJson, type JsonValue } from "../api/json.ts";
import { type AbortScope, abortScope } from "./abort-scope.ts";
import type { ClusterAccess, Credentials, TlsOptions } from "./access.ts";
import { ApiError, type ApiStatus, apiErrorOf } from "./api-error.ts";
import { type Clock, jittered, pause, type Random } from "./clock.ts";
import { parseClusterJson } from "./json.ts";
import { type Counter, type Histogram, type MetricsRegistry, noMetrics, secondBuckets } from "./metrics.ts";
import { apiVersionOf, type ClusterObject, collectionPath, type ObjectKey, objectPath, type ResourceType } from "./object.ts";

export interface ClientOptions {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly random: Random;
  /** Sent as `User-Agent`: audit logs and the API server's fairness see it. */
  readonly userAgent: string;
  readonly metrics?: MetricsRegistry;
  readonly limits?: ClientLimits;
}

export interface ClientLimits {
  /** For one attempt, from sending to the last byte; watches end otherwise. */
  readonly requestMs: number;
  readonly connectMs: number;
  readonly responseBytes: number;
  /** How often a request that the server was too busy for is sent again. */
  readonly retries: number;
}

export const defaultClientLimits: ClientLimits = { requestMs: 30_000, connectMs: 10_000, responseBytes: 256 * 1024 * 1024, retries: 3 };

export type QueryValue = string | number | boolean | undefined;

export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly body?: object;
  /** `application/json` unless it is a patch, which names its own kind. */
  readonly contentType?: string;
  readonly signal?: AbortSignal | undefined;
  /** In place of the client's. */
  readonly retries?: number;
}

/** One page of a list. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** Opaque: where a watch goes on from. */
  readonly resourceVersion: string;
  /** Opaque: asks for the next page. */
  readonly next: string | undefined;
}

export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** When the server is too busy and doesn't say for how long. */
const defaultRetryAfterMs = 1000;

/**
 * Requests to an API server: raw JSON in and out, nothing dropped that a generated model would not know.
 *
 * Rejects with `ApiError` for what the server refuses, `Transient` (`ApiUnreachable`, `ApiTimeout`, `ApiAnswerUnreadable`) for what did not get through, the signal's
 * reason when it aborts, and what the guard throws.
 */
export class ClusterClient {
  readonly #shared: Shared;
  readonly #guard: (() => void) | undefined;

  constructor(options: ClientOptions);
  constructor(shared: Shared, guard: () => void);
  constructor(from: ClientOptions | Shared, guard?: () => void) {
    this.#shared = from instanceof Shared ? from : new Shared(from);
    this.#guard = guard;
  }

  /** The same client, which asks `guard` before each attempt of each write: what it throws, the write rejects with, unsent. */
  guardedBy(guard: () => void): ClusterClient {
    const outer = this.#guard;
    return new ClusterClient(this.#shared, () => {
      outer?.();
      guard();
    });
  }

  /** The answer's JSON. Requests that the server was too busy for (429, or with Retry-After) are sent again after the time it asked for. */
  async request(request: ApiRequest): Promise<unknown> {
    const { clock, random, limits } = this.#shared;
    const retries = request.retries ?? limits.retries;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#attempt(request);
      } catch (thrown) {
        if (attempt >= retries || !(thrown instanceof ApiError) || !isTooBusy(thrown)) throw thrown;
        await pause(
          clock,
          jittered(random, thrown.retryAfterMs ?? defaultRetryAfterMs, 0.25),
          request.signal ?? new AbortController().signal,
        );
        request.signal?.throwIfAborted();
      }
    }
  }

  async get<T extends ClusterObject>(type: ResourceType, key: ObjectKey, signal?: AbortSignal): Promise<T> {
    return asObject<T>(type, await this.request({ method: "GET", path: objectPath(type, key), signal }));
  }

  async listPage<T extends ClusterObject>(
    type: ResourceType,
    { namespace, labelSelector, fieldSelector }: Selection,
    { limit, next, signal, retries }: { limit?: number; next?: string; signal?: AbortSignal; retries?: number } = {},
  ): Promise<ListPage<T>> {
    const path = collectionPath(type, namespace);
    const answer = (await this.request({
      method: "GET",
      path,
      query: { labelSelector, fieldSelector, limit, continue: next },
      signal,
      ...(retries === undefined ? {} : { retries }),
    })) as { items?: readonly T[] | null; metadata?: { resourceVersion?: string; continue?: string } } | null;
    const resourceVersion = answer?.metadata?.resourceVersion;
    if (!resourceVersion) throw new Transient("ApiAnswerUnreadable", `GET ${path} gave a list without a resource version`);
    return {
      items: (answer?.items ?? []).map((item) => asObject<T>(type, item)),
      resourceVersion,
      next: answer?.metadata?.continue || undefined,
    };
  }

  async create<T extends ClusterObject>(type: ResourceType, object: T, signal?: AbortSignal): Promise<T> {
    const path = collectionPath(type, object.metadata.namespace);
    return asObject<T>(type, await this.request({ method: "POST", path, body: withType(type, object), signal }));
  }

  /** Replaces the object; with a `resourceVersion` in it, only that version. */
  async replace<T extends ClusterObject>(type: ResourceType, object: T, signal?: AbortSignal): Promise<T> {
    const path = objectPath(type, object.metadata);
    return asObject<T>(type, await this.request({ method: "PUT", path, body: withType(type, object), signal }));
  }

  /** Deletes the object, or with a `uid` only that very one. Resolves to whether there was one. */
  async delete(
    type: ResourceType,
    key: ObjectKey,
    {
      uid,
      resourceVersion,
      propagation = "Background",
    }: { uid?: string; resourceVersion?: string; propagation?: "Background" | "Foreground" } = {},
    signal?: AbortSignal,
  ): Promise<boolean> {
    const body = { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: propagation, preconditions: { uid, resourceVersion } };
    try {
      await this.request({ method: "DELETE", path: objectPath(type, key), body, signal });
      return true;
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.code === "NotFound") return false;
      throw thrown;
    }
  }

  /**
   * The bytes of a watch, as they come. Resolves when the server has begun to answer; ends with the server's end, or rejects as requests do. The signal is to be the
   * watch's own: it is listened to until it is forgotten.
   */
  async watch(path: string, query: Readonly<Record<string, QueryValue>>, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const deadline = this.#deadline(`GET ${path}`, signal);
    try {
      const response = await this.#send({ method: "GET", path, query: { ...query, watch: true } }, "WATCH", deadline.signal);
      return response.body;
    } finally {
      deadline.cancel();
    }
  }

  close(): Promise<void> {
    return this.#shared.close();
  }

  async #attempt(request: ApiRequest): Promise<unknown> {
    const asked = `${request.method} ${request.path}`;
    const { signal, cancel, release } = this.#deadline(asked, request.signal);
    try {
      const response = await this.#send(request, request.method, signal);
      return readJson(asked, await textOf(response.body, this.#shared.limits.responseBytes, asked, signal));
    } finally {
      cancel();
      release();
    }
  }

  /** Aborts with the outer signal, and after the time for one attempt unless it is cancelled. */
  #deadline(asked: string, outer: AbortSignal | undefined): AbortScope & { readonly cancel: () => void } {
    const { clock, limits } = this.#shared;
    const scope = abortScope(outer);
    const cancel = clock.after(limits.requestMs, () =>
      scope.abort(new Transient("ApiTimeout", `${asked}: no answer within ${limits.requestMs / 1000} s`)),
    );
    return { ...scope, cancel };
  }

  /** Sends, and throws what a refusal means; once more with fresh credentials if those of before are not accepted any more. */
  async #send(request: ApiRequest, verb: string, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const asked = `${request.method} ${request.path}`;
    for (let fresh = false; ; fresh = true) {
      const credentials = await this.#shared.access.credentials(fresh);
      signal.throwIfAborted();
      if (request.method !== "GET") this.#guard?.();
      const response = await this.#shared.dispatch(request, credentials, verb, signal);
      if (response.statusCode < 300) return response;
      const text = await textOf(response.body, largestRefusal, asked, signal);
      if (response.statusCode === 401 && !fresh) continue;
      const retryAfter = response.headers["retry-after"];
      throw apiErrorOf(asked, response.statusCode, statusOf(text), typeof retryAfter === "string" ? retryAfter : undefined);
    }
  }
}

const largestRefusal = 1024 * 1024;

/** As client-go: 429 always, a server's error only if it says when to come back. */
const isTooBusy = ({ status, retryAfterMs }: ApiError): boolean => status === 429 || (status >= 500 && retryAfterMs !== undefined);

/** What a client and the guarded clients made from it have in common: connections, metrics. */
class Shared {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: ClientLimits;
  readonly #userAgent: string;
  readonly #requests: Counter;
  readonly #seconds: Histogram;
  #connections: { readonly tls: TlsOptions; readonly dispatcher: Dispatcher } | undefined;

  constructor({ access, clock, random, userAgent, metrics = noMetrics, limits = defaultClientLimits }: ClientOptions) {
    this.access = access;
    this.clock = clock;
    this.random = random;
    this.limits = limits;
    this.#userAgent = userAgent;
    this.#requests = metrics.counter({
      name: "rest_client_requests_total",
      help: "Requests to the API server, by method and status; <error> where none came.",
      labels: ["code", "method", "host"],
    });
    this.#seconds = metrics.histogram({
      name: "rest_client_request_duration_seconds",
      help: "Time to the first byte of the API server's answer.",
      labels: ["verb", "host"],
      buckets: secondBuckets,
    });
  }

  async dispatch(request: ApiRequest, credentials: Credentials, verb: string, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { method, path, query, body, contentType = "application/json" } = request;
    const started = this.clock.elapsed();
    const host = this.access.server.host;
    const count = (code: string): void => this.#requests.add({ code, method, host });
    try {
      const response = await this.#dispatcher(credentials.tls).request({
        origin: this.access.server.origin,
        path: this.access.server.pathname.replace(/\/$/, "") + path + queryText(query),
        method,
        headers: {
          ...credentials.headers,
          accept: "application/json",
          "user-agent": this.#userAgent,
          ...(body === undefined ? {} : { "content-type": contentType }),
        },
        body: body === undefined ? null : compactJson(body as JsonValue),
        signal,
        // The signal bounds plain requests, and a watch may be silent for long.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      count(String(response.statusCode));
      this.#seconds.observe({ verb, host }, (this.clock.elapsed() - started) / 1000);
      return response;
    } catch (thrown) {
      count("<error>");
      throw unreachable(`${method} ${path}`, thrown, signal);
    }
  }

  async close(): Promise<void> {
    await this.#connections?.dispatcher.destroy();
  }

  /** Connections are kept until the certificates change; then those in use go on until they end. */
  #dispatcher(tls: TlsOptions): Dispatcher {
    if (this.#connections !== undefined && isDeepStrictEqual(this.#connections.tls, tls)) return this.#connections.dispatcher;
    this.#connections?.dispatcher.close().catch(() => {});
    const connect = { ...tls, timeout: this.limits.connectMs, keepAlive: true, keepAliveInitialDelay: 30_000 };
    const { proxy } = this.access;
    const dispatcher =
      proxy === undefined
        ? new Agent({ connect })
        : new ProxyAgent({ uri: proxy, requestTls: tls, connect: { timeout: this.limits.connectMs } });
    this.#connections = { tls, dispatcher };
    return dispatcher;
  }
}

const queryText = (query: Readonly<Record<string, QueryValue>> = {}): string => {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  const text = given.toString();
  return text === "" ? "" : `?${text}`;
};

const unreachable = (asked: string, thrown: unknown, signal: AbortSignal): unknown =>
  signal.aborted ? signal.reason : new Transient("ApiUnreachable", `${asked}: ${messageOf(thrown)}`, { cause: thrown });

const textOf = async (body: Dispatcher.ResponseData["body"], largest: number, asked: string, signal: AbortSignal): Promise<string> => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > largest) break;
      chunks.push(chunk);
    }
  } catch (thrown) {
    throw unreachable(asked, thrown, signal);
  }
  if (size > largest) throw new Transient("ApiAnswerUnreadable", `${asked}: the answer has more than ${largest} bytes`);
  return Buffer.concat(chunks).toString("utf8");
};

const readJson = (asked: string, text: string): unknown => {
  try {
    return parseClusterJson(text);
  } catch (thrown) {
    throw new Transient("ApiAnswerUnreadable", `${asked}: the answer is no JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
};

/** Proxies and overloaded servers answer in plain text, which is then the message. */
const statusOf = (text: string): ApiStatus => {
  try {
    const status = JSON.parse(text) as ApiStatus | null;
    return typeof status === "object" && status !== null ? status : { message: text.slice(0, 200) };
  } catch {
    return text === "" ? {} : { message: text.slice(0, 200) };
  }
};

const withType = (type: ResourceType, object: ClusterObject): ClusterObject => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  ...object,
});

/** Items of lists come without their kind. */
const asObject = <T extends ClusterObject>(type: ResourceType, answer: unknown): T => {
  const object = answer as T | null;
  if (typeof object?.metadata?.name !== "string")
    throw new Transient("ApiAnswerUnreadable", `the API server gave a ${type.kind} without a name`);
  return object.kind === undefined || object.apiVersion === undefined ? (withType(type, object) as T) : object;
};
