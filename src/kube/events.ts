import { LRUCache } from "lru-cache";
import type { ClusterClient } from "./client.ts";
import { type Clock, pause } from "./clock.ts";
import { type Counter, type MetricsRegistry, noMetrics } from "./metrics.ts";
import { microTime } from "./micro-time.ts";
import { apiVersionOf, type ClusterObject, objectPath } from "./object.ts";
import { events } from "./resource-types.ts";
import { TokenBucket } from "./token-bucket.ts";

/** What happened, for a person who runs `kubectl describe`. Never holds what a tool was sent or gave back, nor a secret. */
export interface Happening {
  readonly type: "Normal" | "Warning";
  /** A stable word in CamelCase, at most 128 characters. */
  readonly reason: string;
  /** What was being done, in CamelCase: `Pull`, `Deliver`. */
  readonly action: string;
  /** Cut at 1,024 bytes. */
  readonly note: string;
}

export interface RecorderOptions {
  readonly client: Pick<ClusterClient, "request">;
  readonly clock: Clock;
  /** `ambit.dev/operator`. */
  readonly controller: string;
  /** Which of its replicas: the pod's name. */
  readonly instance: string;
  /** Makes the names of events unlike any other's. */
  readonly uniqueName: () => string;
  /** Whether a namespace is on its way out: it takes no events. */
  readonly isEnding?: (namespace: string) => boolean;
  readonly metrics?: MetricsRegistry;
  readonly limits?: RecorderLimits;
}

export interface RecorderLimits {
  /** Happenings that wait to be sent; further ones are dropped and counted. */
  readonly waiting: number;
  /** Series that are remembered. */
  readonly series: number;
  /** A repeated happening is written this often, with the number of times. */
  readonly seriesMs: number;
  /** After so long a repetition is news again. */
  readonly forgetMs: number;
  /** About one object: as many at once, then one in a while. */
  readonly burst: number;
  readonly perSecond: number;
}

export const defaultRecorderLimits: RecorderLimits = {
  waiting: 1000,
  series: 4096,
  seriesMs: 60_000,
  forgetMs: 360_000,
  burst: 25,
  perSecond: 1 / 60,
};

const longestNoteBytes = 1024;

interface Series {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly event: object;
  /** How often it happened, and how often the API server knows of. */
  count: number;
  written: number;
  writtenAt: number;
  lastWall: number;
  lastAt: number;
}

/**
 * Tells what happened to objects as Kubernetes events (`events.k8s.io/v1`). Repetitions become one event with a count. Telling never waits and never fails:
 * events that can't be written are dropped and counted, since the state is in the object's status anyway.
 */
