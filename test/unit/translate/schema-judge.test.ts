import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson, type JsonObject, parseJson } from "../../../src/api/json.ts";
import { compileSchema } from "../../../src/translate/schema-judge.ts";

const parsed = (text: string): JsonObject => parseJson(text) as JsonObject;
const property = (schema: string): JsonObject =>
  parsed(`{"type":"object","properties":{"a":${schema}},"required":["a"],"additionalProperties":false}`);

describe("a value is judged", () => {
  const cases: Record<string, { schema: string; value: string; violation: string | null }> = {
    "exactly at a bound beyond 2^53": {
      schema: '{"type":"integer","maximum":18446744073709551615}',
      value: "18446744073709551615",
      violation: null,
    },
    "exactly above it": {
      schema: '{"type":"integer","maximum":18446744073709551615}',
      value: "18446744073709551616",
      violation: "/a: expected at most 18446744073709551615; got 18446744073709551616",
    },
    "exactly below an exclusive one": { schema: '{"exclusiveMinimum":9007199254740992}', value: "9007199254740993", violation: null },
    "as an integer beyond 2^53": { schema: '{"type":"integer"}', value: "9007199254740993", violation: null },
    "as no integer": { schema: '{"type":"integer"}', value: "1.5", violation: "/a: expected an integer; got 1.5" },
    "as an integer with zeros after the point": { schema: '{"type":"integer"}', value: "42.0", violation: null },
    "as a multiple, exactly": { schema: '{"multipleOf":3}', value: "9007199254740993", violation: null },
    "as no multiple, exactly": {
      schema: '{"multipleOf":2}',
      value: "9007199254740993",
      violation: "/a: expected a multiple of 2; got 9007199254740993",
    },
    "as a multiple of a fraction": { schema: '{"multipleOf":0.01}', value: "4.35", violation: null },
    "against an enum of integers that round to the same double": {
      schema: '{"enum":[9007199254740993]}',
      value: "9007199254740992",
      violation: "/a: expected one of 9007199254740993; got 9007199254740992",
    },
    "against an enum with another case": {
      schema: '{"enum":["open","closed"]}',
      value: '"Open"',
      violation: '/a: expected one of "open", "closed"; got the string "Open"',
    },
    "against a const that is an object, in any order": { schema: '{"const":{"x":1,"y":[2]}}', value: '{"y":[2],"x":1.0}', violation: null },
    "as items that differ beyond 2^53": { schema: '{"uniqueItems":true}', value: "[9007199254740993,9007199254740992]", violation: null },
    "as items that are equal": {
      schema: '{"uniqueItems":true}',
      value: '[{"x":1,"y":2},{"y":2,"x":1.0}]',
      violation: "/a: expected items that all differ; got an array of 2 items",
    },
    "by characters, not by code units": { schema: '{"type":"string","maxLength":1}', value: '"😀"', violation: null },
    "by a pattern, in code points": { schema: '{"pattern":"^.$"}', value: '"😀"', violation: null },
    "by a pattern with an escape of ECMAScript": { schema: '{"pattern":"^\\\\u0061$"}', value: '"a"', violation: null },
    "by a pattern that could take exponential time": {
      schema: '{"pattern":"^(a+)+$"}',
      value: `"${"a".repeat(5000)}!"`,
      violation: `/a: expected a string that matches the pattern ^(a+)+$; got the string "${"a".repeat(39)}…"`,
    },
    "by the alternative that was most likely meant": {
      schema: '{"anyOf":[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},{"type":"null"}]}',
      value: '{"n":"1"}',
      violation: '/a/n: expected an integer; got the string "1"',
    },
    "by all alternatives": {
      schema: '{"anyOf":[{"type":"boolean"},{"type":"null"}]}',
      value: "1",
      violation: "/a: expected a boolean or null; got 1",
    },
    "without regard to a format": { schema: '{"type":"string","format":"email"}', value: '"x"', violation: null },
    "through a reference": { schema: '{"type":"array","items":{"$ref":"#/properties/a"}}', value: "[[[]]]", violation: null },
    "by an item that an empty array hasn't": {
      schema: '{"type":"array","prefixItems":[{"type":"object"}],"contains":{"type":"object"}}',
      value: "[]",
      violation: "/a: expected an array with an item that the schema asks for; got an array of 0 items",
    },
    "by an item that an empty array hasn't, whatever the array before it has": {
      schema: '{"type":"array","items":{"type":"array","contains":{"const":1}}}',
      value: "[[1],[]]",
      violation: "/a/1: expected an array with an item that the schema asks for; got an array of 0 items",
    },
    "where nothing is left to account for": {
      schema: '{"oneOf":[{"not":true,"anyOf":[{"additionalProperties":{"type":"object"}}]},{"patternProperties":{"^a":{}}}]}',
      value: "{}",
      violation: null,
    },
    "as a key like any other": {
      schema: '{"type":"object","additionalProperties":{"type":"integer"}}',
      value: '{"toString":"x"}',
      violation: '/a/toString: expected an integer; got the string "x"',
    },
    "by its own properties alone": {
      schema: '{"type":"object","required":["toString"]}',
      value: "{}",
      violation: "/a/toString: expected a value (it is required); got nothing",
    },
  };
  for (const [name, { schema, value, violation }] of Object.entries(cases)) {
    it(name, () => assert.equal(compileSchema(property(schema))(parsed(`{"a":${value}}`))?.message ?? null, violation));
  }

  it("with a place for each key and a name for what is missing or unknown", () => {
    const judge = compileSchema(property("{}"));
    assert.deepEqual(judge(parsed("{}")), {
      pointer: "/a",
      expected: "a value (it is required)",
      got: "nothing",
      message: "/a: expected a value (it is required); got nothing",
    });
    assert.equal(judge(parsed('{"a":1,"b/c":1}'))?.pointer, "/b~1c");
    assert.equal(judge(parsed('{"a":1,"__proto__":{"a":1}}'))?.pointer, "/__proto__");
  });

  it("as the library alone does wherever a double is exact", () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const schemas = fc.letrec<{ schema: JsonObject }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<JsonObject>(
          { type: "integer", minimum: 2 },
          { type: ["string", "null"] },
          { enum: [1, "a", null, [1]] },
          { const: { a: 1 } },
          { maxLength: 2 },
          { pattern: "^a" },
          { multipleOf: 2 },
        ),
        tie("schema").map((items) => ({ type: "array", items, uniqueItems: true })),
        tie("schema").map((a) => ({ properties: { a }, required: ["a"] })),
        fc
          .array(tie("schema"), { minLength: 1, maxLength: 3 })
          .chain((all) => fc.constantFrom<JsonObject>({ anyOf: all }, { oneOf: all }, { allOf: all }, { prefixItems: all })),
        tie("schema").map((not) => ({ not })),
        tie("schema").map((additionalProperties) => ({ additionalProperties, minProperties: 1 })),
      ),
    })).schema;
    const values = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.constantFrom(1, 2, 3, 4, "a", "ab", null, [1], [1, 1], [[1], [1]], { a: 1 }, { a: 4 }, { b: 2 }),
    );
    fc.assert(
      fc.property(schemas, fc.array(values, { minLength: 1, maxLength: 8 }), (schema, all) => {
        const judge = compileSchema({ type: "object", properties: { v: schema } });
        const theirs = ajv.compile({ type: "object", properties: { v: schema } });
        for (const v of all) {
          const text = JSON.stringify({ v });
          // The library takes the multiple of such a number from its first digit.
          if (text.includes("e+")) continue;
          assert.equal(judge(parsed(text)) === null, theirs(JSON.parse(text)), `${compactJson(schema)} ${text}`);
        }
      }),
      { numRuns: 150 },
    );
  });
});

