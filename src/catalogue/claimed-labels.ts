import { Invalid, Refused } from "../api/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, pointerTo } from "../api/json.ts";
import { isWithin, type Label, type Labels, noLabels, type Sensitivity, sensitivities, unlabelled } from "../grants/labels.ts";

const mostLabels = 256;
const mostSources = 64;
const longestPointer = 1024;
const longestSource = 256;
const knownKeys = ["sources", "trusted", "sensitivity"];

/**
 * Reads what a caller says of its arguments: `{"/body": {"sensitivity": "Confidential"}}`, by JSON pointer. A label may only make a value worse than one that
 * a model wrote (untrusted, without sources, Internal), unless the caller `isLabeler`.
 *
 * Throws `Invalid` `LabelsMalformed`, and `Refused` `LabelNotPermitted` for what a caller may not claim.
 */
export const claimedLabels = (claimed: JsonValue | undefined, isLabeler: boolean): Labels => {
  if (claimed === undefined || claimed === null) return noLabels;
  if (!isJsonObject(claimed)) throw malformed("", "labels is an object of labels by JSON pointer");
  const entries = Object.entries(claimed);
  if (entries.length > mostLabels) throw malformed("", `there are ${entries.length} labels, more than the ${mostLabels} allowed`);
  return new Map(entries.map(([pointer, label]) => [pointerOf(pointer), labelOf(label, pointerTo("", pointer), isLabeler)]));
};

/** The labels as the journal shows them, null where there are none. */
export const shownLabels = (labels: Labels): JsonObject | null =>
  labels.size === 0
    ? null
    : Object.fromEntries([...labels].map(([pointer, { sources, trusted, sensitivity }]) => [pointer, { sources, trusted, sensitivity }]));

const pointerOf = (pointer: string): string => {
  if (pointer.length > longestPointer || !/^(\/([^~/]|~[01])*)*$/.test(pointer))
    throw malformed("", "a label's key is a JSON pointer into the arguments");
  return pointer;
};

const labelOf = (label: JsonValue, at: string, isLabeler: boolean): Label => {
  if (!isJsonObject(label)) throw malformed(at, "a label is an object with sources, trusted and sensitivity, each optional");
  const stray = Object.keys(label).find((key) => !knownKeys.includes(key));
  if (stray !== undefined) throw malformed(at, `a label has ${knownKeys.join(", ")} and nothing else`);
  const { sources = unlabelled.sources, trusted = unlabelled.trusted, sensitivity = unlabelled.sensitivity } = label;
  if (typeof trusted !== "boolean") throw malformed(`${at}/trusted`, "trusted is true or false");
  if (!isSensitivity(sensitivity)) throw malformed(`${at}/sensitivity`, `sensitivity is one of ${sensitivities.join(", ")}`);
  if (!isSources(sources)) throw malformed(`${at}/sources`, `sources is a list of at most ${mostSources} short texts`);
  const isWorse = !trusted && sources.length === 0 && isWithin(unlabelled.sensitivity, sensitivity);
  if (!isWorse && !isLabeler) {
    throw new Refused(
      "LabelNotPermitted",
      `the caller may not claim trust, sources or a sensitivity below ${unlabelled.sensitivity}, as it does at ${at}`,
    );
  }
  return { sources, trusted, sensitivity };
};

const isSensitivity = (value: JsonValue): value is Sensitivity => sensitivities.some((known) => known === value);

const isSources = (value: JsonValue | readonly string[]): value is readonly string[] =>
  Array.isArray(value) &&
  value.length <= mostSources &&
  value.every((source) => typeof source === "string" && source.length <= longestSource);

const malformed = (at: string, message: string): Invalid => new Invalid("LabelsMalformed", message, `/labels${at}`);
