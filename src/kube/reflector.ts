import { AmbitError } from "../api/errors.ts";
import { abortScope } from "./abort-scope.ts";
import { ApiError, apiErrorOf, isExpired } from "./api-error.ts";
import type { ClusterClient, Selection } from "./client.ts";
import { type Clock, jittered, pause, type Random } from "./clock.ts";
import { type Counter, type MetricsRegistry, noMetrics } from "./metrics.ts";
import { apiVersionOf, type ClusterObject, collectionPath, type ResourceType } from "./object.ts";
import type { ReflectorSink } from "./store.ts";
import { WatchGarbled, watchEvents } from "./watch-events.ts";

export interface ReflectorOptions<T extends ClusterObject> {
  readonly client: Pick<ClusterClient, "listPage" | "watch">;
  readonly type: ResourceType;
  readonly selection?: Selection;
  readonly sink: ReflectorSink<T>;
  readonly clock: Clock;
  readonly random: Random;
  /** Hears what went wrong and what is done about it. */
  readonly onTrouble?: (trouble: ReflectorTrouble) => void;
  readonly metrics?: MetricsRegistry;
  readonly timing?: ReflectorTiming;
}

/** `next` is what follows: the list is read again, or the watch goes on where it was. */
export interface ReflectorTrouble {
  readonly error: unknown;
  readonly next: "list" | "watch";
  readonly inMs: number;
}

export interface ReflectorTiming {
  readonly pageSize: number;
  /** A watch is asked to end after this time and up to as much more, so that many don't come back together. */
  readonly watchSeconds: number;
  readonly idleMs: number;
  readonly lineBytes: number;
  readonly firstBackOffMs: number;
  readonly longestBackOffMs: number;
  /** After so long without trouble the next trouble is the first again. */
  readonly calmMs: number;
}

export const defaultReflectorTiming: ReflectorTiming = {
  pageSize: 500,
  watchSeconds: 300,
  idleMs: 150_000,
  lineBytes: 16 * 1024 * 1024,
  firstBackOffMs: 500,
  longestBackOffMs: 15_000,
  calmMs: 120_000,
};

/**
 * Keeps a sink like a collection of the API server, through lost connections, restarts, compaction and overload: lists, then watches from there, goes on where a watch
 * broke off, and lists again where it can't. Every list is a consistent read, so what the sink holds never goes back in time.
 *
 * Resource versions are opaque: passed back as they came.
 */