describe("a judgement ends", () => {
  const doubling = (levels: number): JsonObject => ({
    $ref: "#/$defs/a0",
    $defs: Object.fromEntries(
      Array.from({ length: levels + 1 }, (_, i) => [
        `a${i}`,
        i === levels ? { required: ["no"] } : { anyOf: [{ $ref: `#/$defs/a${i + 1}` }, { $ref: `#/$defs/a${i + 1}` }] },
      ]),
    ),
  });
  it("where references double the work at each step", () => {
    assert.match(compileSchema(doubling(40))({})?.message ?? "", /more than can be checked in time/);
  });
  it("where each level of the value does", () => {
    const judge = compileSchema(parsed('{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}'));
    assert.match(judge(parsed(`${'{"a":'.repeat(60)}1${"}".repeat(60)}`))?.message ?? "", /more than can be checked in time/);
  });
  it("where an object names many properties and the value has many objects", () => {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`n${index}`, true]));
    const judge = compileSchema({ type: "object", properties: { a: { type: "array", items: { type: "object", properties: many } } } });
    assert.match(judge(parsed(`{"a":[${"{},".repeat(100_000)}{}]}`))?.message ?? "", /more than can be checked in time/);
  });
  it("and is right for a large value under an ordinary schema", () => {
    const judge = compileSchema(property('{"type":"array","items":{"type":"integer"}}'));
    assert.equal(judge(parsed(`{"a":[${"1,".repeat(100_000)}1]}`)), null);
  });
});

