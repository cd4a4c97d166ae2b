import { type JsonValue, pointerTo } from "../api/json.ts";

export const sensitivities = ["Public", "Internal", "Confidential", "Secret"] as const;
export type Sensitivity = (typeof sensitivities)[number];

/** Where a value comes from, whether that is trusted, and how sensitive it is. */
export interface Label {
  readonly sources: readonly string[];
  readonly trusted: boolean;
  readonly sensitivity: Sensitivity;
}

/** What a model wrote, and what is said of no other. */
export const unlabelled: Label = { sources: [], trusted: false, sensitivity: "Internal" };

/**
 * Labels of parts of a call's arguments, by JSON Pointer. A leaf has the label of its nearest ancestor, itself included; `unlabelled` where none has one.
 *
 *   { "": { sources: [], trusted: false, sensitivity: "Internal" }, "/repo": { sources: ["task:ticket"], trusted: true, sensitivity: "Public" } }
 */
export type Labels = ReadonlyMap<string, Label>;

export const noLabels: Labels = new Map();

/** False for a sensitivity that is none of the four, so that nothing unknown passes. */
export const isWithin = (sensitivity: Sensitivity, ceiling: Sensitivity): boolean =>
  sensitivities.includes(sensitivity) && sensitivities.indexOf(sensitivity) <= sensitivities.indexOf(ceiling);

export const lower = (a: Sensitivity, b: Sensitivity): Sensitivity => (isWithin(a, b) ? a : b);

export const higher = (a: Sensitivity, b: Sensitivity): Sensitivity => (isWithin(a, b) ? b : a);

/**
 * The label of what a tool answers: from the tool and from all that its arguments came from, untrusted, and no less sensitive than the grant says or than what
 * went in. `tool` is the catalogue id, `namespace/grant`.
 */
export const resultLabel = (tool: string, outputSensitivity: Sensitivity | undefined, sent: readonly Label[]): Label => {
  const sources = new Set([`tool:${tool}`, ...sent.flatMap((label) => label.sources)]);
  const sensitivity = sent.reduce((highest, label) => higher(highest, label.sensitivity), outputSensitivity ?? "Internal");
  return { sources: [...sources].sort(), trusted: false, sensitivity };
};

/**
 * Labels of all leaves of a value, each once, never none. A leaf is a scalar, or an empty list or object. Where no part is labelled, the walk ends at once.
 */
export const leafLabels = (value: JsonValue, labels: Labels, path = ""): Label[] => {
  const found = new Set<Label>();
  collect(value, labels, path, labelAt(labels, path), found);
  return [...found];
};

/** The label of the nearest ancestor of `path`. */
export const labelAt = (labels: Labels, path: string): Label => {
  for (let at = path; ; at = at.slice(0, at.lastIndexOf("/"))) {
    const label = labels.get(at);
    if (label) return label;
    if (at === "") return unlabelled;
  }
};

const collect = (value: JsonValue, labels: Labels, path: string, inherited: Label, found: Set<Label>): void => {
  const label = labels.get(path) ?? inherited;
  if (typeof value !== "object" || value === null || labels.size === 0) {
    found.add(label);
    return;
  }
  const members = Object.entries(value);
  if (members.length === 0) found.add(label);
  for (const [key, inner] of members) collect(inner, labels, pointerTo(path, key), label, found);
};
