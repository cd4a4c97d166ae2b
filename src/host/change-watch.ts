import { failures } from "./failure.ts";
import type { GuestLine } from "./wasi/call-context.ts";
import { guestSuspends } from "./wasi/provided.ts";
import type { Whereabouts, WorkerReply, WorkerSetup } from "./worker-protocol.ts";
import { WorkerSeat } from "./worker-seat.ts";

/** After a watch that failed: this, twice that, and so on. */
const retryMs = { first: 1000, last: 300_000 } as const;

/** A watch that held for so long before it failed is begun anew at once. */
const steadyMs = 60_000;

/** One watch is asked for no sooner after another. */
const restMs = 1000;

/** How often a watch is asked whether it waits, as it should, or computes. */
const pingMs = 5_000;

export interface WatchDeps {
  readonly setup: WorkerSetup;
  readonly log: (line: GuestLine) => void;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  /** The component says that its tools may have changed, or that it may have missed to say so. */
  readonly changed: () => void;
}

/**
 * Waits for a component to tell that its tools have changed: `watch` of `ambit:tool/changes`, in a thread and an instance of its own, which no deadline ends and no call
 * uses. A watch that computes for long is ended and begun anew, as is one that fails.
 */
export class ChangeWatch {
  readonly #deps: WatchDeps;
  readonly #ping: NodeJS.Timeout;
  #seat: WorkerSeat | undefined;
  readonly #whereabouts = new Map<Whereabouts["kind"], Whereabouts>();
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #isClosed = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
    // Only a guest that suspends leaves its thread while it waits.
    const canAnswer = guestSuspends(deps.setup.component.imports);
    this.#ping = setInterval(() => {
      if (canAnswer && this.#seat?.isResponsive() === false) void this.#seat.end(failures.ended("its watch computes instead of waiting"));
    }, pingMs);
    this.#ping.unref();
  }

  start(): void {
    const { now } = this.#deps;
    const started = now();
    const setup = { ...this.#deps.setup, callsPerInstance: Number.POSITIVE_INFINITY };
    const seat = new WorkerSeat(setup, {
      reply: (reply) => this.#heard(seat, reply),
      log: this.#deps.log,
      ended: () => {
        if (this.#seat === seat) this.#seat = undefined;
        if (now() - started > steadyMs) this.#failures = 0;
        this.#again();
      },
    });
    this.#seat = seat;
    seat.ready.then(
      () => {
        for (const whereabouts of this.#whereabouts.values()) seat.post(whereabouts);
        seat.post({ kind: "watch" });
      },
      () => {},
    );
  }

  tell(whereabouts: Whereabouts): void {
    this.#whereabouts.set(whereabouts.kind, whereabouts);
    this.#seat?.post(whereabouts);
  }

  /** Watches in a new instance: what the one before was given is another now. */
  renew(): void {
    if (this.#isClosed) return;
    this.#failures = 0;
    if (this.#seat !== undefined) void this.#seat.end(failures.ended("what it was given has changed"));
    else this.#again();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#ping);
    clearTimeout(this.#timer);
    await this.#seat?.end(failures.ended("the host shut down"));
  }

  #heard(seat: WorkerSeat, reply: WorkerReply): void {
    if (reply.kind !== "news") {
      const why = reply.kind === "unlisted" ? reply.why : reply.kind === "failed" ? reply.text : "";
      this.#deps.log({ stream: "host", text: `watching for changes failed: ${why}`, cut: false });
      void seat.end(failures.ended("its watch failed"));
      return;
    }
    if (!reply.hasChanged) {
      // Nothing will be told: the thread is not needed any more.
      this.#isClosed = true;
      void seat.end(failures.ended("its far side does not tell of changes"));
      return;
    }
    this.#deps.changed();
    this.#timer = setTimeout(() => seat.post({ kind: "watch" }), restMs);
  }

  #again(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => {
        this.#deps.changed();
        this.start();
      },
      Math.min(retryMs.first * 2 ** this.#failures++, retryMs.last),
    );
    this.#timer.unref();
  }
}
