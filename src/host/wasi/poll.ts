import { Invalid } from "../../api/errors.ts";
import type { CallContext } from "./call-context.ts";

/** When something that a guest waits for is ready. */
export type Readiness =
  | { readonly kind: "always" }
  /** At a monotonic time, in nanoseconds. */
  | { readonly kind: "at"; readonly time: bigint }
  /** `wait` calls back once, soon after `isReady` holds; it gives what withdraws the wait. */
  | { readonly kind: "event"; readonly isReady: () => boolean; readonly wait: (wake: () => void) => () => void };

/** Longest list that `poll` takes: more than a guest has things to wait for. */
const longestPoll = 4096;

/** `wasi:io/poll`: the resource. */
export class Pollable {
  readonly #context: CallContext;
  readonly #readiness: Readiness;

  constructor(context: CallContext, readiness: Readiness) {
    this.#context = context;
    this.#readiness = readiness;
  }

  ready(): boolean {
    return isReady(this.#context, this.#readiness);
  }

  block(): void | Promise<void> {
    return blockOn(this.#context, [this.#readiness]);
  }

  static poll(pollables: readonly Pollable[]): Uint32Array | Promise<Uint32Array> {
    const [first] = pollables;
    if (first === undefined) return trapping(new Invalid("PollOfNothing", "the component polled an empty list"));
    if (pollables.length > longestPoll) {
      return trapping(new Invalid("PollTooLong", `the component polled more than ${longestPoll} things at once`));
    }
    const readyNow = (): Uint32Array => Uint32Array.from(pollables.flatMap((pollable, index) => (pollable.ready() ? [index] : [])));
    const now = readyNow();
    if (now.length > 0) return now;
    const wait = blockOn(
      first.#context,
      pollables.map((pollable) => pollable.#readiness),
    );
    return wait === undefined ? readyNow() : wait.then(readyNow);
  }
}

/**
 * A list that ends the instance with the error once it is lowered. Thrown from an asynchronous import without a `result`, an error would be lost: jco 0.15
 * then leaves the guest suspended for ever.
 */
const trapping = (error: Error): Uint32Array =>
  Object.defineProperty(new Uint32Array(), "length", {
    get: () => {
      throw error;
    },
  });

const isReady = (context: CallContext, readiness: Readiness): boolean => {
  switch (readiness.kind) {
    case "always":
      return true;
    case "at":
      return context.options.clock.monotonic() >= readiness.time;
    case "event":
      return readiness.isReady();
  }
};

/** Waits until one of them is ready: at once, by blocking the thread where the guest cannot be suspended, or with a promise. */
export const blockOn = (context: CallContext, all: readonly Readiness[]): void | Promise<void> => {
  if (all.some((one) => isReady(context, one))) return undefined;
  if (!context.suspends) return sleepThrough(context, all);
  return new Promise((resolve) => {
    const withdrawals: (() => void)[] = [];
    const waiting: Disposable = {
      [Symbol.dispose]: () => {
        for (const withdraw of withdrawals) withdraw();
      },
    };
    const wake = (): void => {
      waiting[Symbol.dispose]();
      context.release(waiting);
      resolve();
    };
    // Held before anything is armed: a call that has ended meanwhile must not leave a timer behind.
    context.hold(waiting);
    for (const one of all) {
      if (one.kind === "at") withdrawals.push(context.options.clock.at(one.time, wake));
      if (one.kind === "event") withdrawals.push(one.wait(wake));
    }
  });
};

const sleepThrough = (context: CallContext, all: readonly Readiness[]): void => {
  const times = all.filter((one) => one.kind === "at").map((one) => one.time);
  const earliest = times.reduce<bigint | null>((least, time) => (least === null || time < least ? time : least), null);
  if (earliest === null)
    throw new Invalid("WaitWithoutEnd", "the component waits for something that cannot happen while it blocks its thread");
  context.options.clock.sleepUntil(earliest);
};
