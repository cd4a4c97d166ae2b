import { Worker } from "node:worker_threads";
import type { HostLimits } from "../api/host.ts";
import { type Failure, failures } from "./failure.ts";
import type { GuestLine } from "./wasi/call-context.ts";
import type { FromWorker, ToWorker, WorkerReply, WorkerSetup } from "./worker-protocol.ts";

export interface PoolCall {
  readonly interface: string | null;
  readonly function: string;
  readonly arguments: string;
}

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
}

/** Waiting calls per unit of concurrency before further ones are refused as busy. */
const queuedPerWorker = 8;
/** A worker that nobody needed for so long is ended, down to the one kept warm. */
const idleMs = 15_000;
/** Longest time for a worker to load the component and make its first instances. */
const startMs = 60_000;
/** JavaScript heap of one worker, above what a call's result may take there. */
const heapMegabytes = 96;
const stackMegabytes = 4;

interface Waiting {
  readonly call: PoolCall;
  readonly since: number;
  readonly answer: (reply: PoolReply) => void;
  readonly patience: NodeJS.Timeout;
}

interface Running {
  readonly id: number;
  readonly queueMs: number;
  readonly started: number;
  readonly answer: (reply: PoolReply) => void;
  readonly deadline: NodeJS.Timeout;
}

interface Seat {
  readonly worker: Worker;
  isReady: boolean;
  running: Running | undefined;
  idleSince: number;
}

/**
 * The worker threads that run a component's calls: one call in flight in each, at most `limits.concurrency` calls at once, and one warm worker more than
 * are busy, so that a call that ends its worker delays no other. Calls beyond that wait in a bounded queue.
 */
