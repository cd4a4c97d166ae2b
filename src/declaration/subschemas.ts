import { isJsonObject, type JsonObject, type JsonValue } from "../api/json.ts";

/** Where JSON Schema 2020-12 keeps subschemas: under a keyword, in its list, or under the keys of its object. */
const single = [
  "additionalProperties",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
] as const;
const listed = ["allOf", "anyOf", "oneOf", "prefixItems"] as const;
const keyed = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"] as const;

/** One subschema and the way to it from the schema that holds it: the keyword, then the index or key where there is one. */
export interface Child {
  readonly schema: JsonValue;
  readonly keyword: string;
  readonly steps: readonly (string | number)[];
}

/** The subschemas directly under a schema. What isn't of the keyword's form is left out. */
export function* childrenOf(schema: JsonObject): Generator<Child> {
  for (const keyword of single) {
    const child = schema[keyword];
    if (child !== undefined) yield { schema: child, keyword, steps: [keyword] };
  }
  for (const keyword of listed) {
    const children = schema[keyword];
    if (!Array.isArray(children)) continue;
    for (const [index, child] of children.entries()) yield { schema: child, keyword, steps: [keyword, index] };
  }
  for (const keyword of keyed) {
    const children = schema[keyword];
    if (!isJsonObject(children)) continue;
    for (const [key, child] of Object.entries(children)) yield { schema: child, keyword, steps: [keyword, key] };
  }
}

/** A copy of a schema in which each subschema directly under it is replaced. Keywords keep their order. */
export const mapChildren = (schema: JsonObject, replace: (child: JsonValue, keyword: string) => JsonValue): Record<string, JsonValue> => {
  const copy: Record<string, JsonValue> = Object.create(null);
  for (const [keyword, value] of Object.entries(schema)) copy[keyword] = replaced(keyword, value, (child) => replace(child, keyword));
  return copy;
};

const replaced = (keyword: string, value: JsonValue, replace: (child: JsonValue) => JsonValue): JsonValue => {
  if (includes(single, keyword)) return replace(value);
  if (includes(listed, keyword)) return Array.isArray(value) ? value.map(replace) : value;
  if (!includes(keyed, keyword) || !isJsonObject(value)) return value;
  const copy: Record<string, JsonValue> = Object.create(null);
  for (const [key, child] of Object.entries(value)) copy[key] = replace(child);
  return copy;
};

const includes = (keywords: readonly string[], keyword: string): boolean => keywords.includes(keyword);
