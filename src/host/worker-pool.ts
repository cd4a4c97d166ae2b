import type { HostLimits } from "../api/host.ts";
import { type Failure, failures } from "./failure.ts";
import type { GuestLine } from "./wasi/call-context.ts";
import type { GuestCall, Whereabouts, WorkerReply, WorkerSetup } from "./worker-protocol.ts";
import { WorkerSeat } from "./worker-seat.ts";

/** Watching has a seat of its own. */
export type PoolCall = Exclude<GuestCall, { kind: "watch" }>;

/** A call's end, with how long it waited for a worker and ran in one. */
export interface PoolReply {
  readonly reply: WorkerReply;
  readonly queueMs: number;
  readonly runMs: number;
}

export interface PoolDeps {
  readonly setup: WorkerSetup;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  readonly log: (line: GuestLine) => void;
  /** Cores of the machine. One is left to the thread that speaks HTTP. */
  readonly cores: number;
}

/** Waiting calls per unit of concurrency before further ones are refused as busy. */
const queuedPerWorker = 8;
/** A worker that nobody needed for so long is ended, down to one. */
const idleMs = 15_000;
/** A call waits so long for a worker to become free before another is started: most calls are shorter than a start. */
const growAfterMs = 5;
/** A call that has run so long is no short one: it computes, or awaits something. */
const slowMs = 25;
/** A call that has run so long may yet be ended by its deadline, and its worker with it: a spare is warmed to take its place. */
const suspectAfterMs = 250;

interface Waiting {
  readonly call: PoolCall;
  readonly since: number;
  readonly answer: (reply: PoolReply) => void;
  readonly timers: readonly NodeJS.Timeout[];
}

interface Running {
  readonly queueMs: number;
  readonly started: number;
  readonly answer: (reply: PoolReply) => void;
  readonly timers: readonly NodeJS.Timeout[];
}

interface Place {
  readonly seat: WorkerSeat;
  isReady: boolean;
  running: Running | undefined;
  idleSince: number;
}

/**
 * The worker threads that run a component's calls: one call in flight in each, at most `limits.concurrency` at once. Another is started when a call has
 * to wait, and a spare when a call runs for long, so that a call that ends its worker delays no other. Calls beyond the concurrency wait in a bounded
 * queue, at most as long as a call may run.
 */
