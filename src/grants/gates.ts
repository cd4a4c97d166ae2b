import type { FieldRule } from "../api/generated/toolgrant.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from "../api/json.ts";
import { isWithin, type Labels, leafLabels, lower, type Sensitivity } from "./labels.ts";

/** One call as it was asked for: the name and the arguments exactly as they would be sent. */
export interface Call {
  readonly name: string;
  readonly arguments: JsonObject;
  readonly labels: Labels;
  /** Why what the caller says of the labels does not count; null where all of it does. */
  readonly labelRefusal?: Refusal | null;
  /** The most sensitive information that this caller may send anywhere. */
  readonly callerCeiling?: Sensitivity;
}

/** What of a live grant the gates judge by. `check` is compiled from the reviewed schema and gives the first violation. */
export interface GatedGrant {
  readonly spec: {
    readonly declaration: { readonly name: string };
    readonly mutates?: boolean | undefined;
    readonly egressCeiling?: Sensitivity | undefined;
    readonly fields?: readonly FieldRule[] | undefined;
  };
  readonly check: (args: JsonObject) => ArgumentViolation | null;
}

export interface ArgumentViolation {
  /** JSON Pointer into the arguments. */
  readonly at: string;
  readonly message: string;
}

/**
 * What a gate says. A refusal by `policy` reaches the model as one constant sentence and its reason stays in the journal; one by `validation` says what
 * is wrong, so that the model can do better; one by `rate` says when to try again.
 */
export type Verdict = { readonly admitted: true } | Refusal;

export type Refusal = { readonly admitted: false; readonly gate: Gated; readonly code: string; readonly reason: string } & (
  | { readonly kind: "policy" }
  | { readonly kind: "validation"; readonly at: string }
  | { readonly kind: "rate"; readonly retryAfterMs: number }
);

/** The gates by name, in the order in which they judge (docs/catalogue.md). */
export const gateNames = ["match", "schema", "labels", "provenance", "egress-ceiling", "denials", "egress-budget", "rate"] as const;

export type Gated = (typeof gateNames)[number];

/** A gate is a pure function of what it is given. */
export type Gate = (call: Call, grant: GatedGrant) => Verdict;

export const admitted: Verdict = { admitted: true };

/** The grant of that name among what the caller is offered, byte for byte. What isn't there is refused alike, whatever the reason. */
export const matchOffer = <G>(name: string, offered: ReadonlyMap<string, G>): { grant: G } | { grant: null; verdict: Refusal } => {
  const grant = offered.get(name);
  if (grant !== undefined) return { grant };
  return { grant: null, verdict: refused("match", "NotOffered", "the caller is offered no tool of that name") };
};

const fitsReviewedSchema: Gate = (call, grant) => {
  const violation = grant.check(call.arguments);
  if (!violation) return admitted;
  return {
    admitted: false,
    gate: "schema",
    kind: "validation",
    code: "ArgumentInvalid",
    reason: violation.message,
    at: violation.at,
  };
};

/** A caller says nothing of its arguments that it may not say. */
const labelsArePermitted: Gate = ({ labelRefusal }) => labelRefusal ?? admitted;

/**
 * Every field rule holds. A tool that mutates and has no rules takes no untrusted argument. Trust comes from labels alone, never from what a value says.
 */
const fieldsHaveProvenance: Gate = (call, { spec }) => {
  const rules = spec.fields ?? [];
  if (rules.length === 0) {
    const hasNone = Object.keys(call.arguments).length === 0;
    const isSafe = spec.mutates === false || hasNone || leafLabels(call.arguments, call.labels).every(({ trusted }) => trusted);
    return isSafe
      ? admitted
      : refused("provenance", "UntrustedArgument", "the tool mutates, has no field rules, and an argument is untrusted");
  }
  for (const rule of rules) {
    const broken = brokenRule(rule, call);
    if (broken) return refused("provenance", broken.code, `the field rule for ${JSON.stringify(rule.path)}: ${broken.reason}`);
  }
  return admitted;
};

const brokenRule = (rule: FieldRule, call: Call): { code: string; reason: string } | null => {
  const value = valueAt(call.arguments, rule.path);
  if (value === undefined) return { code: "FieldMissing", reason: "there is no such value in the arguments" };
  const labels = leafLabels(value, call.labels, rule.path);
  const { oneOf, allowedSources, maxSensitivity } = rule;
  if (rule.requireTrusted && !labels.every(({ trusted }) => trusted)) return { code: "FieldUntrusted", reason: "the value is untrusted" };
  if (allowedSources && !labels.every(({ sources }) => sources.length > 0 && sources.every((source) => allowedSources.includes(source)))) {
    return { code: "FieldSource", reason: "a source of the value is not listed, or it has none" };
  }
  if (oneOf) {
    const text = canonicalJson(value);
    if (!oneOf.some((allowed) => canonicalJson(allowed) === text))
      return { code: "FieldValue", reason: "the value is none of those allowed" };
  }
  if (maxSensitivity && !labels.every(({ sensitivity }) => isWithin(sensitivity, maxSensitivity))) {
    return { code: "FieldSensitivity", reason: `the value is more sensitive than ${maxSensitivity}` };
  }
  const isRule = rule.requireTrusted || allowedSources || oneOf || rule.acceptUntrusted;
  return isRule ? null : { code: "FieldRuleEmpty", reason: "it requires nothing, so it is not known what was meant" };
};

/** The most sensitive part of the arguments is within the grant's ceiling and the caller's. */
const staysUnderEgressCeiling: Gate = (call, { spec }) => {
  const ceiling = lower(spec.egressCeiling ?? "Internal", call.callerCeiling ?? "Secret");
  const isUnder = leafLabels(call.arguments, call.labels).every(({ sensitivity }) => isWithin(sensitivity, ceiling));
  return isUnder ? admitted : refused("egress-ceiling", "TooSensitive", `an argument is more sensitive than ${ceiling}`);
};

/**
 * Judged in this order after `matchOffer`, and before what counts calls; the first refusal decides. What costs little comes before what costs much, and what a
 * refusal may tell before what it may not.
 */
export const gates: readonly Gate[] = [fitsReviewedSchema, labelsArePermitted, fieldsHaveProvenance, staysUnderEgressCeiling];

/** The verdict of the first gate that refuses, or `admitted`. */
export const judgeCall = (call: Call, grant: GatedGrant, checklist: readonly Gate[] = gates): Verdict => {
  for (const gate of checklist) {
    const verdict = gate(call, grant);
    if (!verdict.admitted) return verdict;
  }
  return admitted;
};

const refused = (gate: Gated, code: string, reason: string): Refusal => ({ admitted: false, gate, kind: "policy", code, reason });

/** The value that a JSON Pointer names; undefined where there is none. List positions are decimal without leading zeros. */
export const valueAt = (root: JsonValue, pointer: string): JsonValue | undefined => {
  let value: JsonValue | undefined = root;
  for (const escaped of pointer.split("/").slice(1)) {
    const key = escaped.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) value = /^(0|[1-9][0-9]{0,8})$/.test(key) ? value[Number(key)] : undefined;
    else value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return value;
};