export class WorkerPool {
  readonly #deps: PoolDeps;
  readonly #limits: HostLimits;
  readonly #seats = new Set<Seat>();
  readonly #waiting: Waiting[] = [];
  readonly #sweep: NodeJS.Timeout;
  #addresses: Extract<ToWorker, { kind: "addresses" }> | undefined;
  #nextId = 0;
  #startFailure: Failure | undefined;
  #isClosed = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
    this.#limits = deps.setup.limits;
    this.#sweep = setInterval(() => this.#endIdle(), idleMs / 3);
    this.#sweep.unref();
  }

  /** Starts the first worker; throws its failure to load the component or to make an instance. */
  async start(): Promise<void> {
    await this.#open();
  }

  run(call: PoolCall): Promise<PoolReply> {
    const since = this.#deps.now();
    if (this.#isClosed) return Promise.resolve(notRun(failures.unavailable("the host is shutting down"), 0));
    const seat = this.#free();
    return new Promise((answer) => {
      if (seat !== undefined) {
        this.#give(seat, call, 0, answer);
      } else if (this.#waiting.length >= this.#limits.concurrency * queuedPerWorker) {
        answer(notRun(failures.busy(), 0));
      } else {
        const waiting: Waiting = { call, since, answer, patience: setTimeout(() => this.#giveUp(waiting), this.#limits.timeoutMs) };
        this.#waiting.push(waiting);
        this.#grow();
      }
    });
  }

  dialOnly(table: Readonly<Record<string, readonly string[]>>): void {
    this.#addresses = { kind: "addresses", table };
    for (const seat of this.#seats) seat.worker.postMessage(this.#addresses);
  }

  get running(): number {
    let count = 0;
    for (const seat of this.#seats) if (seat.running !== undefined) count++;
    return count;
  }

  /** Takes no more calls, lets those that run finish for at most `graceMs`, and ends all workers. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    for (const { answer, patience, since } of this.#waiting.splice(0)) {
      clearTimeout(patience);
      answer(notRun(failures.unavailable("the host is shutting down"), this.#deps.now() - since));
    }
    const until = this.#deps.now() + graceMs;
    while (this.running > 0 && this.#deps.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
    await Promise.all([...this.#seats].map((seat) => this.#end(seat, failures.ended())));
  }

  #free(): Seat | undefined {
    let free: Seat | undefined;
    let busy = 0;
    for (const seat of this.#seats) {
      if (seat.running !== undefined) busy++;
      else if (seat.isReady) free = seat;
    }
    return busy < this.#limits.concurrency ? free : undefined;
  }

  #give(seat: Seat, call: PoolCall, queueMs: number, answer: (reply: PoolReply) => void): void {
    const id = this.#nextId++;
    const deadline = setTimeout(() => void this.#end(seat, failures.deadline(this.#limits.timeoutMs)), this.#limits.timeoutMs);
    seat.running = { id, queueMs, started: this.#deps.now(), answer, deadline };
    const message: ToWorker = { kind: "call", id, interface: call.interface, function: call.function, arguments: call.arguments };
    seat.worker.postMessage(message);
    this.#grow();
  }

  #giveUp(waiting: Waiting): void {
    const index = this.#waiting.indexOf(waiting);
    if (index < 0) return;
    this.#waiting.splice(index, 1);
    waiting.answer(notRun(this.#startFailure ?? failures.busy(), this.#deps.now() - waiting.since));
  }

  #settle(seat: Seat, reply: WorkerReply): void {
    const running = seat.running;
    if (running === undefined) return;
    clearTimeout(running.deadline);
    seat.running = undefined;
    seat.idleSince = this.#deps.now();
    running.answer({ reply, queueMs: running.queueMs, runMs: seat.idleSince - running.started });
  }

  #serveNext(): void {
    for (;;) {
      const seat = this.#waiting.length > 0 ? this.#free() : undefined;
      const next = seat && this.#waiting.shift();
      if (!seat || !next) return;
      clearTimeout(next.patience);
      this.#give(seat, next.call, this.#deps.now() - next.since, next.answer);
    }
  }

  /** Keeps one worker more than are busy, up to one above the concurrency. */
  #grow(): void {
    if (this.#isClosed) return;
    const wanted = Math.min(this.running + 1, this.#limits.concurrency + 1);
    if (this.#seats.size >= wanted) return;
    this.#open().catch((error: Error) => this.#failStart(error));
  }

  /** A worker that can't start keeps waiting calls waiting for ever if nobody says so. One that started before is tried again. */
  #failStart(error: Error): void {
    this.#startFailure = failures.unavailable(error.message);
    if (this.#seats.size > 0) return;
    for (const { answer, patience, since } of this.#waiting.splice(0)) {
      clearTimeout(patience);
      answer(notRun(this.#startFailure, this.#deps.now() - since));
    }
  }

  async #open(): Promise<void> {
    const worker = new Worker(new URL(`./worker${import.meta.url.slice(-3)}`, import.meta.url), {
      workerData: this.#deps.setup,
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes, stackSizeMb: stackMegabytes },
    });
    const seat: Seat = { worker, isReady: false, running: undefined, idleSince: this.#deps.now() };
    this.#seats.add(seat);
    await new Promise<void>((started, failed) => {
      const tooLate = setTimeout(() => {
        failed(new Error(`it was not ready within ${startMs / 1000} s`));
        void this.#end(seat, failures.ended());
      }, startMs);
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") {
          clearTimeout(tooLate);
          started();
        }
        this.#hear(seat, message);
      });
      worker.on("error", (error: Error & { code?: string }) => {
        clearTimeout(tooLate);
        failed(error);
        const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
        void this.#end(seat, isMemory ? failures.outOfMemory(this.#limits.memoryBytes) : failures.ended());
      });
      worker.on("exit", () => {
        clearTimeout(tooLate);
        failed(new Error("it ended while it started"));
        void this.#end(seat, failures.ended());
      });
    });
  }

  #hear(seat: Seat, message: FromWorker): void {
    if (message.kind === "log") {
      this.#deps.log(message.line);
      return;
    }
    if (message.kind === "ready") {
      seat.isReady = true;
      if (this.#addresses !== undefined) seat.worker.postMessage(this.#addresses);
    } else {
      this.#settle(seat, message.reply);
    }
    this.#serveNext();
  }

  /** Ends a worker; a call that runs in it has that failure. Its place is taken by the warm one, and a new one is warmed. */
  async #end(seat: Seat, why: Failure): Promise<void> {
    if (!this.#seats.delete(seat)) return;
    this.#settle(seat, { kind: "failed", ...why, ran: true });
    this.#serveNext();
    this.#grow();
    await seat.worker.terminate();
  }

  #endIdle(): void {
    const now = this.#deps.now();
    for (const seat of this.#seats) {
      if (this.#seats.size <= this.running + 1) return;
      if (seat.running === undefined && seat.isReady && now - seat.idleSince > idleMs) void this.#end(seat, failures.ended());
    }
  }
}

const notRun = (failure: Failure, queueMs: number): PoolReply => ({
  reply: { kind: "failed", ...failure, ran: false },
  queueMs,
  runMs: 0,
});
