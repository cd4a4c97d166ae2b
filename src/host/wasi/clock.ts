/** Time as a component sees it, in nanoseconds. */
export interface Clock {
  /** Never goes back; its zero means nothing. */
  readonly monotonic: () => bigint;
  /** Since 1970-01-01T00:00:00Z. */
  readonly wall: () => bigint;
  /** Blocks the thread until the monotonic time. */
  readonly sleepUntil: (time: bigint) => void;
  /** Calls back at the monotonic time, or a little later; gives what withdraws it. */
  readonly at: (time: bigint, wake: () => void) => () => void;
}

const longestWaitMs = 2 ** 31 - 1;

const millisecondsUntil = (time: bigint): number => {
  const left = time - process.hrtime.bigint();
  return left <= 0n ? 0 : Math.min(Number(left / 1_000_000n) + 1, longestWaitMs);
};

/** The machine's own clocks. */
export const systemClock: Clock = {
  monotonic: () => process.hrtime.bigint(),
  wall: () => BigInt(Date.now()) * 1_000_000n,
  sleepUntil: (time) => {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (let wait = millisecondsUntil(time); wait > 0; wait = millisecondsUntil(time)) Atomics.wait(cell, 0, 0, wait);
  },
  at: (time, wake) => {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      const wait = millisecondsUntil(time);
      timer = setTimeout(() => (process.hrtime.bigint() >= time ? wake() : arm()), wait);
    };
    arm();
    return () => clearTimeout(timer);
  },
};
