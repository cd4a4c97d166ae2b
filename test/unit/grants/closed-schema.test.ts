import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { compactJson, type JsonObject } from "../../../src/api/json.ts";
import { closedSchema } from "../../../src/grants/closed-schema.ts";
import { draftGrant } from "../../../src/grants/draft.ts";
import { untypedTool } from "./untyped-tool.ts";

const text = { type: "string" };
const root = (more: JsonObject): JsonObject => ({ type: "object", properties: { a: text, b: text }, ...more });

const closed: Record<string, JsonObject> = {
  "properties alone": root({}),
  "the dialect by its name": root({ $schema: "https://json-schema.org/draft/2020-12/schema" }),
  "no argument at all": { type: "object", properties: {} },
  "what must be there": root({ required: ["a"], minProperties: 1, propertyNames: { maxLength: 9 } }),
  "one of two that must be there": root({ anyOf: [{ required: ["a"] }, { required: ["b"] }] }),
  "alternatives of what is named": root({
    oneOf: [{ properties: { a: { const: "x" } } }, { properties: { b: { const: "y" } }, required: ["b"] }],
  }),
  "conditions on what is named": root({
    if: { properties: { a: { const: "x" } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: ["b"] },
    else: { not: { required: ["b"] } },
  }),
  "one that needs another": root({ dependentRequired: { a: ["b"] }, dependentSchemas: { b: { required: ["a"] } } }),
  "names by pattern": root({ patternProperties: { "^x-": text } }),
  "definitions that an argument refers to": root({ properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { type: "object" } } }),
};

const left: Record<string, JsonObject> = {
  "another dialect": root({ $schema: "http://json-schema.org/draft-07/schema#" }),
  "any object": { type: "object" },
  "other keys that are allowed": root({ additionalProperties: true }),
  "other keys of a type": root({ additionalProperties: text }),
  "other keys that are closed already": root({ additionalProperties: false }),
  "unevaluated keys": root({ unevaluatedProperties: false }),
  "keys of a reference": root({ $ref: "#/$defs/more", $defs: { more: { properties: { c: text } } } }),
  "keys of a reference within": root({ allOf: [{ $ref: "#/$defs/more" }], $defs: { more: { properties: { c: text } } } }),
  "other keys of a part": root({ allOf: [{ properties: { c: text } }] }),
  "other keys of a part's part": root({ allOf: [{ anyOf: [{ required: ["c"] }] }] }),
  "other keys of an alternative": root({ oneOf: [{ properties: { c: text } }, { properties: { a: text } }] }),
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  "other keys of a condition": root({ if: { required: ["a"] }, then: { properties: { c: text } } }),
  "other keys by pattern in a part": root({ allOf: [{ patternProperties: { "^x-": text } }] }),
  "other keys that depend on one": root({ dependentSchemas: { a: { properties: { c: text } } } }),
  "another key that must be there": root({ required: ["c"] }),
  "another key that one needs": root({ dependentRequired: { a: ["c"] } }),
  "more keys than are named": root({ minProperties: 3 }),
};

describe("the schema that is drafted for a tool", () => {
  for (const [what, schema] of Object.entries(closed))
    it(`takes no key beside those that it names: ${what}`, () => {
      assert.equal(compactJson(closedSchema(schema)), compactJson({ ...schema, additionalProperties: false }));
    });

  for (const [what, schema] of Object.entries(left)) it(`is left as it is: ${what}`, () => assert.equal(closedSchema(schema), schema));

  it("leaves objects within an argument open where the server left them open", () => {
    const operation = { type: "object", properties: { kind: text } };
    const inputSchema = { type: "object", properties: { operations: { type: "array", items: operation }, one: operation } };
    const { spec } = draftGrant({
      namespace: "agents",
      workload: "issues",
      source: { name: "bridge" },
      fn: untypedTool({ inputSchema }),
      name: "t",
    });
    assert.equal(compactJson(spec.declaration.parameters), compactJson({ ...inputSchema, additionalProperties: false }));
  });

  it("admits nothing that the server's own would not, and all of it that has the named keys alone", () => {
    const ajv = new Ajv2020({ strict: false, logger: false });
    const value = fc.constantFrom<unknown>("x", 7, null);
    const object = fc.dictionary(fc.constantFrom("a", "b", "c", "x-1"), value, { maxKeys: 4 });
    for (const schema of Object.values(closed)) {
      const [before, after] = [ajv.compile(schema), ajv.compile(closedSchema(schema))];
      const isNamed = (key: string): boolean =>
        Object.hasOwn(schema.properties as object, key) || (schema.patternProperties !== undefined && key.startsWith("x-"));
      fc.assert(
        fc.property(object, (given) => {
          assert.equal(after(given), before(given) && Object.keys(given).every(isNamed));
        }),
        { numRuns: 100 },
      );
    }
  });
});
