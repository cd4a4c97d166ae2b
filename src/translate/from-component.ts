import { Invalid } from "../api/errors.ts";
import { type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { WitCase, WitField, WitLabel, WitType } from "../api/wit.ts";
import { propertyName } from "../declaration/names.ts";
import { isBytes, isNestedOption, presentType } from "../declaration/shape.ts";
import { base64Of } from "./base64.ts";
import { jcoName } from "./jco-names.ts";
import { type Path, pointerOf } from "./path.ts";
import { Walk } from "./walk.ts";

/** What may still be produced, in bytes of JSON text. Spent while converting, so that a bomb is found before it is written out. */
export interface ResultBudget {
  remaining: number;
}

/**
 * A value that jco's generated function returned, as exact JSON. Optional fields that hold nothing are left out.
 *
 * Throws `Invalid` with code `ResultTooLarge` once the budget is spent, `ResultInvalid` where the value isn't of its type; `at` is the JSON pointer.
 */
export const fromComponentValue = (type: WitType, value: unknown, budget: ResultBudget): JsonValue =>
  convert(new Walk(() => tooLarge(null)), type, value, null, budget);

const convert = (walk: Walk, type: WitType, value: unknown, path: Path, budget: ResultBudget): JsonValue => {
  switch (type.kind) {
    case "bool":
      if (typeof value !== "boolean") throw unfit(path, "a bool", value);
      spend(budget, 5, path);
      return value;
    case "string":
      return text(value, path, budget);
    case "char": {
      const char = text(value, path, budget);
      if ([...char].length !== 1) throw unfit(path, "one character", value);
      return char;
    }
    case "u64":
    case "s64":
      if (typeof value !== "bigint") throw unfit(path, "a 64-bit integer", value);
      spend(budget, 20, path);
      return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
    case "f32":
    case "f64":
      return float(type.kind, value, path, budget);
    case "list":
      return list(walk, type, value, path, budget);
    case "tuple":
      spend(budget, 2, path);
      return itemsOf(value, path, type.items.length).map((item, index) => {
        const itemType = type.items[index];
        return itemType ? convert(walk, itemType, item, { up: path, key: index }, budget) : null;
      });
    case "option":
      return option(walk, type, value, path, budget);
    case "result":
      return result(walk, type, value, path, budget);
    case "record":
      return record(walk, type.fields, value, path, budget);
    case "enum":
      return label(walk, type.cases, value, path, budget);
    case "flags":
      return flags(walk, type.flags, value, path, budget);
    case "variant":
      return variant(walk, type.cases, walk.isPlain(type), value, path, budget);
    case "map":
      return map(walk, type, value, path, budget);
    case "own":
    case "borrow":
    case "stream":
    case "future":
    case "error-context":
      throw new Invalid("TypeNotRepresentable", `${shown(path)}: JSON can't carry a value of type ${type.kind}`, pointerOf(path));
    default:
      if (typeof value !== "number" || !Number.isInteger(value)) throw unfit(path, "an integer", value);
      spend(budget, 10, path);
      return value;
  }
};

const text = (value: unknown, path: Path, budget: ResultBudget): string => {
  if (typeof value !== "string") throw unfit(path, "text", value);
  spend(budget, value.length + 2, path);
  if (!value.isWellFormed()) throw unfit(path, "whole Unicode text", value);
  return value;
};

const float = (kind: "f32" | "f64", value: unknown, path: Path, budget: ResultBudget): JsonValue => {
  if (typeof value !== "number") throw unfit(path, "a number", value);
  spend(budget, 20, path);
  if (!Number.isFinite(value)) return String(value);
  return kind === "f32" ? shortestF32(value) : value;
};

/** The shortest decimal that a 32-bit float reads back as: 0.1 rather than 0.10000000149011612. */
const shortestF32 = (value: number): number => {
  for (let digits = 6; digits <= 9; digits++) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value && Number.isFinite(shorter)) return shorter;
  }
  return value;
};

const list = (walk: Walk, type: Extract<WitType, { kind: "list" }>, value: unknown, path: Path, budget: ResultBudget): JsonValue => {
  if (isBytes(type)) {
    if (!(value instanceof Uint8Array)) throw unfit(path, "bytes", value);
    spend(budget, 2 + 4 * Math.ceil(value.byteLength / 3), path);
    return base64Of(value);
  }
  const items = itemsOf(value, path, type.length);
  spend(budget, 2 + items.length, path);
  return Array.from(items, (item, index) => convert(walk, type.element, item, { up: path, key: index }, budget));
};

const itemsOf = (value: unknown, path: Path, length: number | undefined): readonly unknown[] => {
  const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
  if (!isList) throw unfit(path, "a list", value);
  const items = value as unknown as readonly unknown[];
  if (length !== undefined && items.length !== length) throw unfit(path, `${length} items`, value);
  return items;
};

const option = (walk: Walk, type: Extract<WitType, { kind: "option" }>, value: unknown, path: Path, budget: ResultBudget): JsonValue => {
  const held = heldBy(type, value, path);
  if (!held) {
    spend(budget, 4, path);
    return null;
  }
  if (!isNestedOption(type)) return convert(walk, type.some, held.value, path, budget);
  spend(budget, 9, path);
  return jsonObject([["some", convert(walk, type.some, held.value, { up: path, key: "some" }, budget)]]);
};

