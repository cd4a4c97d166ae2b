import type { CallContext } from "./call-context.ts";
import { Pollable } from "./poll.ts";

export interface Datetime {
  readonly seconds: bigint;
  readonly nanoseconds: number;
}

export const datetimeOf = (nanoseconds: bigint): Datetime => ({
  seconds: nanoseconds / 1_000_000_000n,
  nanoseconds: Number(nanoseconds % 1_000_000_000n),
});

export const wallClockOf = (context: CallContext) => ({
  now: (): Datetime => datetimeOf(context.options.clock.wall()),
  resolution: (): Datetime => datetimeOf(1_000_000n),
});

export const monotonicClockOf = (context: CallContext) => ({
  now: (): bigint => context.options.clock.monotonic(),
  resolution: (): bigint => 1_000_000n,
  subscribeInstant: (time: bigint): Pollable => new Pollable(context, { kind: "at", time }),
  subscribeDuration: (duration: bigint): Pollable =>
    new Pollable(context, { kind: "at", time: context.options.clock.monotonic() + duration }),
});