export class Reflector<T extends ClusterObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #timing: ReflectorTiming;
  readonly #metrics: ReflectorMetrics;
  readonly #synced = Promise.withResolvers<void>();
  #isSynced = false;
  /** Where the next watch goes on; undefined before the first list, and when only a list helps. */
  #resumeFrom: string | undefined;
  #failures = 0;
  #troubledAt = Number.NEGATIVE_INFINITY;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#timing = options.timing ?? defaultReflectorTiming;
    this.#metrics = reflectorMetrics(options.metrics ?? noMetrics);
  }

  /** Resolves when the sink holds the first list. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Runs until the signal aborts. Rejects only with what the sink throws. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const trouble = await this.#round(signal);
      if (signal.aborted) return;
      if (trouble !== undefined) await this.#waitAfter(trouble, signal);
    }
  }

  /** One list if it takes one, and one watch. Gives what went wrong outside. */
  async #round(signal: AbortSignal): Promise<unknown> {
    // Also ends the connection of a watch that is given up on.
    const within = abortScope(signal);
    try {
      if (this.#resumeFrom === undefined) await this.#list(within.signal);
      await this.#watch(within.signal);
      return undefined;
    } catch (thrown) {
      if (!(thrown instanceof AmbitError) && !signal.aborted) throw thrown;
      return thrown;
    } finally {
      within.abort();
      within.release();
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#count(this.#metrics.lists);
    const { objects, resourceVersion } = await this.#pages(this.#timing.pageSize, signal).catch((thrown: unknown) => {
      // A continue token outlives no compaction: then in one piece.
      if (!isExpired(thrown)) throw thrown;
      return this.#pages(undefined, signal);
    });
    this.#options.sink.replace(objects);
    this.#resumeFrom = resourceVersion;
    this.#isSynced = true;
    this.#synced.resolve();
  }

  async #pages(limit: number | undefined, signal: AbortSignal): Promise<{ objects: T[]; resourceVersion: string }> {
    const { client, type, selection = {} } = this.#options;
    const objects: T[] = [];
    let next: string | undefined;
    for (;;) {
      const page = await client.listPage<T>(type, selection, {
        signal,
        retries: 0,
        ...(limit === undefined ? {} : { limit }),
        ...(next === undefined ? {} : { next }),
      });
      for (const object of page.items) objects.push(object);
      next = page.next;
      if (next === undefined) return { objects, resourceVersion: page.resourceVersion };
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, type, selection: { namespace, labelSelector, fieldSelector } = {}, clock, random } = this.#options;
    const started = clock.elapsed();
    this.#count(this.#metrics.watches);
    const query = {
      labelSelector,
      fieldSelector,
      resourceVersion: this.#resumeFrom,
      allowWatchBookmarks: true,
      timeoutSeconds: Math.ceil(jittered(random, this.#timing.watchSeconds)),
    };
    let events = 0;
    const { idleMs, lineBytes } = this.#timing;
    const chunks = await client.watch(collectionPath(type, namespace), query, signal);
    for await (const event of watchEvents<T>(chunks, { clock, idleMs, lineBytes })) {
      if (signal.aborted) return;
      if (event.type === "ERROR") throw apiErrorOf(`WATCH ${collectionPath(type, namespace)}`, event.object.code ?? 500, event.object);
      this.#handle(event.type, event.object);
      this.#resumeFrom = event.object.metadata.resourceVersion;
      events++;
    }
    // A server that ends watches as soon as they begin is not asked again at once.
    if (events === 0 && clock.elapsed() - started < 1000) {
      throw new AmbitError("WatchShort", "the server ended the watch as soon as it began");
    }
  }

  #handle(type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK", object: T): void {
    if (type === "BOOKMARK") return;
    this.#count(this.#metrics.events);
    const { sink, type: kind } = this.#options;
    const whole = object.kind === undefined ? { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object } : object;
    if (type === "DELETED") sink.remove(whole);
    else sink.apply(whole);
  }

  async #waitAfter(error: unknown, signal: AbortSignal): Promise<void> {
    const { clock, random, onTrouble } = this.#options;
    const next = this.#resumeFrom === undefined ? "list" : nextAfter(error);
    const { firstBackOffMs, longestBackOffMs, calmMs } = this.#timing;
    if (clock.elapsed() - this.#troubledAt > calmMs) this.#failures = 0;
    const backOffMs = Math.min(firstBackOffMs * 2 ** Math.min(this.#failures, 20), longestBackOffMs);
    const askedMs = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
    const inMs = jittered(random, Math.max(backOffMs, askedMs));
    this.#failures++;
    if (next === "list") this.#resumeFrom = undefined;
    onTrouble?.({ error, next, inMs });
    await pause(clock, inMs, signal);
    this.#troubledAt = clock.elapsed();
  }

  #count(counter: Counter): void {
    this.#metrics.of(counter, this.#options.type);
  }
}

/** A watch goes on where it was unless the server says that it can't from there, or what it sent can't be trusted. */
const nextAfter = (error: unknown): "list" | "watch" => {
  if (error instanceof WatchGarbled) return "list";
  if (!(error instanceof ApiError)) return "watch";
  return error.code === "TooManyRequests" || isPassing(error) ? "watch" : "list";
};

/** The request was refused before it was looked at: by a server that starts or ends, or by a proxy; or for credentials that are being replaced. */
const isPassing = ({ status, code }: ApiError): boolean =>
  code === "ServiceUnavailable" || status === 401 || status === 403 || status === 502;

type ReflectorMetrics = ReturnType<typeof reflectorMetrics>;

const reflectorMetrics = (metrics: MetricsRegistry) => {
  const labels = ["name"];
  return {
    lists: metrics.counter({ name: "reflector_lists_total", help: "Lists read, the first included.", labels }),
    watches: metrics.counter({ name: "reflector_watches_total", help: "Watches begun.", labels }),
    events: metrics.counter({ name: "reflector_events_total", help: "Changes that watches told.", labels }),
    of: (counter: Counter, { plural, group }: ResourceType) => counter.add({ name: group === "" ? plural : `${plural}.${group}` }),
  };
};
