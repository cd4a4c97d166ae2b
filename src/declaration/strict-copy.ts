import { isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { ProviderFormat } from "./formats.ts";
import { base64Pattern } from "./schema.ts";
import { mapChildren } from "./subschemas.ts";

/**
 * A provider's copy of a reviewed schema. It may admit more than the reviewed one, never less: keywords that only narrow are left out where the
 * provider doesn't know them, and told in the description instead. The reviewed schema alone judges a call.
 */
export interface StrictCopy {
  readonly schema: JsonObject;
  /** Properties that may be left out, in the whole schema. */
  readonly optionals: number;
  /** Places where several types are possible. */
  readonly unions: number;
}

/** The part of JSON Schema that a provider can enforce while the model writes. */
interface StrictSubset {
  /** Kept as they are. */
  readonly kept: ReadonlySet<string>;
  readonly formats: ReadonlySet<string>;
  readonly everyPropertyRequired: boolean;
  readonly recursion: boolean;
  readonly mostLevels: number;
  readonly mostProperties: number;
  readonly mostEnumValues: number;
  readonly mostTextLength: number;
}

const structure = ["type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs"];
const words = ["title", "description"];
/** Say nothing about which values are admitted. */
const annotations = new Set([
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
/** Only narrow what the rest admits. */
const narrowing = new Set([
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

const formats = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

const openAi: StrictSubset = {
  kept: new Set([
    ...structure,
    ...words,
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
  ]),
  formats: new Set(formats),
  everyPropertyRequired: true,
  recursion: true,
  mostLevels: 10,
  mostProperties: 5000,
  mostEnumValues: 1000,
  mostTextLength: 120_000,
};

const subsets: Readonly<Record<ProviderFormat, StrictSubset>> = {
  anthropic: {
    kept: new Set([...structure, ...words, "format"]),
    formats: new Set([...formats, "uri"]),
    everyPropertyRequired: false,
    recursion: false,
    mostLevels: 64,
    mostProperties: 5000,
    mostEnumValues: 1000,
    mostTextLength: 120_000,
  },
  "openai-chat": openAi,
  "openai-responses": openAi,
};

/** The provider's strict copy; null where the schema means something that strictness can't keep, so that it must be sent without. */
export const strictCopy = (schema: JsonObject, provider: ProviderFormat): StrictCopy | null => {
  const copier = new StrictCopier(subsets[provider]);
  try {
    const copy = copier.copy(schema, 1);
    return copier.withinSizes() ? { schema: copy, optionals: copier.optionals, unions: copier.unions } : null;
  } catch (thrown) {
    if (thrown instanceof NotStrict) return null;
    throw thrown;
  }
};

class NotStrict extends Error {}

class StrictCopier {
  readonly #subset: StrictSubset;
  optionals = 0;
  unions = 0;
  #properties = 0;
  #enumValues = 0;
  #textLength = 0;

  constructor(subset: StrictSubset) {
    this.#subset = subset;
  }

  withinSizes(): boolean {
    const { mostProperties, mostEnumValues, mostTextLength } = this.#subset;
    return this.#properties <= mostProperties && this.#enumValues <= mostEnumValues && this.#textLength <= mostTextLength;
  }

  copy(schema: JsonValue, level: number): JsonObject {
    if (!isJsonObject(schema) || level > this.#subset.mostLevels) throw new NotStrict();
    if (schema.$ref !== undefined) return this.#reference(schema, level);
    const types = [schema.type].flat();
    if (schema.type === undefined && schema.anyOf === undefined && schema.enum === undefined && schema.const === undefined)
      throw new NotStrict();
    if (schema.anyOf !== undefined || types.length > 1) this.unions++;
    if (schema.anyOf !== undefined && level === 1) throw new NotStrict();
    if (types.includes("object")) this.#countProperties(schema);
    if (types.includes("array") && !isJsonObject(schema.items)) throw new NotStrict();
    this.#countChoices(schema);
    const told: string[] = [];
    const kept: [string, JsonValue][] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      if (this.#keeps(keyword, value)) kept.push([keyword, value]);
      else if (keyword === "contentEncoding") told.push(`${value}`);
      else if (narrowing.has(keyword)) told.push(...inWords(keyword, value));
      else if (!annotations.has(keyword)) throw new NotStrict();
    }
    const copy = mapChildren(jsonObject(kept), (child) => (child === false ? false : this.copy(child, level + 1)));
    // OpenAI asks for the list even where it is empty.
    if (types.includes("object") && this.#subset.everyPropertyRequired && copy.required === undefined) copy.required = [];
    return told.length === 0 ? copy : { ...copy, description: [schema.description, `(${told.join(", ")})`].filter(Boolean).join(" ") };
  }

  #keeps(keyword: string, value: JsonValue): boolean {
    if (keyword === "format") return this.#subset.formats.has(String(value));
    if (keyword === "pattern" && value === base64Pattern) return false;
    if (keyword === "minItems" && (value === 0 || value === 1)) return true;
    return this.#subset.kept.has(keyword);
  }

  /** Beside a reference providers take nothing but words, and some not even those. */
  #reference(schema: JsonObject, level: number): JsonObject {
    const reference = schema.$ref;
    if (typeof reference !== "string" || !reference.startsWith("#/$defs/") || !this.#subset.recursion || level === 1) throw new NotStrict();
    const meaning = Object.keys(schema).filter((keyword) => keyword !== "$ref" && !annotations.has(keyword) && !words.includes(keyword));
    if (meaning.length > 0) throw new NotStrict();
    return { $ref: reference };
  }

  #countProperties(schema: JsonObject): void {
    const properties = schema.properties ?? {};
    // An object that is open on purpose stays open: closing it would forbid what the reviewer admitted.
    if (!isJsonObject(properties) || schema.additionalProperties !== false) throw new NotStrict();
    const names = Object.keys(properties);
    const required = new Set(Array.isArray(schema.required) ? schema.required : []);
    const optional = names.filter((name) => !required.has(name)).length;
    if (optional > 0 && this.#subset.everyPropertyRequired) throw new NotStrict();
    if (schema.properties === undefined) throw new NotStrict();
    this.optionals += optional;
    this.#properties += names.length;
    this.#textLength += names.join("").length;
  }

  #countChoices(schema: JsonObject): void {
    const choices = Array.isArray(schema.enum) ? schema.enum : schema.const === undefined ? [] : [schema.const];
    const texts = choices.map((choice: JsonValue) => (typeof choice === "object" && choice !== null ? raise() : String(choice)));
    const length = texts.join("").length;
    if (texts.length > 250 && length > 15_000) throw new NotStrict();
    this.#enumValues += texts.length;
    this.#textLength += length;
  }
}

const raise = (): never => {
  throw new NotStrict();
};

const inWords = (keyword: string, value: JsonValue): string[] => {
  if (keyword === "pattern" && value === base64Pattern) return [];
  if (keyword === "uniqueItems") return value === true ? ["each item once"] : [];
  const [, bound, of] = /^(min|max)(Length|Items|Properties)$/.exec(keyword) ?? [];
  if (!bound) return [`${keyword} ${String(value)}`];
  return [
    `at ${bound === "min" ? "least" : "most"} ${String(value)} ${of === "Length" ? "characters" : of === "Items" ? "items" : "properties"}`,
  ];
};

/**
 * The copy for a provider without strictness: the reviewed schema, with what its API insists on. OpenAI's refuses arrays without `items` and objects
 * without `properties` even then.
 */
export const looseCopy = (schema: JsonObject, provider: ProviderFormat): JsonObject =>
  provider === "anthropic" ? schema : completed(schema);

const completed = (schema: JsonObject): JsonObject => {
  const copy = mapChildren(schema, (child) => (isJsonObject(child) ? completed(child) : child));
  const types = [schema.type].flat();
  if (types.includes("object") && copy.properties === undefined) copy.properties = {};
  if (!types.includes("array") || isJsonObject(copy.items)) return copy;
  if (!Array.isArray(copy.prefixItems)) return { ...copy, items: {} };
  const { prefixItems, items: _items, ...rest } = copy;
  const order = `(items in this order: ${(copy.prefixItems as readonly JsonValue[]).map(nameOfType).join(", ")})`;
  return { ...rest, items: { anyOf: prefixItems ?? [] }, description: [schema.description, order].filter(Boolean).join(" ") };
};

const nameOfType = (schema: JsonValue): string => {
  if (!isJsonObject(schema)) return "anything";
  if (typeof schema.description === "string" && schema.description.length < 60) return schema.description;
  return typeof schema.type === "string" ? schema.type : "one of several types";
};
