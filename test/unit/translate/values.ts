import fc from "fast-check";
import { type JsonObject, type JsonValue, jsonObject } from "../../../src/api/json.ts";
import type { WitField, WitType } from "../../../src/api/wit.ts";
import { propertyName } from "../../../src/declaration/names.ts";

/**
 * JSON values of a WIT type, written from the table in docs/translation.md and not from the code under test.
 *
 * Floats are those that a trip through the type keeps: whole 32-bit floats written in their shortest form are left to tables.
 */
export const valuesOf = (type: WitType): fc.Arbitrary<JsonValue> => {
  switch (type.kind) {
    case "bool":
      return fc.boolean();
    case "u8":
    case "u16":
    case "u32":
      return fc.integer({ min: 0, max: 2 ** Number(type.kind.slice(1)) - 1 });
    case "s8":
    case "s16":
    case "s32":
      return fc.integer({ min: -(2 ** (Number(type.kind.slice(1)) - 1)), max: 2 ** (Number(type.kind.slice(1)) - 1) - 1 });
    case "u64":
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(exactInteger);
    case "s64":
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(exactInteger);
    case "f32":
      return fc.integer({ min: -(2 ** 20), max: 2 ** 20 }).map((value) => value / 8);
    case "f64":
      return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value));
    case "char":
      return fc.string({ unit: "binary", minLength: 1, maxLength: 1 });
    case "string":
      return fc.string({ unit: "binary" });
    case "list":
      if (type.element.kind === "u8" && type.length === undefined)
        return fc.uint8Array().map((bytes) => Buffer.from(bytes).toString("base64"));
      return fc.array(
        valuesOf(type.element),
        type.length === undefined ? { maxLength: 5 } : { minLength: type.length, maxLength: type.length },
      );
    case "tuple":
      return fc.tuple(...type.items.map(valuesOf));
    case "option":
      if (type.some.kind !== "option") return fc.option(valuesOf(type.some));
      return fc.option(valuesOf(type.some).map((some) => jsonObject([["some", some]])));
    case "result":
      return fc.oneof(sideOf("ok", type.ok), sideOf("err", type.err));
    case "record":
      return objectsOf(type.fields);
    case "enum":
      return fc.constantFrom(...type.cases.map(({ name }) => name));
    case "flags":
      return fc.subarray(type.flags.map(({ name }) => name));
    case "variant":
      if (type.cases.every((one) => one.type === null)) return fc.constantFrom(...type.cases.map(({ name }) => name));
      return fc.oneof(
        ...type.cases.map(({ name, type: payload }) =>
          payload
            ? valuesOf(payload).map((val) =>
                jsonObject([
                  ["tag", name],
                  ["val", val],
                ]),
              )
            : fc.constant(jsonObject([["tag", name]])),
        ),
      );
    case "map":
      if (type.key.kind === "string") {
        return fc
          .uniqueArray(fc.tuple(fc.string({ unit: "binary" }), valuesOf(type.value)), { maxLength: 5, selector: ([key]) => key })
          .map(jsonObject);
      }
      return fc
        .uniqueArray(fc.tuple(valuesOf(type.key), valuesOf(type.value)), { maxLength: 5, selector: ([key]) => String(key) })
        .map((entries) =>
          entries.map(([key, value]) =>
            jsonObject([
              ["key", key],
              ["value", value],
            ]),
          ),
        );
    default:
      throw new Error(`JSON carries no ${type.kind}`);
  }
};

/** Objects of these fields, each optional one there or not. */
export const objectsOf = (fields: readonly WitField[]): fc.Arbitrary<JsonObject> =>
  fc
    .tuple(...fields.map(({ name, type }) => entryOf(propertyName(name), type)))
    .map((entries) => jsonObject(entries.filter((entry) => entry !== null)));

const entryOf = (name: string, type: WitType): fc.Arbitrary<readonly [string, JsonValue] | null> => {
  if (type.kind !== "option") return valuesOf(type).map((value) => [name, value] as const);
  // A field of an option of an option may say none in two ways; only the one that results use is made here.
  const present = type.some.kind === "option" ? valuesOf(type).filter((value) => value !== null) : valuesOf(type.some);
  return fc.option(present.map((value) => [name, value] as const));
};

const sideOf = (side: "ok" | "err", type: WitType | null): fc.Arbitrary<JsonValue> =>
  (type ? valuesOf(type) : fc.constant(null)).map((value) => jsonObject([[side, value]]));

const exactInteger = (value: bigint): JsonValue =>
  BigInt(Number(value)) === value && Number.isSafeInteger(Number(value)) ? Number(value) : value;
