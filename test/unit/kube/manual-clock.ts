import type { Clock } from "../../../src/kube/clock.ts";

interface Timer {
  readonly at: number;
  readonly task: () => void;
}

/** Time passes only by `pass`; timers then run in the order in which they are due. */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>();
  #elapsed = 0;
  /** Between wall time and elapsed time; a test may let it jump. */
  wallOffset = Date.UTC(2026, 0, 1);

  now(): number {
    return this.wallOffset + this.#elapsed;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#elapsed + ms, task };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Milliseconds until the next timer is due. */
  get nextIn(): number | undefined {
    return this.#next() === undefined ? undefined : Math.min(...[...this.#timers].map((timer) => timer.at - this.#elapsed));
  }

  pass(ms: number): void {
    const until = this.#elapsed + ms;
    for (let due = this.#next(); due !== undefined && due.at <= until; due = this.#next()) {
      this.#elapsed = Math.max(this.#elapsed, due.at);
      this.#timers.delete(due);
      due.task();
    }
    this.#elapsed = until;
  }

  #next(): Timer | undefined {
    return [...this.#timers].sort((a, b) => a.at - b.at)[0];
  }
}
