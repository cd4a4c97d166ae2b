import { isJsonObject, type JsonObject, type JsonValue } from "../api/json.ts";
import type { ProviderFormat } from "./formats.ts";
import { geminiCopy } from "./gemini-copy.ts";
import { described, words } from "./keywords.ts";
import { circleIn, pointerOf, valueAt } from "./references.ts";
import { mapChildren } from "./subschemas.ts";

/**
 * The copy for a provider that isn't asked to be strict: the reviewed schema, with what its API insists on and without what it refuses. It may admit more than
 * the reviewed one, never less (docs/translation.md, Providers).
 */
export const looseCopy = (schema: JsonObject, provider: ProviderFormat): JsonObject => {
  switch (provider) {
    case "anthropic":
    case "mcp":
      return schema;
    case "openai-chat":
    case "openai-responses":
      return completed(schema);
    case "gemini":
      return geminiCopy(schema);
    case "bedrock":
      return plainRoot(schema);
  }
};

/** OpenAI refuses arrays without `items` and objects without `properties`. */
const completed = (schema: JsonObject, exact = false): JsonObject => {
  const copy = mapChildren(schema, (child, keyword) => (isJsonObject(child) ? completed(child, exact || turning.has(keyword)) : child));
  const types = [schema.type].flat();
  if (types.includes("object") && copy.properties === undefined) copy.properties = {};
  if (!types.includes("array") || isJsonObject(copy.items)) return copy;
  const { prefixItems, items, ...rest } = copy;
  if (!Array.isArray(prefixItems) || exact) return items === undefined || items === true ? { ...copy, items: {} } : copy;
  const order = `items in this order: ${prefixItems.map(nameOfType).join(", ")}`;
  const isClosed = items === false || (typeof schema.maxItems === "number" && schema.maxItems <= prefixItems.length);
  const each: JsonObject = isClosed && prefixItems.length > 0 ? { anyOf: prefixItems } : {};
  return { ...rest, items: each, description: described(schema.description, [order]) };
};

/** Under these a schema that admits more makes the whole admit less. */
const turning = new Set(["not", "if", "oneOf", "contains"]);

const nameOfType = (schema: JsonValue): string => {
  if (!isJsonObject(schema)) return "anything";
  if (typeof schema.description === "string" && schema.description.length < 60) return schema.description;
  return typeof schema.type === "string" ? schema.type : "one of several types";
};

/** Longest text that definitions may be written out to. */
const longestWrittenOut = 64 * 1024;

/**
 * Amazon's own models take nothing but these three keywords at the root, so definitions are written out where they are referred to. A schema that refers to
 * itself, or would grow too long by that, keeps them: other models take it.
 */
const plainRoot = (schema: JsonObject): JsonObject => {
  const writtenOut = circleIn(schema) === null ? new Writer(schema).writeOut() : null;
  const { type = "object", properties = {}, required, $defs, definitions } = writtenOut ?? schema;
  return {
    type,
    properties,
    ...(required === undefined ? {} : { required }),
    ...(writtenOut !== null || $defs === undefined ? {} : { $defs }),
    ...(writtenOut !== null || definitions === undefined ? {} : { definitions }),
  };
};

class Writer {
  readonly #root: JsonObject;
  #length = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /** Null where it would become too long. */
  writeOut(): JsonObject | null {
    const { $defs: _defs, definitions: _definitions, ...rest } = this.#root;
    try {
      const copy = this.#copy(rest);
      return isJsonObject(copy) ? copy : null;
    } catch (thrown) {
      if (thrown instanceof TooLong) return null;
      throw thrown;
    }
  }

  #copy(schema: JsonValue): JsonValue {
    if (!isJsonObject(schema)) return schema;
    this.#length += ownLength(schema);
    if (this.#length > longestWrittenOut) throw new TooLong();
    const { $ref, ...rest } = schema;
    const pointer = pointerOf($ref);
    const copy: JsonObject = mapChildren(rest, (child) => this.#copy(child));
    if (pointer === null) return $ref === undefined ? copy : { $ref, ...copy };
    const target = this.#copy(valueAt(this.#root, pointer) ?? true);
    return joined(copy, target);
  }
}

class TooLong extends Error {}

/** Roughly the text that a schema adds besides its subschemas. */
const ownLength = (schema: JsonObject): number => {
  let length = 16;
  for (const [keyword, value] of Object.entries(schema)) {
    length += keyword.length + (typeof value === "string" ? value.length : 8) + (Array.isArray(value) ? 16 * value.length : 0);
    if (isJsonObject(value)) length += Object.keys(value).join("").length;
  }
  return length;
};

/** What a reference's own schema and its target both ask for. */
const joined = (own: JsonObject, target: JsonValue): JsonObject => {
  if (isJsonObject(target) && Object.keys(own).every((keyword) => words.has(keyword))) return { ...target, ...own };
  return { ...own, allOf: [...(Array.isArray(own.allOf) ? own.allOf : []), target] };
};
