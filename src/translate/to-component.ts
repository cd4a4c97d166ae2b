import { Invalid } from "../api/errors.ts";
import { isJsonObject, type JsonArray, type JsonObject, type JsonValue } from "../api/json.ts";
import type { Primitive, WitCase, WitField, WitFunction, WitType } from "../api/wit.ts";
import { propertyName } from "../declaration/names.ts";
import { largestF32 } from "../declaration/schema.ts";
import { argumentFields, isBytes, isNestedOption, isPlainVariant, presentType, soleRecord } from "../declaration/shape.ts";
import { bytesOfBase64, isBase64 } from "./base64.ts";
import { jcoName } from "./jco-names.ts";
import { type Path, pointerOf } from "./path.ts";
import { Walk } from "./walk.ts";
import { cut, enumerated, inShort } from "./wording.ts";

/**
 * The values to call jco's generated function with, one a parameter, from normalised arguments.
 *
 * Throws `Invalid` with code `ArgumentInvalid`, as `checkArguments` does: they are the same walk.
 */
export const toComponentValues = (fn: Pick<WitFunction, "params">, value: JsonObject): unknown[] => convertArguments(fn, value);

/** See `toComponentValues`. */
export const convertArguments = (fn: Pick<WitFunction, "params">, value: JsonObject): unknown[] => {
  const fields = argumentFields(fn);
  const converted = convertFields(new Walk(tooMuch), fields, value, null);
  if (soleRecord(fn)) return [converted];
  return fields.map((field) => converted[jcoName(field.name)]);
};

/** The error of arguments that would take too long to convert. */
export const tooMuch = (): Invalid =>
  new Invalid("ArgumentInvalid", "the arguments: expected arguments simple enough to be checked; got more than can be checked in time", "");

const convertFields = (walk: Walk, fields: readonly WitField[], value: JsonValue, path: Path): Record<string, unknown> => {
  if (!isJsonObject(value)) throw unfit(path, objectOf(fields), value);
  walk.step(1 + fields.length);
  const made: Record<string, unknown> = {};
  let known = 0;
  for (const field of fields) {
    const name = propertyName(field.name);
    const given = value[name];
    const type = field.type;
    if (given !== undefined) {
      known++;
      made[jcoName(field.name)] = convert(walk, presentType(type), given, { up: path, key: name });
    } else if (type.kind === "option") {
      made[jcoName(field.name)] = none(type);
    } else {
      throw new Invalid(
        "ArgumentInvalid",
        `${shown({ up: path, key: name })}: required but missing; expected ${expectation(type)}`,
        pointerOf({ up: path, key: name }),
      );
    }
  }
  if (known < Object.keys(value).length) throw unknownKey(fields, value, path);
  return made;
};

const integerRange: Readonly<Record<string, readonly [number | bigint, number | bigint]>> = {
  u8: [0, 0xff],
  u16: [0, 0xffff],
  u32: [0, 0xffff_ffff],
  u64: [0n, 2n ** 64n - 1n],
  s8: [-0x80, 0x7f],
  s16: [-0x8000, 0x7fff],
  s32: [-0x8000_0000, 0x7fff_ffff],
  s64: [-(2n ** 63n), 2n ** 63n - 1n],
};

const convert = (walk: Walk, type: WitType, value: JsonValue, path: Path): unknown => {
  switch (type.kind) {
    case "bool":
      if (typeof value !== "boolean") throw unfit(path, expectation(type), value);
      return value;
    case "string":
      if (typeof value !== "string" || !value.isWellFormed()) throw unfit(path, expectation(type), value);
      return value;
    case "char":
      if (typeof value !== "string" || !isOneScalar(value)) throw unfit(path, expectation(type), value);
      return value;
    case "u8":
    case "u16":
    case "u32":
    case "s8":
    case "s16":
    case "s32":
      return Number(integer(type.kind, value, path));
    case "u64":
    case "s64":
      return BigInt(integer(type.kind, value, path));
    case "f32":
    case "f64":
      return float(type.kind, value, path);
    case "list":
      return convertList(walk, type, value, path);
    case "tuple":
      return elements(value, path, type, type.items.length).map((item, index) => {
        const itemType = type.items[index];
        return itemType && convert(walk, itemType, item, { up: path, key: index });
      });
    case "option":
      return convertOption(walk, type, value, path);
    case "result":
      return convertResult(walk, type, value, path);
    case "record":
      return convertFields(walk, type.fields, value, path);
    case "enum":
      return oneOf(walk, type.cases, value, path);
    case "flags":
      return convertFlags(walk, type, value, path);
    case "variant":
      return walk.isPlain(type) ? { tag: oneOf(walk, type.cases, value, path) } : convertVariant(walk, type.cases, value, path);
    case "map":
      return convertMap(walk, type, value, path);
    default:
      throw new Invalid("TypeNotRepresentable", `${shown(path)}: JSON can't carry a value of type ${type.kind}`, pointerOf(path));
  }
};

