import { Transient } from "../api/errors.ts";
import { abortScope } from "./abort-scope.ts";
import { isConflict } from "./api-error.ts";
import { type Clock, jittered, type Random } from "./clock.ts";
import { type MetricsRegistry, noMetrics, secondBuckets } from "./metrics.ts";
import { type ClusterObject, keyOf, parseKey } from "./object.ts";
import { type Outcome, outcomeOf, type Reconciler } from "./reconciler.ts";
import type { Store } from "./store.ts";
import { type BackOff, WorkQueue } from "./work-queue.ts";

export interface ControllerOptions {
  /** In metrics and logs: `workload`. */
  readonly name: string;
  readonly reconcile: Reconciler;
  /** How many keys are worked on at once; one key never twice. */
  readonly workers: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics?: MetricsRegistry;
  readonly onEvent?: (event: ControllerEvent) => void;
  readonly timing?: ControllerTiming;
}

export interface ControllerTiming {
  /** A reconcile that takes longer is told to end by its signal, and comes back later. */
  readonly reconcileMs: number;
  readonly backOff?: BackOff;
}

export const defaultControllerTiming: ControllerTiming = { reconcileMs: 120_000 };

/** For the log. `conflict`: somebody else wrote meanwhile, which is no fault. */
export type ControllerEvent =
  | { readonly type: "reconciled"; readonly key: string; readonly outcome: Outcome; readonly ms: number }
  | { readonly type: "conflict" | "failed"; readonly key: string; readonly error: unknown; readonly ms: number };

/** Feeds keys from stores to a reconciler, and maps what comes of each to when it is looked at again. */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #timing: ControllerTiming;
  readonly #queue: WorkQueue;
  readonly #metrics: ReconcileMetrics;

  constructor(options: ControllerOptions) {
    const { name, clock, random, metrics = noMetrics, timing = defaultControllerTiming } = options;
    this.#options = options;
    this.#timing = timing;
    this.#queue = new WorkQueue({ name, clock, random, metrics, ...(timing.backOff === undefined ? {} : { backOff: timing.backOff }) });
    this.#metrics = reconcileMetrics(metrics, name, options.workers);
  }

  /** Looks at the objects of a store: at each one there is, and at each that changes, goes or comes. */
  owns<T extends ClusterObject>(store: Store<T>): () => void {
    return this.watches(store, (object) => [keyOf(object)]);
  }

  /** Looks at the objects that `affects` names whenever an object of another store changes; before a change and after it. */
  watches<T extends ClusterObject>(store: Store<T>, affects: (object: T) => readonly string[]): () => void {
    return store.subscribe((change) => {
      const before = change.type === "updated" ? affects(change.previous) : [];
      for (const key of new Set([...before, ...affects(change.object)])) this.#queue.add(key);
    });
  }

  /** Looks at an object for a reason that no store knows, at once or later. */
  enqueue(key: string, afterMs = 0): void {
    this.#queue.addAfter(key, afterMs);
  }

  /** Works until the signal aborts and what is being worked on has ended. Begin when the stores are synced. */
  async run(signal: AbortSignal): Promise<void> {
    const close = (): void => this.#queue.close();
    signal.addEventListener("abort", close, { once: true });
    if (signal.aborted) close();
    try {
      await Promise.all(Array.from({ length: this.#options.workers }, () => this.#work(signal)));
    } finally {
      signal.removeEventListener("abort", close);
      close();
    }
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (;;) {
      const key = await this.#queue.get();
      if (key === undefined) return;
      try {
        await this.#reconcile(key, signal);
      } finally {
        this.#queue.done(key);
      }
    }
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<void> {
    const { clock, reconcile, onEvent } = this.#options;
    const started = clock.elapsed();
    const scope = abortScope(signal);
    const { reconcileMs } = this.#timing;
    const cancel = clock.after(reconcileMs, () =>
      scope.abort(new Transient("ReconcileTimeout", `looking at ${key} took longer than ${reconcileMs / 1000} s`)),
    );
    this.#metrics.began();
    try {
      const outcome = await settle(() => reconcile(parseKey(key), scope.signal));
      const ms = clock.elapsed() - started;
      if (signal.aborted) return;
      this.#metrics.ended(outcome, ms);
      if ("thrown" in outcome) {
        this.#queue.addRateLimited(key);
        onEvent?.({ type: isConflict(outcome.thrown) ? "conflict" : "failed", key, error: outcome.thrown, ms });
      } else {
        this.#queue.forget(key);
        if (outcome.kind === "waiting") this.#queue.addAfter(key, jittered(this.#options.random, outcome.retryAfterMs, 0.1));
        onEvent?.({ type: "reconciled", key, outcome, ms });
      }
    } finally {
      cancel();
      scope.release();
      this.#metrics.left();
    }
  }
}

const settle = async (work: () => Promise<Outcome>): Promise<Outcome | { readonly thrown: unknown }> => {
  try {
    return await work();
  } catch (thrown) {
    return outcomeOf(thrown) ?? { thrown };
  }
};

type ReconcileMetrics = ReturnType<typeof reconcileMetrics>;

/** The names and results of controller-runtime, so that its dashboards and alerts fit. */
const reconcileMetrics = (metrics: MetricsRegistry, controller: string, workers: number) => {
  const labels = ["controller"];
  const total = metrics.counter({
    name: "controller_runtime_reconcile_total",
    help: "Reconciles, by result: success, requeue_after, error.",
    labels: ["controller", "result"],
  });
  const errors = metrics.counter({ name: "controller_runtime_reconcile_errors_total", help: "Reconciles that failed.", labels });
  const terminal = metrics.counter({
    name: "controller_runtime_terminal_reconcile_errors_total",
    help: "Reconciles that a person must act on.",
    labels,
  });
  const seconds = metrics.histogram({
    name: "controller_runtime_reconcile_time_seconds",
    help: "How long a reconcile took.",
    labels,
    buckets: secondBuckets,
  });
  metrics
    .gauge({ name: "controller_runtime_max_concurrent_reconciles", help: "Workers that there are.", labels })
    .set({ controller }, workers);
  const active = metrics.gauge({ name: "controller_runtime_active_workers", help: "Workers that are looking at a key.", labels });
  let working = 0;
  const report = (by: number): void => {
    working += by;
    active.set({ controller }, working);
  };
  return {
    began: () => report(1),
    left: () => report(-1),
    ended: (outcome: Outcome | { readonly thrown: unknown }, ms: number): void => {
      const failed = "thrown" in outcome;
      const result = failed ? "error" : outcome.kind === "waiting" ? "requeue_after" : "success";
      total.add({ controller, result });
      if (failed) errors.add({ controller });
      else if (outcome.kind === "stalled") terminal.add({ controller });
      seconds.observe({ controller }, ms / 1000);
    },
  };
};
