import { isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import { childrenOf } from "../declaration/subschemas.ts";

/** Subschemas of these judge the same object, so what they say of its keys is meant beside `properties`. */
const inPlace = new Set(["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"]);

/** Whoever writes one of these has decided about other keys, or says elsewhere which there are. */
const decidesItself = ["additionalProperties", "unevaluatedProperties", "$ref", "$dynamicRef", "$recursiveRef", "dependencies"];

/**
 * The schema with `additionalProperties: false` where that takes nothing away but keys that it says nothing of: a model is then told of what it made up. Only at the root:
 * an object within may be open on purpose, and who said nothing there may have meant that. Where the root leaves its keys to others, it stays as it is.
 */
export const closedSchema = (schema: JsonObject): JsonObject =>
  namesAllKeys(schema) ? jsonObject([...Object.entries(schema), ["additionalProperties", false]]) : schema;

/** Other dialects have other keywords, and no arguments are judged by them. */
const dialect = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

const namesAllKeys = (schema: JsonObject): boolean => {
  if (schema.$schema !== undefined && !dialect.test(String(schema.$schema))) return false;
  const { properties, patternProperties } = schema;
  if (!isJsonObject(properties)) return false;
  const patterns = patternProperties !== undefined;
  const isNamed = (key: JsonValue): boolean => typeof key === "string" && Object.hasOwn(properties, key);
  const speaksOfNamed = (at: JsonObject): boolean => {
    if (decidesItself.some((keyword) => at[keyword] !== undefined)) return false;
    if (at !== schema && at.patternProperties !== undefined) return false;
    // With patterns a key may be among those that they match.
    if (!patterns && !keysIn(at).every(isNamed)) return false;
    for (const { schema: child, keyword } of childrenOf(at)) {
      if (inPlace.has(keyword) && isJsonObject(child) && !speaksOfNamed(child)) return false;
    }
    return true;
  };
  const { minProperties } = schema;
  if (typeof minProperties === "number" && !patterns && minProperties > Object.keys(properties).length) return false;
  return speaksOfNamed(schema);
};

/** Keys of the object that a schema speaks of, whether they may or have to be there. */
const keysIn = ({ properties, required, dependentRequired, dependentSchemas }: JsonObject): JsonValue[] => [
  ...(isJsonObject(properties) ? Object.keys(properties) : []),
  ...(Array.isArray(required) ? (required as readonly JsonValue[]) : []),
  ...(isJsonObject(dependentSchemas) ? Object.keys(dependentSchemas) : []),
  ...(isJsonObject(dependentRequired) ? Object.entries(dependentRequired).flatMap(([key, others]) => [key, ...listOf(others)]) : []),
];

const listOf = (value: JsonValue): readonly JsonValue[] => (Array.isArray(value) ? value : []);
