import { isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { ProviderFormat } from "./formats.ts";
import { annotations, described, inWords, narrowing, words } from "./keywords.ts";
import { circleIn, valueAt } from "./references.ts";
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
  /** Each schema has one type, or one and null, or alternatives: at least two. */
  readonly plainTypes: boolean;
  readonly recursion: boolean;
  readonly mostLevels: number;
  readonly mostProperties: number;
  readonly mostEnumValues: number;
  readonly mostTextLength: number;
}

const structure = ["type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs"];
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
  plainTypes: true,
  recursion: true,
  mostLevels: 10,
  mostProperties: 5000,
  mostEnumValues: 1000,
  mostTextLength: 120_000,
};

const anthropic: StrictSubset = {
  kept: new Set([...structure, ...words, "format"]),
  formats: new Set([...formats, "uri"]),
  everyPropertyRequired: false,
  plainTypes: false,
  recursion: false,
  mostLevels: 64,
  mostProperties: 5000,
  mostEnumValues: 1000,
  mostTextLength: 120_000,
};

/** Null where declarations have no mark for strictness. */
const subsets: Readonly<Record<ProviderFormat, StrictSubset | null>> = {
  anthropic,
  "openai-chat": openAi,
  "openai-responses": openAi,
  gemini: null,
  bedrock: anthropic,
  mcp: null,
};

/** The provider's strict copy; null where the schema means something that strictness can't keep, so that it must be sent without. */
export const strictCopy = (schema: JsonObject, provider: ProviderFormat): StrictCopy | null => {
  const subset = subsets[provider];
  if (!subset || (!subset.recursion && circleIn(schema) !== null)) return null;
  try {
    const copier = new StrictCopier(subset);
    const copy = copier.copy(schema, 1);
    // Without recursion a provider may well write every reference out, so each is counted as what it leads to.
    const { $defs, ...rest } = schema;
    const counted = $defs === undefined || subset.recursion ? copier : new StrictCopier(subset, schema);
    if (counted !== copier) counted.copy(rest, 1);
    return counted.withinSizes() ? { schema: copy, optionals: counted.optionals, unions: counted.unions } : null;
  } catch (thrown) {
    if (thrown instanceof NotStrict) return null;
    throw thrown;
  }
};

class NotStrict extends Error {}

/** A schema that refers to the same part again and again stands for far more than its text. */
const mostSubschemas = 10_000;

class StrictCopier {
  readonly #subset: StrictSubset;
  /** What references lead into, where they are to be followed. */
  readonly #followed: JsonObject | null;
  optionals = 0;
  unions = 0;
  #properties = 0;
  #enumValues = 0;
  #textLength = 0;
  #subschemas = 0;

  constructor(subset: StrictSubset, followed: JsonObject | null = null) {
    this.#subset = subset;
    this.#followed = followed;
  }

  withinSizes(): boolean {
    const { mostProperties, mostEnumValues, mostTextLength } = this.#subset;
    return this.#properties <= mostProperties && this.#enumValues <= mostEnumValues && this.#textLength <= mostTextLength;
  }

  copy(schema: JsonValue, level: number): JsonObject {
    if (!isJsonObject(schema) || level > this.#subset.mostLevels || ++this.#subschemas > mostSubschemas) throw new NotStrict();
    if (schema.$ref !== undefined) return this.#reference(schema, level);
    const types = [schema.type].flat();
    if (level === 1 && schema.type !== "object") throw new NotStrict();
    if (this.#subset.plainTypes && !hasPlainTypes(schema)) throw new NotStrict();
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
      else if (keyword === "contentEncoding" || narrowing.has(keyword)) told.push(...inWords(keyword, value));
      else if (!annotations.has(keyword)) throw new NotStrict();
    }
    const copy = mapChildren(jsonObject(kept), (child) => (child === false ? false : this.copy(child, level + 1)));
    // OpenAI asks for the list even where it is empty.
    if (types.includes("object") && this.#subset.everyPropertyRequired && copy.required === undefined) copy.required = [];
    return told.length === 0 ? copy : { ...copy, description: described(schema.description, told) };
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
    if (typeof reference !== "string" || !reference.startsWith("#/$defs/") || level === 1) throw new NotStrict();
    const meaning = Object.keys(schema).filter((keyword) => keyword !== "$ref" && !annotations.has(keyword) && !words.has(keyword));
    if (meaning.length > 0) throw new NotStrict();
    if (this.#followed) this.copy(valueAt(this.#followed, reference.slice(1)) ?? null, level + 1);
    return { $ref: reference };
  }

  #countProperties(schema: JsonObject): void {
    const properties = schema.properties ?? {};
    // An object that is open on purpose stays open: closing it would forbid what the reviewer admitted.
    if (!isJsonObject(properties) || schema.additionalProperties !== false) throw new NotStrict();
    const names = Object.keys(properties);
    const required = new Set<JsonValue>(Array.isArray(schema.required) ? schema.required : []);
    if ([...required].some((name) => !Object.hasOwn(properties, String(name)))) throw new NotStrict();
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

const hasPlainTypes = ({ type, anyOf }: JsonObject): boolean => {
  if (anyOf !== undefined && (!Array.isArray(anyOf) || anyOf.length < 2)) return false;
  if (!Array.isArray(type)) return type !== undefined || anyOf !== undefined;
  return type.length === 2 && type.includes("null");
};

const raise = (): never => {
  throw new NotStrict();
};
