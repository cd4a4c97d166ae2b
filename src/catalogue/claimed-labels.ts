import { Invalid, Refused } from "../api/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, pointerTo } from "../api/json.ts";
import { type Refusal, valueAt } from "../grants/gates.ts";
import { isWithin, type Label, type Labels, noLabels, type Sensitivity, sensitivities, unlabelled } from "../grants/labels.ts";

const mostLabels = 256;
/** Distinct ones of a call: each tool that a value went through adds one. */
const mostSources = 256;
const longestPointer = 1024;
/** As long as a grant's rule may name one. */
const longestSource = 512;
const knownKeys = ["sources", "trusted", "sensitivity"];

/** What counts of what a caller says of its arguments; `refusal` is why not all of it does, and nothing may then run. */
export interface ClaimedLabels {
  readonly labels: Labels;
  readonly refusal: Refusal | null;
}

/**
 * Reads what a caller says of its arguments: `{"/body": {"sensitivity": "Confidential"}}`, by JSON pointer. A label may only make a value worse than one that
 * a model wrote (untrusted, without sources, Internal), unless the caller `isLabeler`. Each names a value that is there: one that does not might have been
 * meant for another. A refusal has the code `LabelsMalformed` or, for what a caller may not claim, `LabelNotPermitted`.
 */
export const claimedLabels = (claimed: JsonValue | undefined, args: JsonObject, isLabeler: boolean): ClaimedLabels => {
  if (claimed === undefined || claimed === null) return { labels: noLabels, refusal: null };
  try {
    return { labels: labelsIn(claimed, args, isLabeler), refusal: null };
  } catch (thrown) {
    if (thrown instanceof Invalid) return { labels: noLabels, refusal: refusalBy(thrown, { kind: "validation", at: thrown.at ?? "" }) };
    if (thrown instanceof Refused) return { labels: noLabels, refusal: refusalBy(thrown, { kind: "policy" }) };
    throw thrown;
  }
};

const refusalBy = (
  { code, message }: Invalid | Refused,
  kind: { readonly kind: "validation"; readonly at: string } | { readonly kind: "policy" },
): Refusal => ({ admitted: false, gate: "labels", code, reason: message, ...kind });

const labelsIn = (claimed: JsonValue, args: JsonObject, isLabeler: boolean): Labels => {
  if (!isJsonObject(claimed)) throw malformed("", "labels is an object of labels by JSON pointer");
  const entries = Object.entries(claimed);
  if (entries.length > mostLabels) throw malformed("", `there are ${entries.length} labels, more than the ${mostLabels} allowed`);
  const labels = new Map(entries.map(([pointer, label]) => [pointerIn(pointer, args), labelOf(label, pointerTo("", pointer))]));
  const sources = new Set([...labels.values()].flatMap((label) => label.sources));
  if (sources.size > mostSources) throw malformed("", `the labels have ${sources.size} sources, more than the ${mostSources} allowed`);
  const better = isLabeler ? undefined : [...labels].find(([, label]) => !isNoBetter(label));
  if (better) {
    throw new Refused(
      "LabelNotPermitted",
      `the caller may not claim trust, sources or a sensitivity below ${unlabelled.sensitivity}, as it does at /labels${pointerTo("", better[0])}`,
    );
  }
  return labels;
};

/** A label as answers and the journal show it. */
export const shownLabel = ({ sources, trusted, sensitivity }: Label): JsonObject => ({ sources, trusted, sensitivity });

/** The labels as the journal shows them, null where there are none. */
export const shownLabels = (labels: Labels): JsonObject | null =>
  labels.size === 0 ? null : Object.fromEntries([...labels].map(([pointer, label]) => [pointer, shownLabel(label)]));

const pointerIn = (pointer: string, args: JsonObject): string => {
  if (pointer.length > longestPointer || !/^(\/([^~/]|~[01])*)*$/.test(pointer))
    throw malformed("", "a label's key is a JSON pointer into the arguments");
  if (valueAt(args, pointer) === undefined) throw malformed(pointerTo("", pointer), "the arguments have no value there");
  return pointer;
};

const labelOf = (label: JsonValue, at: string): Label => {
  if (!isJsonObject(label)) throw malformed(at, "a label is an object with sources, trusted and sensitivity, each optional");
  const stray = Object.keys(label).find((key) => !knownKeys.includes(key));
  if (stray !== undefined) throw malformed(at, `a label has ${knownKeys.join(", ")} and nothing else`);
  const { sources = unlabelled.sources, trusted = unlabelled.trusted, sensitivity = unlabelled.sensitivity } = label;
  if (typeof trusted !== "boolean") throw malformed(`${at}/trusted`, "trusted is true or false");
  if (!isSensitivity(sensitivity)) throw malformed(`${at}/sensitivity`, `sensitivity is one of ${sensitivities.join(", ")}`);
  if (!isSources(sources)) throw malformed(`${at}/sources`, `sources is a list of texts of 1 to ${longestSource} characters`);
  return { sources, trusted, sensitivity };
};

/** Whether the label says nothing of a value that would let it pass where one that a model wrote would not. */
const isNoBetter = ({ sources, trusted, sensitivity }: Label): boolean =>
  !trusted && sources.length === 0 && isWithin(unlabelled.sensitivity, sensitivity);

const isSensitivity = (value: JsonValue): value is Sensitivity => sensitivities.some((known) => known === value);

const isSources = (value: JsonValue | readonly string[]): value is readonly string[] =>
  Array.isArray(value) &&
  value.length <= mostSources &&
  value.every((source) => typeof source === "string" && source !== "" && source.length <= longestSource);

const malformed = (at: string, message: string): Invalid => new Invalid("LabelsMalformed", `${message} (/labels${at})`, `/labels${at}`);
