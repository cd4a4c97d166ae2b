import type { Clock, Random } from "./clock.ts";
import { type MetricsRegistry, noMetrics, secondBuckets } from "./metrics.ts";
import { TokenBucket } from "./token-bucket.ts";

export interface WorkQueueOptions {
  /** Names the queue in metrics. */
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly backOff?: BackOff;
  readonly metrics?: MetricsRegistry;
}

export interface BackOff {
  /** After a key's first failure; doubled with each further one. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** Keys that come back after a failure, all together: as many a second, and as many at once. */
  readonly perSecond: number;
  readonly burst: number;
}

export const defaultBackOff: BackOff = { firstMs: 50, longestMs: 300_000, perSecond: 10, burst: 100 };

/**
 * Keys that somebody should look at, with the semantics of client-go's work queue:
 *
 * - a key that is added again while it waits is handed out once;
 * - a key that is added while it is being worked on is handed out again after `done`, never to a second worker at the same time;
 * - keys come in the order in which they were first added.
 */
export class WorkQueue {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #backOff: BackOff;
  readonly #bucket: TokenBucket;
  /** Sets hold their members in the order of adding. */
  readonly #waiting = new Set<string>();
  readonly #processing = new Set<string>();
  /** Added while being worked on. */
  readonly #again = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #later = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  readonly #idle: ((key: string | undefined) => void)[] = [];
  readonly #addedAt = new Map<string, number>();
  readonly #startedAt = new Map<string, number>();
  readonly #metrics: QueueMetrics;
  #closed = false;

  constructor({ name, clock, random, backOff = defaultBackOff, metrics = noMetrics }: WorkQueueOptions) {
    this.#name = name;
    this.#clock = clock;
    this.#random = random;
    this.#backOff = backOff;
    this.#bucket = new TokenBucket(clock, backOff.perSecond, backOff.burst);
    this.#metrics = queueMetrics(metrics, () => this.#collect());
  }

  /** Keys that wait for a worker now; not those that were added for later. */
  get length(): number {
    return this.#waiting.size;
  }

  add(key: string): void {
    if (this.#closed || this.#waiting.has(key) || this.#again.has(key)) return;
    this.#metrics.adds.add({ name: this.#name });
    this.#addedAt.set(key, this.#clock.elapsed());
    if (this.#processing.has(key)) this.#again.add(key);
    else this.#offer(key);
  }

  /** Adds the key when `ms` have passed. Of several such wishes for one key the earliest holds. */
  addAfter(key: string, ms: number): void {
    if (this.#closed) return;
    if (ms <= 0) {
      this.#cancelLater(key);
      this.add(key);
      return;
    }
    const at = this.#clock.elapsed() + ms;
    const known = this.#later.get(key);
    if (known !== undefined && known.at <= at) return;
    known?.cancel();
    const cancel = this.#clock.after(ms, () => {
      this.#later.delete(key);
      this.add(key);
    });
    this.#later.set(key, { at, cancel });
  }

  /** Adds the key after its back-off, which grows with each call until `forget`. */
  addRateLimited(key: string): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#metrics.retries.add({ name: this.#name });
    const { firstMs, longestMs } = this.#backOff;
    const ownMs = Math.min(firstMs * 2 ** Math.min(failures, 52), longestMs);
    this.addAfter(key, Math.max(ownMs * (0.5 + this.#random() / 2), this.#bucket.takeLater()));
  }

  /** The key's work succeeded, or failed for good: its next failure is its first. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  failuresOf(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, which is the caller's until `done`; undefined when the queue is closed. */
  get(): Promise<string | undefined> {
    const [next] = this.#waiting;
    if (this.#closed) return Promise.resolve(undefined);
    if (next === undefined) return new Promise((resolve) => this.#idle.push(resolve));
    this.#waiting.delete(next);
    this.#start(next);
    return Promise.resolve(next);
  }

  done(key: string): void {
    const started = this.#startedAt.get(key);
    if (started !== undefined) this.#metrics.workSeconds.observe({ name: this.#name }, (this.#clock.elapsed() - started) / 1000);
    this.#startedAt.delete(key);
    this.#processing.delete(key);
    if (this.#again.delete(key) && !this.#closed) this.#offer(key);
  }

  /** Hands out nothing more and drops what waits: another process, or the next start, looks at everything anyway. */
  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#later.values()) cancel();
    this.#later.clear();
    this.#waiting.clear();
    this.#again.clear();
    for (const resolve of this.#idle.splice(0)) resolve(undefined);
    this.#reportDepth();
  }

  #offer(key: string): void {
    const worker = this.#idle.shift();
    if (worker) {
      this.#start(key);
      worker(key);
    } else {
      this.#waiting.add(key);
      this.#reportDepth();
    }
  }

  #start(key: string): void {
    const now = this.#clock.elapsed();
    this.#processing.add(key);
    this.#startedAt.set(key, now);
    this.#metrics.queueSeconds.observe({ name: this.#name }, (now - (this.#addedAt.get(key) ?? now)) / 1000);
    this.#addedAt.delete(key);
    this.#reportDepth();
  }

  #cancelLater(key: string): void {
    this.#later.get(key)?.cancel();
    this.#later.delete(key);
  }

  #reportDepth(): void {
    this.#metrics.depth.set({ name: this.#name }, this.#waiting.size);
  }

  #collect(): void {
    const now = this.#clock.elapsed();
    const running = [...this.#startedAt.values()].map((started) => (now - started) / 1000);
    this.#metrics.unfinishedSeconds.set(
      { name: this.#name },
      running.reduce((sum, seconds) => sum + seconds, 0),
    );
    this.#metrics.longestSeconds.set({ name: this.#name }, Math.max(0, ...running));
  }
}

type QueueMetrics = ReturnType<typeof queueMetrics>;

/** The names and meanings of controller-runtime, so that its dashboards fit. */
const queueMetrics = (metrics: MetricsRegistry, collect: () => void) => {
  const labels = ["name"];
  return {
    depth: metrics.gauge({ name: "workqueue_depth", help: "Keys that wait for a worker.", labels }),
    adds: metrics.counter({ name: "workqueue_adds_total", help: "Keys that were added.", labels }),
    retries: metrics.counter({ name: "workqueue_retries_total", help: "Keys that were added again after a failure.", labels }),
    queueSeconds: metrics.histogram({
      name: "workqueue_queue_duration_seconds",
      help: "How long keys waited for a worker.",
      labels,
      buckets: secondBuckets,
    }),
    workSeconds: metrics.histogram({
      name: "workqueue_work_duration_seconds",
      help: "How long working on a key took.",
      labels,
      buckets: secondBuckets,
    }),
    unfinishedSeconds: metrics.gauge({
      name: "workqueue_unfinished_work_seconds",
      help: "How long the keys being worked on have been, summed.",
      labels,
      collect,
    }),
    longestSeconds: metrics.gauge({
      name: "workqueue_longest_running_processor_seconds",
      help: "How long the key that has been worked on longest has been.",
      labels,
    }),
  };
};
