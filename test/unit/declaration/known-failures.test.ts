import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Declaration } from "../../../src/api/declaration.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/api/json.ts";
import type { ProviderFormat } from "../../../src/declaration/formats.ts";
import { renderDeclarations } from "../../../src/declaration/render.ts";

/** What made providers refuse other people's requests, by the reports of those who met it: each refused the whole list for one tool. */

const tool = (properties: JsonObject, more: JsonObject = {}): Declaration => ({
  name: "t",
  description: "T.",
  parameters: { type: "object", properties, ...more },
});

/** The schema that is sent of the property `v`, or how the tool is left out. */
const sent = (format: ProviderFormat, schema: JsonValue, more: JsonObject = {}): JsonValue => {
  const { body, leftOut } = renderDeclarations(format, [tool({ v: schema }, more)], { strict: false });
  const [breach] = leftOut;
  if (breach) return `${breach.rule} ${breach.where}`;
  const [entry] = JSON.parse(body);
  const [inner = entry] = entry.functionDeclarations ?? [entry.function ?? entry.toolSpec];
  const { input_schema, parameters, parametersJsonSchema, inputSchema } = inner ?? entry;
  const root = input_schema ?? parameters ?? parametersJsonSchema ?? inputSchema.json ?? inputSchema;
  return root.$defs ? { ...root.properties.v, $defs: root.$defs } : root.properties.v;
};

const everyFormat: readonly ProviderFormat[] = ["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock", "mcp"];

