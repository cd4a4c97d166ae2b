import { Invalid } from "../api/errors.ts";
import type { EgressBudget, RateLimit } from "../api/generated/toolgrant.ts";

/** At most `max` of something within any `windowMs`. */
export interface WindowLimit {
  readonly max: number;
  readonly windowMs: number;
}

const second = 1000;
const windowUnits: Readonly<Record<string, number>> = { s: second, m: 60 * second, h: 3600 * second, d: 24 * 3600 * second };
const byteUnits: Readonly<Record<string, number>> = { "": 1, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 };

/** No limit counts for longer. */
const longestWindowMs = 31 * 24 * 3600 * second;

/** `90s`, `1m`, `24h`, `31d`, in milliseconds. Throws `Invalid` (`WindowInvalid`) for anything else, and beyond 31 days. */
export const windowMs = (text: string): number => {
  const ms = amount(text, /^([1-9][0-9]{0,4})([smhd])$/, windowUnits);
  if (ms === null || ms > longestWindowMs) throw new Invalid("WindowInvalid", `${JSON.stringify(text)} is no window of at most 31 days`);
  return ms;
};

/** Throws `Invalid` (`WindowInvalid`) for what the schema of a ToolGrant would not have admitted. */
export const callsWithin = ({ count, window }: RateLimit): WindowLimit => ({ max: count, windowMs: windowMs(window) });

/** Throws `Invalid` (`WindowInvalid`, `BytesInvalid`) for what the schema of a ToolGrant would not have admitted. */
export const bytesWithin = ({ bytes, window }: EgressBudget): WindowLimit => {
  const max = amount(bytes, /^([1-9][0-9]{0,11})(|Ki|Mi|Gi)$/, byteUnits);
  if (max === null) throw new Invalid("BytesInvalid", `${JSON.stringify(bytes)} is no number of bytes`);
  return { max, windowMs: windowMs(window) };
};

const amount = (text: string, pattern: RegExp, units: Readonly<Record<string, number>>): number | null => {
  const [, digits, unit = ""] = pattern.exec(text) ?? [];
  const factor = units[unit];
  return digits === undefined || factor === undefined ? null : Number(digits) * factor;
};