export class EventRecorder {
  readonly #options: RecorderOptions;
  readonly #limits: RecorderLimits;
  readonly #series: LRUCache<string, Series>;
  readonly #buckets: LRUCache<string, TokenBucket>;
  readonly #waiting = new Set<Series>();
  /** Repetitions that are to be written later. */
  readonly #later = new Map<Series, () => void>();
  readonly #dropped: Counter;
  #wake: (() => void) | undefined;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#limits = options.limits ?? defaultRecorderLimits;
    this.#series = new LRUCache({ max: this.#limits.series });
    this.#buckets = new LRUCache({ max: this.#limits.series });
    this.#dropped = (options.metrics ?? noMetrics).counter({
      name: "events_dropped_total",
      help: "Events that were not written, because there were too many or the API server did not take them.",
      labels: ["why"],
    });
  }

  /** Tells that something happened to an object that was read from the API server. */
  record(regarding: ClusterObject, happening: Happening): void {
    const { clock } = this.#options;
    const key = JSON.stringify([regarding.metadata.uid, happening.type, happening.reason, happening.action, happening.note]);
    const known = this.#series.get(key);
    if (known !== undefined && clock.elapsed() - known.lastAt < this.#limits.forgetMs) {
      known.count++;
      known.lastWall = clock.now();
      known.lastAt = clock.elapsed();
      this.#scheduleRepeat(known);
      return;
    }
    if (!this.#bucketOf(regarding).take()) {
      this.#dropped.add({ why: "object" });
      return;
    }
    const series = this.#begin(key, regarding, happening);
    this.#series.set(key, series);
    this.#send(series);
  }

  /** Writes events until the signal aborts; what waits then is given up. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = (): void => this.#wake?.();
    signal.addEventListener("abort", wake, { once: true });
    while (!signal.aborted) {
      const [series] = this.#waiting;
      if (series === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      this.#waiting.delete(series);
      await this.#write(series, signal);
    }
    for (const cancel of this.#later.values()) cancel();
    this.#later.clear();
  }

  #begin(key: string, regarding: ClusterObject, { type, reason, action, note }: Happening): Series {
    const { clock, controller, instance, uniqueName } = this.#options;
    const { apiVersion, kind, metadata } = regarding;
    // Events about objects without a namespace live in `default`, where kubectl looks for them.
    const namespace = metadata.namespace ?? "default";
    const name = `${metadata.name.slice(0, 200)}.${uniqueName()}`;
    const wall = clock.now();
    const event = {
      apiVersion: apiVersionOf(events),
      kind: events.kind,
      metadata: { name, namespace },
      eventTime: microTime(wall),
      reportingController: controller,
      reportingInstance: instance.slice(0, 128),
      type,
      reason,
      action,
      note: cut(note),
      regarding: { apiVersion, kind, namespace: metadata.namespace, name: metadata.name, uid: metadata.uid },
    };
    return {
      key,
      namespace,
      name,
      event,
      count: 1,
      written: 0,
      writtenAt: Number.NEGATIVE_INFINITY,
      lastWall: wall,
      lastAt: clock.elapsed(),
    };
  }

  #bucketOf({ metadata }: ClusterObject): TokenBucket {
    const key = metadata.uid ?? `${metadata.namespace}/${metadata.name}`;
    const known = this.#buckets.get(key);
    if (known) return known;
    const made = new TokenBucket(this.#options.clock, this.#limits.perSecond, this.#limits.burst);
    this.#buckets.set(key, made);
    return made;
  }

  /** At once if the last writing is long ago, else together with what comes until then. */
  #scheduleRepeat(series: Series): void {
    // Not written yet: the count goes out with it.
    if (this.#later.has(series) || this.#waiting.has(series) || series.written === 0) return;
    const { clock } = this.#options;
    const ms = series.writtenAt + this.#limits.seriesMs - clock.elapsed();
    if (ms <= 0) {
      this.#send(series);
      return;
    }
    const cancel = clock.after(ms, () => {
      this.#later.delete(series);
      this.#send(series);
    });
    this.#later.set(series, cancel);
  }

  #send(series: Series): void {
    if (this.#waiting.size >= this.#limits.waiting) {
      this.#drop(series, "queue");
      return;
    }
    this.#waiting.add(series);
    this.#wake?.();
  }

  /** Its next happening is the first of a new series. */
  #drop(series: Series, why: string): void {
    this.#series.delete(series.key);
    this.#dropped.add({ why });
  }

  async #write(series: Series, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    const { count, namespace, name } = series;
    const isFirst = series.written === 0;
    if (isFirst && this.#options.isEnding?.(namespace)) {
      this.#drop(series, "namespace");
      return;
    }
    const repeated = { series: { count, lastObservedTime: microTime(series.lastWall) } };
    for (let attempt = 0; attempt < attempts && !signal.aborted; attempt++) {
      try {
        const path = objectPath(events, { namespace, name });
        if (isFirst) {
          const body = count === 1 ? series.event : { ...series.event, ...repeated };
          await client.request({ method: "POST", path: path.slice(0, path.lastIndexOf("/")), body, signal });
        } else {
          await client.request({ method: "PATCH", path, contentType: "application/merge-patch+json", body: repeated, signal });
        }
        series.written = count;
        series.writtenAt = clock.elapsed();
        if (series.count > count) this.#scheduleRepeat(series);
        return;
      } catch (thrown) {
        if (isFinal(thrown)) break;
        await pause(clock, 1000 * 2 ** attempt, signal);
      }
    }
    if (!signal.aborted) this.#drop(series, "refused");
  }
}

const attempts = 3;

/** Refused for good: the namespace ends, the event was deleted, or we may not write events. */
const isFinal = (thrown: unknown): boolean =>
  thrown instanceof Error &&
  "status" in thrown &&
  typeof thrown.status === "number" &&
  thrown.status >= 400 &&
  thrown.status < 500 &&
  thrown.status !== 429;

/** At most so many bytes of UTF-8, at a character's end. */
const cut = (note: string): string => {
  const bytes = Buffer.from(note.toWellFormed());
  if (bytes.byteLength <= longestNoteBytes) return note.toWellFormed();
  return `${new TextDecoder().decode(bytes.subarray(0, longestNoteBytes - 6), { stream: true })}…`;
};
