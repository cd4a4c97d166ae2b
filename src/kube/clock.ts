/** Time as this folder uses it: passed in, so that a test decides when it passes. */
export interface Clock {
  /** Wall time, in milliseconds since 1970: for what others read. May jump. */
  now(): number;
  /** Milliseconds since some start: for measuring. Never goes back. */
  elapsed(): number;
  /** Runs `task` once after `ms`; the returned function takes it back. */
  after(ms: number, task: () => void): () => void;
}

/** A number of [0, 1), as `Math.random` gives. */
export type Random = () => number;

/** Timers beyond this fire at once in Node. */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after: (ms, task) => {
    const timer = setTimeout(task, Math.min(Math.max(ms, 0), longestTimerMs));
    return () => clearTimeout(timer);
  },
};

/** Resolves after `ms`, or as soon as the signal aborts: the caller looks at its signal. */
export const pause = (clock: Clock, ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const wake = (): void => {
      cancel();
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const cancel = clock.after(ms, wake);
    signal.addEventListener("abort", wake, { once: true });
  });

/** `ms` and up to `share` of it more, so that many who wait for the same do not come back together. */
export const jittered = (random: Random, ms: number, share = 1): number => ms * (1 + random() * share);