export class WorkerPool {
  readonly #deps: PoolDeps;
  readonly #limits: HostLimits;
  readonly #places = new Set<Place>();
  readonly #waiting: Waiting[] = [];
  readonly #sweep: NodeJS.Timeout;
  /** The latest of each kind, for workers that start later. */
  readonly #whereabouts = new Map<Whereabouts["kind"], Whereabouts>();
  #isClosed = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
    this.#limits = deps.setup.limits;
    this.#sweep = setInterval(() => this.#endIdle(), idleMs / 3);
    this.#sweep.unref();
  }

  /** Starts the first worker. Throws `Stalled` with code `ComponentUnstartable`. */
  async start(): Promise<void> {
    await this.#open().ready;
  }

  /** A call whose signal aborts while it waits is not run; once it runs, nothing here ends it but its deadline. */
  run(call: PoolCall, signal?: AbortSignal): Promise<PoolReply> {
    if (this.#isClosed) return Promise.resolve(notRun(failures.unavailable("the host is shutting down"), 0));
    const place = this.#waiting.length === 0 ? this.#free() : undefined;
    return new Promise((answer) => {
      if (place !== undefined) this.#give(place, call, 0, answer);
      else if (this.#waiting.length >= this.#limits.concurrency * queuedPerWorker) answer(notRun(failures.busy(), 0));
      else this.#queue(call, answer, signal);
    });
  }

  /** Where calls may dial from now on. */
  tell(whereabouts: Whereabouts): void {
    this.#whereabouts.set(whereabouts.kind, whereabouts);
    for (const { seat } of this.#places) seat.post(whereabouts);
  }

  get running(): number {
    let count = 0;
    for (const { running } of this.#places) if (running !== undefined) count++;
    return count;
  }

  get workers(): number {
    return this.#places.size;
  }

  /** Takes no more calls, lets those that run finish for at most `graceMs`, and ends all workers. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    this.#answerWaiting(failures.unavailable("the host is shutting down"));
    const until = this.#deps.now() + graceMs;
    while (this.running > 0 && this.#deps.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
    await Promise.all([...this.#places].map(({ seat }) => seat.end(failures.ended("the host shut down"))));
  }

  #free(): Place | undefined {
    let free: Place | undefined;
    let busy = 0;
    for (const place of this.#places) {
      if (place.running !== undefined) busy++;
      else if (place.isReady) free = place;
    }
    return busy < this.#limits.concurrency ? free : undefined;
  }

  #give(place: Place, call: PoolCall, queueMs: number, answer: (reply: PoolReply) => void): void {
    const { timeoutMs } = this.#limits;
    const timers = [setTimeout(() => void place.seat.end(failures.deadline(timeoutMs)), timeoutMs)];
    if (timeoutMs > suspectAfterMs) timers.push(setTimeout(() => this.#grow(), suspectAfterMs));
    place.running = { queueMs, started: this.#deps.now(), answer, timers };
    place.seat.post(call);
  }

  #queue(call: PoolCall, answer: (reply: PoolReply) => void, signal: AbortSignal | undefined): void {
    const timers = [
      setTimeout(() => this.#giveUp(waiting), this.#limits.timeoutMs),
      setInterval(() => this.#growForWaiting(), growAfterMs),
    ];
    const waiting: Waiting = { call, since: this.#deps.now(), answer, timers };
    this.#waiting.push(waiting);
    signal?.addEventListener("abort", () => this.#giveUp(waiting));
    if (this.#places.size === 0) this.#grow();
  }

  #giveUp(waiting: Waiting): void {
    const index = this.#waiting.indexOf(waiting);
    if (index < 0) return;
    this.#waiting.splice(index, 1);
    for (const timer of waiting.timers) clearTimeout(timer);
    waiting.answer(notRun(failures.busy(), this.#deps.now() - waiting.since));
  }

  #answerWaiting(failure: Failure): void {
    for (const { answer, timers, since } of this.#waiting.splice(0)) {
      for (const timer of timers) clearTimeout(timer);
      answer(notRun(failure, this.#deps.now() - since));
    }
  }

  #settle(place: Place, reply: WorkerReply): void {
    const running = place.running;
    if (running === undefined) return;
    for (const timer of running.timers) clearTimeout(timer);
    place.running = undefined;
    place.idleSince = this.#deps.now();
    running.answer({ reply, queueMs: running.queueMs, runMs: place.idleSince - running.started });
  }

  #serveNext(): void {
    for (;;) {
      const place = this.#waiting.length > 0 ? this.#free() : undefined;
      const next = place && this.#waiting.shift();
      if (!place || !next) return;
      for (const timer of next.timers) clearTimeout(timer);
      this.#give(place, next.call, this.#deps.now() - next.since, next.answer);
    }
  }

  /**
   * A call has waited. More workers help it where a core is free for them, or where the running calls take long, as those that await something do; short
   * calls that follow one another on busy cores would only take turns.
   */
  #growForWaiting(): void {
    const now = this.#deps.now();
    const areSlow = [...this.#places].every(({ running }) => running !== undefined && now - running.started > slowMs);
    if (areSlow || this.#places.size < this.#deps.cores - 1) this.#grow();
  }

  /** Starts a worker where all are busy: one at a time, up to one above the concurrency. */
  #grow(): void {
    if (this.#isClosed || this.#places.size > this.#limits.concurrency) return;
    for (const { running } of this.#places) if (running === undefined) return;
    this.#open().ready.catch((error: Error) => {
      if (this.#places.size === 0) this.#answerWaiting(failures.unavailable(error.message));
    });
  }

  #open(): WorkerSeat {
    const seat = new WorkerSeat(this.#deps.setup, {
      reply: (reply) => {
        this.#settle(place, reply);
        this.#serveNext();
      },
      log: this.#deps.log,
      ended: (why) => {
        this.#places.delete(place);
        this.#settle(place, { kind: "failed", ...why, ran: true });
        this.#serveNext();
        if (this.#waiting.length > 0) this.#grow();
      },
    });
    const place: Place = { seat, isReady: false, running: undefined, idleSince: this.#deps.now() };
    this.#places.add(place);
    seat.ready.then(
      () => {
        place.isReady = true;
        for (const whereabouts of this.#whereabouts.values()) seat.post(whereabouts);
        this.#serveNext();
      },
      () => {},
    );
    return seat;
  }

  #endIdle(): void {
    const now = this.#deps.now();
    for (const { seat, running, isReady, idleSince } of this.#places) {
      if (this.#places.size <= 1) return;
      if (running === undefined && isReady && now - idleSince > idleMs) void seat.end(failures.ended("it was idle"));
    }
  }
}

const notRun = (failure: Failure, queueMs: number): PoolReply => ({
  reply: { kind: "failed", ...failure, ran: false },
  queueMs,
  runMs: 0,
});