/** What an option holds in jco's form; null for none. */
const heldBy = (type: Extract<WitType, { kind: "option" }>, value: unknown, path: Path): { value: unknown } | null => {
  if (!isNestedOption(type)) return value === undefined || value === null ? null : { value };
  const { tag, val } = taggedValue(value, path);
  if (tag === "none") return null;
  if (tag !== "some") throw unfit(path, "an option", value);
  return { value: val };
};

const result = (walk: Walk, type: Extract<WitType, { kind: "result" }>, value: unknown, path: Path, budget: ResultBudget): JsonValue => {
  const { tag, val } = taggedValue(value, path);
  if (tag !== "ok" && tag !== "err") throw unfit(path, "a result", value);
  const side = tag === "ok" ? type.ok : type.err;
  spend(budget, 12, path);
  return jsonObject([[tag, side ? convert(walk, side, val, { up: path, key: tag }, budget) : null]]);
};

const record = (walk: Walk, fields: readonly WitField[], value: unknown, path: Path, budget: ResultBudget): JsonObject => {
  if (typeof value !== "object" || value === null) throw unfit(path, "a record", value);
  spend(budget, 2, path);
  const held = value as Readonly<Record<string, unknown>>;
  const entries: [string, JsonValue][] = [];
  for (const field of fields) {
    const name = propertyName(field.name);
    const at = { up: path, key: name };
    const inner = held[jcoName(field.name)];
    spend(budget, name.length + 4, at);
    if (field.type.kind === "option" && !heldBy(field.type, inner, at)) continue;
    entries.push([name, convert(walk, presentType(field.type), inner, at, budget)]);
  }
  return jsonObject(entries);
};

const label = (walk: Walk, labels: readonly WitLabel[], value: unknown, path: Path, budget: ResultBudget): string => {
  const found = walk.find(labels, value);
  if (!found) throw unfit(path, "one of its names", value);
  spend(budget, found.name.length + 3, path);
  return found.name;
};

const flags = (walk: Walk, labels: readonly WitLabel[], value: unknown, path: Path, budget: ResultBudget): JsonValue => {
  if (typeof value !== "object" || value === null) throw unfit(path, "flags", value);
  spend(budget, 2, path);
  walk.step(labels.length);
  const held = value as Readonly<Record<string, unknown>>;
  const set = labels.filter(({ name }) => held[jcoName(name)] === true).map(({ name }) => name);
  for (const name of set) spend(budget, name.length + 3, path);
  return set;
};

const variant = (walk: Walk, cases: readonly WitCase[], isPlain: boolean, value: unknown, path: Path, budget: ResultBudget): JsonValue => {
  const { tag, val } = taggedValue(value, path);
  const one = walk.find(cases, tag);
  if (!one) throw unfit(path, "one of its cases", tag);
  spend(budget, one.name.length + 24, path);
  if (isPlain) return one.name;
  if (!one.type) return jsonObject([["tag", one.name]]);
  return jsonObject([
    ["tag", one.name],
    ["val", convert(walk, one.type, val, { up: path, key: "val" }, budget)],
  ]);
};

const map = (walk: Walk, type: Extract<WitType, { kind: "map" }>, value: unknown, path: Path, budget: ResultBudget): JsonValue => {
  if (!(value instanceof Map)) throw unfit(path, "a map", value);
  spend(budget, 2, path);
  if (type.key.kind === "string") {
    const entries: [string, JsonValue][] = [];
    for (const [key, item] of value) {
      const name = text(key, path, budget);
      entries.push([name, convert(walk, type.value, item, { up: path, key: name }, budget)]);
    }
    return jsonObject(entries);
  }
  const entries: JsonValue[] = [];
  for (const [key, item] of value) {
    const at = { up: path, key: entries.length };
    spend(budget, 18, at);
    const keyJson = convert(walk, type.key, key, { up: at, key: "key" }, budget);
    entries.push(
      jsonObject([
        ["key", keyJson],
        ["value", convert(walk, type.value, item, { up: at, key: "value" }, budget)],
      ]),
    );
  }
  return entries;
};

const taggedValue = (value: unknown, path: Path): { tag: unknown; val: unknown } => {
  if (typeof value !== "object" || value === null || !("tag" in value)) throw unfit(path, "a tagged value", value);
  return { tag: value.tag, val: "val" in value ? value.val : undefined };
};

const spend = (budget: ResultBudget, bytes: number, path: Path): void => {
  budget.remaining -= bytes;
  if (budget.remaining < 0) throw tooLarge(path);
};

const tooLarge = (path: Path): Invalid =>
  new Invalid("ResultTooLarge", "the tool's result is larger than its limit allows", pointerOf(path));

const shown = (path: Path): string => pointerOf(path) || "the result";

const unfit = (path: Path, expected: string, got: unknown): Invalid =>
  new Invalid(
    "ResultInvalid",
    `${shown(path)}: the tool gave ${got === null ? "null" : typeof got} where its type says ${expected}`,
    pointerOf(path),
  );
