import { Invalid } from "../api/errors.ts";
import type { CallLimits } from "../api/generated/workload.ts";
import { defaultHostLimits, type HostLimits } from "../api/host.ts";

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, "": 1, Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3 };

/** A component's limits in the host's units. Throws `Invalid` (`LimitInvalid`) for what the schema would not have admitted. */
export const hostLimits = (limits: CallLimits): HostLimits => ({
  timeoutMs: amount(limits.timeout, /^([1-9][0-9]{0,5})(ms|s|m)$/, defaultHostLimits.timeoutMs),
  memoryBytes: amount(limits.memory, /^([1-9][0-9]{0,3})(Mi|Gi)$/, defaultHostLimits.memoryBytes),
  resultBytes: amount(limits.resultBytes, /^([1-9][0-9]{0,6})(|Ki|Mi)$/, defaultHostLimits.resultBytes),
  concurrency: limits.concurrency ?? defaultHostLimits.concurrency,
});

const amount = (text: string | undefined, pattern: RegExp, otherwise: number): number => {
  if (text === undefined) return otherwise;
  const [, digits, unit = ""] = pattern.exec(text) ?? [];
  const factor = units[unit];
  if (digits === undefined || factor === undefined)
    throw new Invalid("LimitInvalid", `${JSON.stringify(text)} is no amount that a limit takes`);
  return Number(digits) * factor;
};
