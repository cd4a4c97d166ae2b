import { isJsonObject, type JsonObject, type JsonValue, jsonObject, pointerTo } from "../api/json.ts";
import type { Finding } from "./problem.ts";

/** The keywords of a structural schema (`apiextensions.k8s.io/v1`) that Ambit's own use; a test sees to it that they use no others. */
export interface StructuralSchema {
  readonly type?: "object" | "array" | "string" | "integer" | "boolean";
  readonly format?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly required?: readonly string[];
  /** Of these fields an object has exactly one. */
  readonly oneOf?: readonly { readonly required: readonly [string] }[];
  readonly items?: StructuralSchema;
  readonly enum?: readonly JsonValue[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly default?: JsonValue;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-list-type"?: "map" | "set" | "atomic";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-validations"?: readonly ValidationRule[];
}

export interface ValidationRule {
  readonly rule: string;
  readonly message: string;
}

/**
 * Checks a value as an API server with strict field validation does, and fills in defaults: null where null isn't meant is absent, then defaults, then types
 * and bounds. Returns the value with defaults; `report` is told what is wrong.
 */
export const checkStructure = (schema: StructuralSchema, value: JsonValue, path: string, report: (finding: Finding) => void): JsonValue => {
  const fail = (code: string, message: string) => report({ path, code, message });
  if (schema.type === undefined) return value;
  if (!isOfType(schema.type, value)) {
    fail("WrongType", `must be ${article(schema.type)}, is ${kindOf(value)}`);
    return value;
  }
  if (schema.enum && !schema.enum.includes(value)) fail("NotAllowed", `must be one of ${schema.enum.join(", ")}`);
  if (typeof value === "string") checkString(schema, value, fail);
  if (typeof value === "number") checkNumber(schema, value, fail);
  if (Array.isArray(value)) return checkArray(schema, value, path, report);
  return isJsonObject(value) ? checkObject(schema, value, path, report) : value;
};

type Fail = (code: string, message: string) => void;

const checkString = (schema: StructuralSchema, value: string, fail: Fail): void => {
  // An API server counts Unicode code points.
  const length = [...value].length;
  if (schema.minLength !== undefined && length < schema.minLength) fail("TooShort", "must not be empty");
  if (schema.maxLength !== undefined && length > schema.maxLength)
    fail("TooLong", `has ${length} characters, at most ${schema.maxLength} are allowed`);
  else if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value)) {
    fail("PatternMismatch", `${quoted(value)} does not match ${schema.pattern}`);
  }
  if (schema.format === "date-time" && !isDateTime(value))
    fail("PatternMismatch", `${quoted(value)} is no time such as 2026-01-31T12:00:00Z`);
};

const checkNumber = (schema: StructuralSchema, value: number, fail: Fail): void => {
  if (schema.minimum !== undefined && value < schema.minimum) fail("TooSmall", `must be at least ${schema.minimum}`);
  if (schema.maximum !== undefined && value > schema.maximum) fail("TooLarge", `must be at most ${schema.maximum}`);
};

const checkArray = (schema: StructuralSchema, items: readonly JsonValue[], path: string, report: (finding: Finding) => void): JsonValue => {
  if (schema.minItems !== undefined && items.length < schema.minItems) {
    report({ path, code: "TooShort", message: `must have at least ${schema.minItems} ${schema.minItems === 1 ? "entry" : "entries"}` });
  }
  if (schema.maxItems !== undefined && items.length > schema.maxItems) {
    report({ path, code: "TooLong", message: `has ${items.length} entries, at most ${schema.maxItems} are allowed` });
    return items;
  }
  const { items: itemSchema } = schema;
  const checked = itemSchema ? items.map((item, i) => checkStructure(itemSchema, item, pointerTo(path, i), report)) : items;
  const firstAt = new Map<string, number>();
  for (const [i, item] of checked.entries()) {
    const key = listKey(schema, item);
    if (key === null) continue;
    const first = firstAt.get(key);
    if (first === undefined) firstAt.set(key, i);
    else report({ path: pointerTo(path, i), code: "DuplicateEntry", message: `has the same ${keyName(schema)} as entry ${first}: ${key}` });
  }
  return checked;
};

/** What must be unique in a list of type `set` or `map`; null where nothing must. */
const listKey = (schema: StructuralSchema, item: JsonValue): string | null => {
  switch (schema["x-kubernetes-list-type"]) {
    case "set":
      return typeof item === "string" ? item : null;
    case "map": {
      if (!isJsonObject(item)) return null;
      const values = (schema["x-kubernetes-list-map-keys"] ?? []).map((key) => item[key]);
      return values.every((value) => typeof value === "string") ? values.join(", ") : null;
    }
    default:
      return null;
  }
};

const keyName = (schema: StructuralSchema): string => schema["x-kubernetes-list-map-keys"]?.join(" and ") ?? "value";

const checkObject = (schema: StructuralSchema, value: JsonObject, path: string, report: (finding: Finding) => void): JsonObject => {
  if (schema["x-kubernetes-preserve-unknown-fields"]) return value;
  const { properties = {}, additionalProperties, required = [] } = schema;
  const entries: [string, JsonValue][] = [];
  const given = Object.entries(value);
  if (schema.maxProperties !== undefined && given.length > schema.maxProperties) {
    report({ path, code: "TooLong", message: `has ${given.length} entries, at most ${schema.maxProperties} are allowed` });
    return value;
  }
  for (const [key, inner] of given) {
    const known = Object.hasOwn(properties, key) ? properties[key] : additionalProperties;
    const at = pointerTo(path, key);
    if (!known) report({ path: at, code: "UnknownField", message: unknownField(key, Object.keys(properties)) });
    else if (inner !== null || known.type === undefined) entries.push([key, checkStructure(known, inner, at, report)]);
  }
  for (const [key, known] of Object.entries(properties)) {
    if (known.default === undefined || entries.some(([present]) => present === key)) continue;
    entries.push([key, checkStructure(known, known.default, pointerTo(path, key), report)]);
  }
  for (const key of required) {
    if (!entries.some(([present]) => present === key)) report({ path, code: "MissingField", message: `needs the field ${key}` });
  }
  const alternatives = (schema.oneOf ?? []).map(({ required: [field] }) => field);
  if (alternatives.length > 0 && alternatives.filter((field) => entries.some(([present]) => present === field)).length !== 1) {
    report({ path, code: "NotExactlyOne", message: `needs exactly one of ${alternatives.join(", ")}` });
  }
  return jsonObject(entries);
};

const unknownField = (key: string, known: readonly string[]): string => {
  const folded = key.toLowerCase();
  const meant = known.find(
    (name) => name.toLowerCase() === folded || name.toLowerCase() === `${folded}s` || `${name.toLowerCase()}s` === folded,
  );
  const hint = meant ? `did you mean ${meant}?` : `known here: ${known.join(", ") || "none"}`;
  return `unknown field ${quoted(key)}; ${hint}`;
};

const isOfType = (type: NonNullable<StructuralSchema["type"]>, value: JsonValue): boolean => {
  switch (type) {
    case "object":
      return isJsonObject(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return typeof value === "number" && Number.isInteger(value);
    default:
      return typeof value === type;
  }
};

const article = (type: string): string => (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`);

const kindOf = (value: JsonValue): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number" || typeof value === "bigint") return `the number ${value}`;
  return typeof value === "string" ? `the string ${quoted(value)}` : article(typeof value);
};

const quoted = (value: string): string => JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value);

const isDateTime = (value: string): boolean =>
  /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/.test(value) && !Number.isNaN(Date.parse(value));
