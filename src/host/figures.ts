import type { HostUse } from "../api/host.ts";

/** Milliseconds to the microsecond. */
export const millis = (value: number): number => Math.round(value * 1000) / 1000;

/** As it is told to others. */
export const roundedUse = ({ exchanges, ...counts }: HostUse): HostUse => ({
  ...counts,
  exchanges: exchanges.map(({ atMs, ms, ...rest }) => ({ ...rest, atMs: millis(atMs), ms: millis(ms) })),
});