describe("a schema that is known to be refused is made such that it isn't:", () => {
  const cases: Record<string, { formats: readonly ProviderFormat[]; schema: JsonValue; more?: JsonObject; sent: JsonValue }> = {
    "OpenAI: an object without properties": {
      formats: ["openai-chat", "openai-responses"],
      schema: { type: "object" },
      sent: { type: "object", properties: {} },
    },
    "OpenAI: an array without items": {
      formats: ["openai-chat", "openai-responses"],
      schema: { type: "array" },
      sent: { type: "array", items: {} },
    },
    "Gemini: an array without items": { formats: ["gemini"], schema: { type: "array" }, sent: { type: "array", items: {} } },
    "clients: an empty schema of other properties": {
      formats: ["anthropic", "openai-chat", "openai-responses", "bedrock", "mcp"],
      schema: { type: "object", properties: {}, additionalProperties: {} },
      sent: { type: "object", properties: {}, additionalProperties: true },
    },
    "Gemini: properties of what is no object": {
      formats: ["gemini"],
      schema: { type: "string", properties: { a: { type: "string" } }, required: ["a"] },
      sent: { type: "string" },
    },
    "Gemini: a required property that isn't there": {
      formats: ["gemini"],
      schema: { type: "object", properties: { a: { type: "string" } }, required: ["a", "b"] },
      sent: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
    },
    "Gemini: lists of types among alternatives": {
      formats: ["gemini"],
      schema: { anyOf: [{ type: ["string", "integer"] }, { type: ["boolean", "null"] }] },
      sent: { anyOf: [{ anyOf: [{ type: "string" }, { type: "integer" }] }, { type: ["boolean", "null"] }] },
    },
    "Gemini: a type beside alternatives": {
      formats: ["gemini"],
      schema: { type: "string", anyOf: [{ minLength: 1 }, { type: "string", format: "date" }] },
      sent: {
        anyOf: [
          { type: "string", description: "(at least 1 characters)" },
          { type: "string", format: "date" },
        ],
      },
    },
    "Gemini: alternatives of which properties are required": {
      formats: ["gemini"],
      schema: { type: "object", properties: { a: {}, b: {} }, anyOf: [{ required: ["a"] }, { required: ["b"] }] },
      sent: { type: "object", properties: { a: {}, b: {} }, description: "(only some combinations)" },
    },
    "Gemini: a constant": { formats: ["gemini"], schema: { const: "a" }, sent: { type: "string", enum: ["a"] } },
    "Gemini: choices with null among them": {
      formats: ["gemini"],
      schema: { type: ["string", "null"], enum: ["a", null], description: "Which." },
      sent: { anyOf: [{ type: "string", enum: ["a"] }, { type: "null" }], description: "Which." },
    },
    "Gemini: choices that are neither texts nor numbers": {
      formats: ["gemini"],
      schema: { type: "boolean", enum: [true] },
      sent: { type: "boolean", description: "(one of true)" },
    },
    "Gemini: bounds, multiples and uniqueness that it has no words for": {
      formats: ["gemini"],
      schema: { type: "array", items: { type: "integer", exclusiveMinimum: 0, multipleOf: 2 }, uniqueItems: true },
      sent: {
        type: "array",
        items: { type: "integer", description: "(exclusiveMinimum 0, multipleOf 2)" },
        description: "(each item once)",
      },
    },
    "Gemini: defaults, patterns, formats and names of dialects": {
      formats: ["gemini"],
      schema: { type: "string", default: "a", pattern: "^a", format: "uri", $comment: "x" },
      more: { $schema: "https://json-schema.org/draft/2020-12/schema" },
      sent: { type: "string", description: "(pattern ^a, format uri)" },
    },
    "Gemini: what only narrows": {
      formats: ["gemini"],
      schema: {
        type: "object",
        patternProperties: { "^x": { type: "string" } },
        propertyNames: { minLength: 1 },
        additionalProperties: false,
      },
      sent: { type: "object", description: "(further rules)" },
    },
    "Gemini: words beside a reference, and definitions by their old name": {
      formats: ["gemini"],
      schema: { $ref: "#/definitions/point", description: "Where." },
      more: { definitions: { point: { type: "string" } } },
      sent: { anyOf: [{ $ref: "#/$defs/point" }], description: "Where.", $defs: { point: { type: "string" } } },
    },
    "Gemini: a reference in allOf, as generators write it": {
      formats: ["gemini"],
      schema: { allOf: [{ $ref: "#/$defs/p" }] },
      more: { $defs: { p: { type: "string" } } },
      sent: { $ref: "#/$defs/p", $defs: { p: { type: "string" } } },
    },
    "Amazon's models: definitions beside the root's properties": {
      formats: ["bedrock"],
      schema: { $ref: "#/$defs/point", description: "Where." },
      more: {
        $defs: { point: { type: "object", properties: { x: { $ref: "#/$defs/n" } } }, n: { type: "number" } },
        additionalProperties: false,
      },
      sent: { type: "object", properties: { x: { type: "number" } }, description: "Where." },
    },
    "Amazon's models: what stands beside a reference": {
      formats: ["bedrock"],
      schema: { $ref: "#/$defs/point", required: ["x"] },
      more: { $defs: { point: { type: "object", properties: { x: {} } } } },
      sent: { required: ["x"], allOf: [{ type: "object", properties: { x: {} } }] },
    },
    "OpenAI: a tuple that may go on": {
      formats: ["openai-chat", "openai-responses"],
      schema: { type: "array", prefixItems: [{ type: "string" }] },
      sent: { type: "array", items: {}, description: "(items in this order: string)" },
    },
    "OpenAI: a tuple under not, where admitting more would be admitting less": {
      formats: ["openai-chat", "openai-responses"],
      schema: { not: { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], maxItems: 2 } },
      sent: { not: { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], maxItems: 2, items: {} } },
    },
    "a mark of arguments that travel in headers": {
      formats: ["anthropic", "openai-chat", "openai-responses", "gemini", "bedrock", "mcp"],
      schema: { type: "string", "x-mcp-header": "Region" },
      sent: { type: "string" },
    },
    "a property that is only called like that mark": {
      formats: ["mcp"],
      schema: { type: "object", properties: { "x-mcp-header": { type: "string" } } },
      sent: { type: "object", properties: { "x-mcp-header": { type: "string" } } },
    },
  };
  for (const [name, { formats, schema, more, sent: expected }] of Object.entries(cases)) {
    it(name, () => {
      for (const format of formats) assert.deepEqual(sent(format, schema, more), expected, format);
    });
  }
});

