import { Invalid } from "../api/errors.ts";
import { defaultJsonLimits, isJsonObject, type JsonLimits, type JsonObject, type JsonValue, jsonObject, parseJson } from "../api/json.ts";
import type { WitField, WitFunction, WitType } from "../api/wit.ts";
import { witNameOf } from "../declaration/names.ts";
import { argumentFields, isBytes, isNestedOption, presentType } from "../declaration/shape.ts";
import { convertArguments, tooMuch } from "./to-component.ts";
import { Walk } from "./walk.ts";

/**
 * The arguments of a call as JSON text or its UTF-8 bytes, parsed exactly. Empty text means no arguments: some models send that.
 *
 * Throws `Invalid`: the codes of `parseJson`, `JsonNotUtf8`, or `ArgumentsNotObject` where the root is anything but an object.
 */
export const parseArguments = (source: string | Uint8Array, limits: JsonLimits = defaultJsonLimits): JsonObject => {
  const text = typeof source === "string" ? source : decodeUtf8(source, limits);
  if (text.trim() === "") return jsonObject([]);
  const value = parseJson(text, limits);
  if (!isJsonObject(value)) throw new Invalid("ArgumentsNotObject", `arguments must be a JSON object, not ${kindOf(value)}`, "");
  return value;
};

const decodeUtf8 = (bytes: Uint8Array, limits: JsonLimits): string => {
  if (bytes.byteLength > 3 * limits.maxLength) {
    throw new Invalid("JsonTooLong", `the JSON text has ${bytes.byteLength} bytes, more than ${limits.maxLength} characters can have`, "");
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new Invalid("JsonNotUtf8", "the JSON text is not valid UTF-8", "", { cause });
  }
};

const kindOf = (value: JsonValue): string => (value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`);

/**
 * Arguments in the one form that is judged, signed and run: an optional field given as null is left out, since models write both for the same thing
 * (not an option of an option, whose schema has a null of its own). Whatever doesn't fit the types stays as it is, for
 * `checkArguments` to name.
 */
export const normaliseArguments = (fn: Pick<WitFunction, "params">, value: JsonObject): JsonObject =>
  normaliseFields(new Walk(tooMuch), argumentFields(fn), value);

/**
 * Checks normalised arguments against the tool's own types, exactly: what passes converts, and what converts passes.
 *
 * Throws `Invalid` with code `ArgumentInvalid`; `at` is the JSON pointer, the message says what was expected there and what came.
 */
export const checkArguments = (fn: Pick<WitFunction, "params">, value: JsonObject): void => {
  convertArguments(fn, value);
};

const normaliseFields = (walk: Walk, fields: readonly WitField[], object: JsonObject): JsonObject => {
  const entries: [string, JsonValue][] = [];
  for (const [key, value] of Object.entries(object)) {
    const type = walk.find(fields, witNameOf(key))?.type;
    if (value === null && type?.kind === "option" && !isNestedOption(type)) continue;
    entries.push([key, type ? normalise(walk, presentType(type), value) : value]);
  }
  return jsonObject(entries);
};

const normalise = (walk: Walk, type: WitType, value: JsonValue): JsonValue => {
  switch (type.kind) {
    case "record":
      return isJsonObject(value) ? normaliseFields(walk, type.fields, value) : value;
    case "list":
      return Array.isArray(value) && !isBytes(type) ? value.map((item: JsonValue) => normalise(walk, type.element, item)) : value;
    case "tuple":
      return Array.isArray(value) ? value.map((item: JsonValue, index) => normaliseSide(walk, type.items[index], item)) : value;
    case "option":
      if (!isNestedOption(type)) return value === null ? null : normalise(walk, type.some, value);
      return within(walk, value, "some", type.some);
    case "result":
      return within(walk, within(walk, value, "ok", type.ok), "err", type.err);
    case "variant": {
      if (walk.isPlain(type) || !isJsonObject(value)) return value;
      return within(walk, value, "val", walk.find(type.cases, value.tag)?.type);
    }
    case "map":
      return normaliseMap(walk, type, value);
    default:
      return value;
  }
};

const normaliseMap = (walk: Walk, type: Extract<WitType, { kind: "map" }>, value: JsonValue): JsonValue => {
  if (type.key.kind !== "string") {
    return Array.isArray(value)
      ? value.map((entry: JsonValue) => within(walk, within(walk, entry, "key", type.key), "value", type.value))
      : value;
  }
  if (!isJsonObject(value)) return value;
  return jsonObject(Object.entries(value).map(([key, item]) => [key, normalise(walk, type.value, item)] as const));
};

const normaliseSide = (walk: Walk, type: WitType | null | undefined, value: JsonValue): JsonValue =>
  type ? normalise(walk, type, value) : value;

/** The object with the value of one of its keys normalised; anything else as it is. */
const within = (walk: Walk, value: JsonValue, key: string, type: WitType | null | undefined): JsonValue => {
  if (!isJsonObject(value) || !type) return value;
  const inner = value[key];
  if (inner === undefined) return value;
  return jsonObject(Object.entries(value).map(([name, item]) => [name, name === key ? normalise(walk, type, item) : item] as const));
};