/** Half a surrogate pair is no scalar value; neither are two characters that look like one. */
const isOneScalar = (text: string): boolean => text.length <= 2 && text.isWellFormed() && [...text].length === 1;

const integer = (kind: Primitive, value: JsonValue, path: Path): number | bigint => {
  const isInteger = typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
  const [lowest, highest] = integerRange[kind] ?? [0, 0];
  if (!isInteger || value < lowest || value > highest) throw unfit(path, `an integer from ${lowest} to ${highest}`, value);
  return value;
};

const float = (kind: "f32" | "f64", value: JsonValue, path: Path): number => {
  if (typeof value !== "number" && typeof value !== "bigint") throw unfit(path, "a number", value);
  // Compared before rounding, as the schema's bounds are.
  if (kind === "f32" && (value > largestF32 || value < -largestF32))
    throw unfit(path, "a number that fits 32 bits (at most about 3.4e38)", value);
  const nearest = Number(value);
  if (!Number.isFinite(nearest)) throw unfit(path, "a number that fits 64 bits", value);
  return nearest;
};

/** Lists of numbers go as typed arrays, which jco copies whole. */
const typedArrays: Readonly<Record<string, (items: unknown[]) => unknown>> = {
  u8: (items) => Uint8Array.from(items as number[]),
  u16: (items) => Uint16Array.from(items as number[]),
  u32: (items) => Uint32Array.from(items as number[]),
  u64: (items) => BigUint64Array.from(items as bigint[]),
  s8: (items) => Int8Array.from(items as number[]),
  s16: (items) => Int16Array.from(items as number[]),
  s32: (items) => Int32Array.from(items as number[]),
  s64: (items) => BigInt64Array.from(items as bigint[]),
  f32: (items) => Float32Array.from(items as number[]),
  f64: (items) => Float64Array.from(items as number[]),
};

const convertList = (walk: Walk, type: Extract<WitType, { kind: "list" }>, value: JsonValue, path: Path): unknown => {
  if (isBytes(type)) {
    if (typeof value !== "string" || !isBase64(value)) throw unfit(path, expectation(type), value);
    return bytesOfBase64(value);
  }
  const items = elements(value, path, type, type.length).map((item, index) => convert(walk, type.element, item, { up: path, key: index }));
  const typed = type.length === undefined ? typedArrays[type.element.kind] : undefined;
  return typed ? typed(items) : items;
};

const elements = (value: JsonValue, path: Path, type: WitType, length: number | undefined): JsonArray => {
  if (!Array.isArray(value)) throw unfit(path, expectation(type), value);
  const items: JsonArray = value;
  if (length !== undefined && items.length !== length) throw unfit(path, expectation(type), value);
  return items;
};

/** jco writes an option as its value or undefined, and one whose value is an option as a tagged variant. */
const none = (type: Extract<WitType, { kind: "option" }>): unknown => (isNestedOption(type) ? { tag: "none" } : undefined);

const convertOption = (walk: Walk, type: Extract<WitType, { kind: "option" }>, value: JsonValue, path: Path): unknown => {
  if (value === null) return none(type);
  if (!isNestedOption(type)) return convert(walk, type.some, value, path);
  if (!isJsonObject(value) || value.some === undefined || Object.keys(value).length !== 1) throw unfit(path, expectation(type), value);
  return { tag: "some", val: convert(walk, type.some, value.some, { up: path, key: "some" }) };
};

const convertResult = (walk: Walk, type: Extract<WitType, { kind: "result" }>, value: JsonValue, path: Path): unknown => {
  if (!isJsonObject(value) || Object.keys(value).length !== 1) throw unfit(path, expectation(type), value);
  const tag = value.ok !== undefined ? "ok" : "err";
  const given = value[tag];
  if (given === undefined) throw unfit(path, expectation(type), value);
  const side = tag === "ok" ? type.ok : type.err;
  const inner = { up: path, key: tag };
  if (side) return { tag, val: convert(walk, side, given, inner) };
  if (given !== null) throw unfit(inner, "null", given);
  return { tag, val: undefined };
};

const convertVariant = (walk: Walk, cases: readonly WitCase[], value: JsonValue, path: Path): unknown => {
  if (!isJsonObject(value)) throw unfit(path, tagged(cases), value);
  const one = walk.find(cases, value.tag);
  if (!one) throw unfit({ up: path, key: "tag" }, names(cases), value.tag);
  const allowed = one.type ? ["tag", "val"] : ["tag"];
  for (const key of Object.keys(value)) {
    if (!allowed.includes(key)) throw unfit(path, `an object with ${allowed.join(" and ")} for the case "${one.name}"`, value);
  }
  if (!one.type) return { tag: one.name };
  const inner = { up: path, key: "val" };
  if (value.val === undefined) throw unfit(inner, expectation(one.type), undefined);
  return { tag: one.name, val: convert(walk, one.type, value.val, inner) };
};

