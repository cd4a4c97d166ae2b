import { Worker } from "node:worker_threads";
import { Stalled } from "../api/errors.ts";
import { type Failure, failures } from "./failure.ts";
import type { GuestLine } from "./wasi/call-context.ts";
import type { FromWorker, ToWorker, WorkerReply, WorkerSetup } from "./worker-protocol.ts";

/** Longest time for a worker to load the component's code; making its first instances then has the time of a call. */
const loadMs = 20_000;
/** JavaScript heap of one worker, above what a call's result may take there. */
const heapMegabytes = 256;
/** What is new in that heap: most of a call dies young, and a larger nursery is memory that every worker keeps. */
const youngMegabytes = 8;
const stackMegabytes = 4;

/** What a seat tells of itself, in the order in which it happens; `ended` is the last, once. */
export interface SeatEvents {
  readonly reply: (reply: WorkerReply) => void;
  readonly log: (line: GuestLine) => void;
  readonly ended: (why: Failure) => void;
}

/** One worker thread and what it is doing. */
export class WorkerSeat {
  readonly #worker: Worker;
  readonly #events: SeatEvents;
  #hasEnded = false;
  #isAwaited = false;

  /** Starts the thread; `ready` settles once its first instance is made, or rejects with `Stalled` (`ComponentUnstartable`). */
  constructor(setup: WorkerSetup, events: SeatEvents) {
    this.#events = events;
    this.#worker = new Worker(new URL(`./worker${import.meta.url.slice(-3)}`, import.meta.url), {
      workerData: setup,
      env: workerEnvironment(),
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes, maxYoungGenerationSizeMb: youngMegabytes, stackSizeMb: stackMegabytes },
    });
    this.ready = new Promise((ready, failed) => {
      const unstartable = (why: Failure): void => {
        failed(new Stalled("ComponentUnstartable", `the component can't be instantiated: ${why.text}`));
        this.end(why);
      };
      const timer = (ms: number): NodeJS.Timeout => setTimeout(() => unstartable(failures.deadline(ms)), ms);
      let limit = timer(loadMs);
      this.#worker.on("message", (message: FromWorker) => {
        switch (message.kind) {
          case "loaded":
            clearTimeout(limit);
            limit = timer(setup.limits.timeoutMs);
            return;
          case "ready":
            clearTimeout(limit);
            ready();
            return;
          case "unstartable":
            clearTimeout(limit);
            unstartable(message.failure);
            return;
          case "reply":
            this.#events.reply(message.reply);
            return;
          case "pong":
            this.#isAwaited = false;
            return;
          case "log":
            this.#events.log(message.line);
        }
      });
      this.#worker.on("error", (error: Error & { code?: string }) => {
        clearTimeout(limit);
        const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
        unstartable(isMemory ? failures.outOfMemory(setup.limits.memoryBytes) : failures.ended(error.message));
      });
      this.#worker.on("exit", () => {
        clearTimeout(limit);
        unstartable(failures.ended("its thread ended"));
      });
    });
  }

  readonly ready: Promise<void>;

  post(message: ToWorker): void {
    this.#worker.postMessage(message, message.kind === "serve" ? [message.port] : []);
  }

  /** Whether the thread has answered since it was last asked; asks it again. One that computes does not answer. */
  isResponsive(): boolean {
    const isResponsive = !this.#isAwaited;
    this.#isAwaited = true;
    this.post({ kind: "ping" });
    return isResponsive;
  }

  /** Ends the thread, whatever it does; tells `ended` at once. */
  end(why: Failure): Promise<number> {
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      this.#events.ended(why);
    }
    return this.#worker.terminate();
  }
}

/** A worker sees nothing of the process's environment but where compiled code is kept. */
const workerEnvironment = (): NodeJS.ProcessEnv => {
  const { NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
};
