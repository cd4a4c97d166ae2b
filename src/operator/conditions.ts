import type { Condition } from "../api/condition.ts";

/** A condition before it is known since when it holds. */
export type ConditionNow = Omit<Condition, "lastTransitionTime" | "observedGeneration">;

/** Longest message that our CRDs take. */
const longestMessage = 32_768;

/** Conditions with the times of those before whose status is the same: `now` is ISO 8601 in seconds, for those that changed. */
export const withTransitions = (
  conditions: readonly ConditionNow[],
  before: readonly Condition[],
  generation: number | undefined,
  now: string,
): Condition[] =>
  conditions.map((condition) => {
    const known = before.find(({ type }) => type === condition.type);
    const lastTransitionTime = known?.status === condition.status ? known.lastTransitionTime : now;
    const message = condition.message.slice(0, longestMessage);
    return { ...condition, message, lastTransitionTime, ...(generation === undefined ? {} : { observedGeneration: generation }) };
  });

/** Seconds are what Kubernetes keeps of times in conditions. */
export const conditionTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