const convertFlags = (walk: Walk, type: Extract<WitType, { kind: "flags" }>, value: JsonValue, path: Path): unknown => {
  walk.step(type.flags.length);
  const made: Record<string, boolean> = {};
  for (const { name } of type.flags) made[jcoName(name)] = false;
  const seen = new Set<string>();
  elements(value, path, type, undefined).forEach((item, index) => {
    const inner = { up: path, key: index };
    const name = oneOf(walk, type.flags, item, inner);
    if (seen.has(name)) throw unfit(inner, "each flag at most once", item);
    seen.add(name);
    made[jcoName(name)] = true;
  });
  return made;
};

const convertMap = (walk: Walk, type: Extract<WitType, { kind: "map" }>, value: JsonValue, path: Path): unknown => {
  const made = new Map<unknown, unknown>();
  if (type.key.kind === "string") {
    if (!isJsonObject(value)) throw unfit(path, expectation(type), value);
    for (const [key, item] of Object.entries(value)) {
      if (!key.isWellFormed()) throw unfit(path, "keys that are whole text", key);
      made.set(key, convert(walk, type.value, item, { up: path, key }));
    }
    return made;
  }
  elements(value, path, type, undefined).forEach((entry, index) => {
    const at = { up: path, key: index };
    if (!isJsonObject(entry) || Object.keys(entry).length !== 2) throw unfit(at, "an object with key and value", entry);
    if (entry.key === undefined || entry.value === undefined) throw unfit(at, "an object with key and value", entry);
    const key = convert(walk, type.key, entry.key, { up: at, key: "key" });
    if (made.has(key)) throw unfit({ up: at, key: "key" }, "each key at most once", entry.key);
    made.set(key, convert(walk, type.value, entry.value, { up: at, key: "value" }));
  });
  return made;
};

const oneOf = (walk: Walk, labels: readonly { readonly name: string }[], value: JsonValue, path: Path): string => {
  const label = walk.find(labels, value);
  if (!label) throw unfit(path, names(labels), value);
  return label.name;
};

// What follows is wording only.

const names = (labels: readonly { readonly name: string }[]): string => `one of ${enumerated(labels.map(({ name }) => `"${name}"`))}`;
const tagged = (cases: readonly WitCase[]): string => `an object whose tag is ${names(cases)}`;
const objectOf = (fields: readonly WitField[]): string =>
  fields.length === 0 ? "an empty object" : `an object with ${enumerated(fields.map(({ name }) => propertyName(name)))}`;

const expectation = (type: WitType): string => {
  switch (type.kind) {
    case "bool":
      return "true or false";
    case "string":
      return "a string";
    case "char":
      return "a string of exactly one character";
    case "f32":
    case "f64":
      return "a number";
    case "list":
      if (isBytes(type)) return "a string of base64 with padding";
      return type.length === undefined ? "an array" : `an array of exactly ${type.length} items`;
    case "tuple":
      return `an array of exactly ${type.items.length} items`;
    case "option":
      return isNestedOption(type) ? 'an object with "some" alone, or null' : `${expectation(type.some)}, or null`;
    case "result":
      return 'an object with either "ok" or "err"';
    case "record":
      return objectOf(type.fields);
    case "enum":
      return names(type.cases);
    case "flags":
      return `an array from ${enumerated(type.flags.map(({ name }) => `"${name}"`))}`;
    case "variant":
      return isPlainVariant(type) ? names(type.cases) : tagged(type.cases);
    case "map":
      return type.key.kind === "string" ? "an object" : "an array of objects with key and value";
    default: {
      const [lowest, highest] = integerRange[type.kind] ?? [];
      return lowest === undefined ? `a value of type ${type.kind}` : `an integer from ${lowest} to ${highest}`;
    }
  }
};

const shown = (path: Path): string => pointerOf(path) || "the arguments";

const unfit = (path: Path, expected: string, got: JsonValue | undefined): Invalid =>
  new Invalid("ArgumentInvalid", `${shown(path)}: expected ${expected}; got ${inShort(got)}`, pointerOf(path));

const unknownKey = (fields: readonly WitField[], value: JsonObject, path: Path): Invalid => {
  const known = new Set(fields.map(({ name }) => propertyName(name)));
  const key = Object.keys(value).find((name) => !known.has(name)) ?? "";
  const at = { up: path, key: cut(key, 80) };
  return new Invalid("ArgumentInvalid", `${shown(at)}: no such property; expected ${objectOf(fields)}`, pointerOf(at));
};