describe("a tool that can't be made so is left out for that provider alone:", () => {
  const keys = (...refusing: ProviderFormat[]) => Object.fromEntries(everyFormat.map((format) => [format, refusing.includes(format)]));
  const cases: Record<string, { declaration: Declaration; leftOut: Record<string, boolean> }> = {
    "a property with a dollar sign": { declaration: tool({ $top: {} }), leftOut: keys("anthropic", "bedrock", "gemini") },
    "a property with an at sign and dots": {
      declaration: tool({ "@microsoft.graph.conflictBehavior": {} }),
      leftOut: keys("anthropic", "bedrock", "gemini"),
    },
    "a property with a space": { declaration: tool({ "a b": {} }), leftOut: keys("anthropic", "bedrock", "gemini") },
    "a property of 72 characters": {
      declaration: tool({ settings__continuous__meeting__chat__auto__add__invited__external__users: {} }),
      leftOut: keys("anthropic", "bedrock", "gemini"),
    },
    "a property with a hyphen, which is no parameter of Gemini's": { declaration: tool({ "content-type": {} }), leftOut: keys("gemini") },
    "a name with a dot": {
      declaration: { ...tool({}), name: "agent-block.describe" },
      leftOut: keys("anthropic", "openai-chat", "openai-responses", "bedrock"),
    },
    "a name that begins with a digit": { declaration: { ...tool({}), name: "2fa" }, leftOut: keys("gemini") },
    "a name of 65 characters": {
      declaration: { ...tool({}), name: "x".repeat(65) },
      leftOut: keys("anthropic", "openai-chat", "openai-responses", "bedrock"),
    },
    "alternatives at the root": {
      declaration: tool({}, { anyOf: [{ properties: { a: {} } }] }),
      leftOut: keys("anthropic", "openai-chat", "openai-responses", "bedrock", "gemini"),
    },
    "alternatives at the root beside properties, which Gemini is given alone": {
      declaration: tool({ a: {}, b: {} }, { anyOf: [{ required: ["a"] }, { required: ["b"] }] }),
      leftOut: keys("anthropic", "openai-chat", "openai-responses", "bedrock"),
    },
    "a description of 1,025 characters": {
      declaration: { ...tool({}), description: "x".repeat(1025) },
      leftOut: keys("openai-chat", "openai-responses"),
    },
    "a list of itself that must be there": {
      declaration: tool(
        { node: { $ref: "#/$defs/node" } },
        {
          $defs: {
            node: { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/node" } } }, required: ["children"] },
          },
        },
      ),
      leftOut: keys("gemini"),
    },
    "a list of itself that may be left out": {
      declaration: tool(
        { node: { $ref: "#/$defs/node" } },
        { $defs: { node: { type: "object", properties: { children: { type: "array", items: { $ref: "#/$defs/node" } } } } } },
      ),
      leftOut: keys(),
    },
  };
  const fine: Declaration = { ...tool({}), name: "fine" };
  for (const [name, { declaration, leftOut }] of Object.entries(cases)) {
    it(name, () => {
      const found = Object.fromEntries(
        everyFormat.map((format) => {
          const rendered = renderDeclarations(format, [declaration, fine]);
          assert.match(rendered.body, /"fine"/);
          return [format, rendered.leftOut.length === 1];
        }),
      );
      assert.deepEqual(found, leftOut);
    });
  }

  it("513 tools at Gemini, 129 at OpenAI", () => {
    const tools = Array.from({ length: 513 }, (_, index) => ({ ...fine, name: `t${index}` }));
    assert.deepEqual(
      everyFormat.map((format) => renderDeclarations(format, tools).leftOut.length),
      [0, 385, 385, 1, 0, 0],
    );
  });

  it("a description that is empty is left out, which Bedrock insists on", () => {
    for (const format of everyFormat)
      assert.doesNotMatch(renderDeclarations(format, [{ ...fine, description: "" }]).body, /description/, format);
  });

  it("a chain of ten thousand references and a doubling one end", () => {
    const chain: Record<string, JsonValue> = {};
    for (let index = 0; index < 10_000; index++) chain[`d${index}`] = { $ref: `#/$defs/d${index + 1}` };
    chain.d10000 = { type: "string" };
    const doubling: Record<string, JsonValue> = { d30: { type: "string" } };
    for (let index = 0; index < 30; index++) {
      const half = { $ref: `#/$defs/d${index + 1}` };
      doubling[`d${index}`] = { type: "object", properties: { a: half, b: half }, required: ["a", "b"], additionalProperties: false };
    }
    for (const $defs of [chain, doubling]) {
      for (const format of everyFormat) {
        const { body } = renderDeclarations(format, [
          tool({ v: { $ref: "#/$defs/d0" } }, { $defs, required: ["v"], additionalProperties: false }),
        ]);
        assert.ok(isJsonObject(JSON.parse(body)[0]), format);
      }
    }
  });
});
