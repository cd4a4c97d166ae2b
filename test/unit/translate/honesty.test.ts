import assert from "node:assert/strict";
import { it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { canonicalJson, compactJson, type JsonObject, type JsonValue, jsonObject, parseJson } from "../../../src/api/json.ts";
import type { WitFunction, WitType } from "../../../src/api/wit.ts";
import { outputSchema, parametersSchema } from "../../../src/declaration/schema.ts";
import { checkArguments, normaliseArguments } from "../../../src/translate/arguments.ts";
import { resultOf } from "../../../src/translate/result.ts";
import { compileSchema } from "../../../src/translate/schema-judge.ts";
import { toComponentValues } from "../../../src/translate/to-component.ts";
import { types } from "./types.ts";
import { valuesOf } from "./values.ts";

const functionOf = (param: WitType, result: WitType | null = null): Pick<WitFunction, "params" | "result"> => ({
  params: [
    { name: "first-value", type: param },
    { name: "rest", type: { kind: "option", some: { kind: "string" } } },
  ],
  result,
});

const converts = (fn: Pick<WitFunction, "params">, value: JsonObject): boolean => {
  try {
    checkArguments(fn, value);
    return true;
  } catch (thrown) {
    if (thrown instanceof Invalid && thrown.code === "ArgumentInvalid") return false;
    throw thrown;
  }
};

/** Another value in place of one part: what a model that misreads a schema might send. */
const mutated = (value: JsonValue, choose: (below: number) => number, strange: JsonValue): JsonValue => {
  const isLeaf = typeof value !== "object" || value === null || choose(4) === 0;
  if (isLeaf) return strange;
  if (Array.isArray(value)) {
    const items: JsonValue[] = [...value];
    const at = choose(items.length + 1);
    items[at] = at < items.length ? mutated(items[at] ?? null, choose, strange) : strange;
    return items;
  }
  const entries = Object.entries(value as JsonObject);
  const at = choose(entries.length + 1);
  const [key, inner] = entries[at] ?? ["val", null];
  entries[at] = [key, mutated(inner, choose, strange)];
  return jsonObject(choose(5) === 0 ? entries.filter((_, index) => index !== at) : entries);
};

const strangeValues = fc.oneof(
  fc.constantFrom<JsonValue>(
    null,
    true,
    0,
    -1,
    1.5,
    256,
    4294967296,
    1e39,
    12345678901234567890n,
    "",
    "a",
    "ab",
    "😀",
    "AB==",
    "AA==",
    "none",
    "a b",
  ),
  fc.constantFrom<JsonValue>(
    [],
    [null],
    ["a", "a"],
    {},
    { some: null },
    { some: 1 },
    { ok: null },
    { err: null, ok: null },
    { tag: "c-a" },
    { val: 1 },
  ),
  fc.jsonValue().map((value) => parseJson(JSON.stringify(value))),
);

/** What JSON Schema can't say of our types (docs/translation.md, Exceptions): only the tool's own check knows. */
const saidOnlyByTheTool = (thrown: unknown): boolean =>
  thrown instanceof Invalid &&
  /expected (an integer from (0|-9223372036854775808) to (9223372036854775807|18446744073709551615)|each key at most once)/.test(
    thrown.message,
  );

it("what a schema admits converts, and what converts the schema admits", () => {
  fc.assert(
    fc.property(
      types.chain((type) => fc.tuple(fc.constant(type), valuesOf(type), strangeValues, fc.infiniteStream(fc.nat(1000)))),
      ([type, valid, strange, numbers]) => {
        const fn = functionOf(type);
        const judge = compileSchema(parametersSchema(fn));
        const choose = (below: number): number => (numbers.next().value ?? 0) % below;
        for (const value of [valid, mutated(valid, choose, strange), mutated(valid, choose, strange)]) {
          const sent = normaliseArguments(fn, jsonObject([["first_value", value]]));
          const violation = judge(sent);
          const where = compactJson(sent);
          if (violation === null) {
            try {
              toComponentValues(fn, sent);
            } catch (thrown) {
              assert.ok(saidOnlyByTheTool(thrown), `${where}: ${thrown}`);
            }
          } else {
            assert.equal(converts(fn, sent), false, `${where}: ${violation.message}`);
          }
        }
        assert.equal(judge(normaliseArguments(fn, jsonObject([["first_value", valid]]))), null);
      },
    ),
    { numRuns: 150 },
  );
});

it("every result fits the output schema and is what went in", () => {
  fc.assert(
    fc.property(
      types.chain((type) => fc.tuple(fc.constant(type), valuesOf(type))),
      ([type, value]) => {
        // In a tuple, which adds nothing of its own: a list of u8 would be base64.
        const fn = functionOf({ kind: "tuple", items: [type] }, { kind: "tuple", items: [type] });
        const [converted] = toComponentValues(fn, jsonObject([["first_value", [value]]])) as [ArrayLike<unknown>];
        const result = resultOf(fn, { returned: [converted[0]] }, 1024 * 1024);
        assert.ok(result.outcome === "ok" && result.structured);
        assert.equal(canonicalJson(result.structured), canonicalJson(jsonObject([["result", [value]]])));
        const schema = outputSchema(fn);
        assert.ok(schema);
        assert.equal(compileSchema(schema)(result.structured), null);
      },
    ),
    { numRuns: 100 },
  );
});

it("generated schemas are valid 2020-12 and survive their own JSON text", () => {
  const ajv = new Ajv2020({ strict: false });
  fc.assert(
    fc.property(types, (type) => {
      for (const schema of [parametersSchema(functionOf(type)), outputSchema(functionOf(type, { kind: "tuple", items: [type] }))]) {
        assert.ok(schema);
        assert.ok(ajv.validateSchema(JSON.parse(compactJson(schema))), JSON.stringify(ajv.errors));
        assert.equal(compactJson(parseJson(compactJson(schema))), compactJson(schema));
      }
    }),
    { numRuns: 100 },
  );
});
