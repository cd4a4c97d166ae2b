import type { JsonValue } from "../api/json.ts";
import { base64Pattern } from "./schema.ts";

/**
 * What leaving out a keyword of JSON Schema means. A provider's copy of a schema may admit more than the reviewed one, never less, so it matters which
 * keywords only narrow.
 */

/** Keywords for people and models. */
export const words: ReadonlySet<string> = new Set(["title", "description"]);

/** Say nothing about which values are admitted. */
export const annotations: ReadonlySet<string> = new Set([
  "$schema",
  "$comment",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "contentEncoding",
  "contentMediaType",
]);

/** Only narrow what the rest admits, in a way that few words can tell. */
export const narrowing: ReadonlySet<string> = new Set([
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
]);

/** What a keyword asks for, in words; nothing where a model is better off without them. */
export const inWords = (keyword: string, value: JsonValue): string[] => {
  if (keyword === "contentEncoding") return [String(value)];
  if (keyword === "pattern" && value === base64Pattern) return [];
  if (keyword === "uniqueItems") return value === true ? ["each item once"] : [];
  const [, bound, of] = /^(min|max)(Length|Items|Properties)$/.exec(keyword) ?? [];
  if (!bound) return [`${keyword} ${String(value)}`];
  return [
    `at ${bound === "min" ? "least" : "most"} ${String(value)} ${of === "Length" ? "characters" : of === "Items" ? "items" : "properties"}`,
  ];
};

/** A description with what was left out of its schema after it, in parentheses; the empty text for neither. */
export const described = (description: JsonValue | undefined, told: readonly string[]): string =>
  [typeof description === "string" ? description : "", told.length === 0 ? "" : `(${told.join(", ")})`].filter(Boolean).join(" ");