describe("a schema is refused that", () => {
  const cases: Record<string, { schema: string; at: string }> = {
    "refers to itself": { schema: '{"$ref":"#"}', at: "" },
    "refers to itself in a circle": {
      schema: '{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}',
      at: "/$defs/a",
    },
    "fetches another": { schema: '{"properties":{"a":{"$ref":"https://example.com/s"}}}', at: "/properties/a/$ref" },
    "refers to a file": { schema: '{"$ref":"other.json"}', at: "/$ref" },
    "refers to what is no schema": { schema: '{"enum":[{}],"$ref":"#/enum/0"}', at: "/$ref" },
    "refers to nothing": { schema: '{"$ref":"#/$defs/none"}', at: "/$ref" },
    "names two schemas alike": { schema: '{"properties":{"a":{"$anchor":"n"},"b":{"$anchor":"n"}}}', at: "/properties/b/$anchor" },
    "has an anchor that is no name": { schema: '{"properties":{"a":{"$anchor":"#n"}}}', at: "/properties/a/$anchor" },
    "refers to an anchor": { schema: '{"$defs":{"a":{"$anchor":"n"}},"properties":{"a":{"$ref":"#n"}}}', at: "/properties/a/$ref" },
    "moves its base": { schema: '{"properties":{"a":{"$id":"https://example.com/"}}}', at: "/properties/a/$id" },
    "uses dynamic references": { schema: '{"$dynamicRef":"#x"}', at: "/$dynamicRef" },
    "is of another dialect": { schema: '{"$schema":"http://json-schema.org/draft-07/schema#"}', at: "/$schema" },
    "has a pattern with look-ahead": { schema: '{"properties":{"a":{"pattern":"(?=a)b"}}}', at: "/properties/a" },
    "has a pattern with a back-reference": { schema: '{"pattern":"(a)\\\\1"}', at: "" },
    "has a pattern that explodes when compiled": { schema: '{"pattern":"((a{1000}){1000}){1000}"}', at: "" },
    "has an endless pattern": { schema: `{"pattern":"${"a".repeat(1001)}"}`, at: "" },
    "has a broken pattern among its keys": { schema: '{"patternProperties":{"(":{}}}', at: "" },
    "is no schema": { schema: '{"type":"objekt"}', at: "/type" },
    "has a subschema that is none": { schema: '{"properties":{"a":[]}}', at: "/properties/a" },
    "names __proto__": { schema: '{"properties":{"__proto__":{}}}', at: "/properties/__proto__" },
    "nests too deeply": { schema: `${'{"not":'.repeat(70)}{}${"}".repeat(70)}`, at: "" },
    "has too many parts": { schema: `{"allOf":[${"{},".repeat(20_000)}{}]}`, at: "/allOf/9999" },
  };
  for (const [name, { schema, at }] of Object.entries(cases)) {
    it(name, () => {
      assert.throws(
        () => compileSchema(parseJson(schema, { maxLength: 10 ** 7, maxDepth: 200 }) as JsonObject),
        (thrown) => {
          assert.ok(thrown instanceof Invalid, String(thrown));
          assert.deepEqual([thrown.code, thrown.at], ["SchemaUnusable", at], thrown.message);
          return true;
        },
      );
    });
  }

  it("is one only if it can't be used: recursion through the value is fine", () => {
    const judge = compileSchema(parsed('{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}'));
    assert.equal(judge(parsed('{"next":{"next":{}}}')), null);
    assert.equal(judge(parsed('{"next":{"next":{"x":1}}}'))?.pointer, "/next/next/x");
  });

  it("any JSON object gives a judge or a typed error", () => {
    const keywords = fc.constantFrom(
      "type",
      "properties",
      "items",
      "$ref",
      "enum",
      "const",
      "pattern",
      "anyOf",
      "required",
      "minimum",
      "$defs",
      "if",
      "prefixItems",
      "dependentSchemas",
    );
    const junk = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom("object", "#", {}, [{}], { a: {} }, true));
    fc.assert(
      fc.property(fc.dictionary(keywords, junk, { maxKeys: 4 }), (schema) => {
        try {
          compileSchema(parsed(JSON.stringify(schema)))(parsed('{"a":1}'));
        } catch (thrown) {
          assert.ok(thrown instanceof Invalid, `${JSON.stringify(schema)}: ${thrown instanceof Error ? thrown.stack : thrown}`);
        }
      }),
      { numRuns: 300 },
    );
  });
});
