import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, it } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import { transformJSONSchema } from "@anthropic-ai/sdk/lib/transform-json-schema";
import type { Tool as BedrockTool } from "@aws-sdk/client-bedrock-runtime";
import type { Tool as GeminiTool } from "@google/genai";
import type { Tool as McpTool } from "@modelcontextprotocol/sdk/types.js";
import fc from "fast-check";
import type OpenAI from "openai";
import { toStrictJsonSchema } from "openai/lib/transform";
import type { Declaration } from "../../../src/api/declaration.ts";
import { compactJson, isJsonObject, type JsonObject, type JsonValue } from "../../../src/api/json.ts";
import { declarationOf } from "../../../src/declaration/declaration.ts";
import { declarationFormats, type ProviderFormat, providerFormats } from "../../../src/declaration/formats.ts";
import { lintDeclaration } from "../../../src/declaration/provider-rules.ts";
import { renderDeclarations } from "../../../src/declaration/render.ts";
import { parametersSchema } from "../../../src/declaration/schema.ts";
import { strictCopy } from "../../../src/declaration/strict-copy.ts";
import { compileSchema } from "../../../src/translate/schema-judge.ts";
import { types } from "../translate/types.ts";
import { valuesOf } from "../translate/values.ts";
import { enumeration, flags, func, list, listIssues, map, option, prim, record, tuple, variant } from "./wit-types.ts";

const search = func("search", { query: prim("string"), limit: option(prim("u8")) }, null, { docs: "Find files by their text." });
const draw = func(
  "draw",
  {
    shape: variant({ none: null, circle: prim("f32") }),
    corners: list(tuple(prim("s32"), prim("s32"))),
    rights: flags({ read: "", write: "" }),
    image: list(prim("u8")),
    colour: enumeration({ red: "Like blood.", blue: "" }, "Of the line."),
  },
  null,
  { docs: "Draw a shape." },
);
const label = func("label", { labels: map(prim("string"), prim("string")) }, null, { docs: "Set labels." });
const now = func("now", {}, prim("string"), { docs: "The time." });

const declarations: readonly Declaration[] = [
  { ...declarationOf(listIssues), cache: "5m", tool: "agents/github-list-issues-3f2a" },
  declarationOf(search),
  { ...declarationOf(draw), cache: "1h" },
  declarationOf(label),
  declarationOf(now),
];

describe("a rendering", () => {
  for (const format of declarationFormats) {
    it(`in the format ${format} is as written down`, () => {
      const golden = new URL(`../../golden/declaration/${format}.json`, import.meta.url);
      const { body, leftOut } = renderDeclarations(format, declarations);
      if (process.env.UPDATE_GOLDEN === "1") writeFileSync(golden, `${JSON.stringify(JSON.parse(body), null, 2)}\n`);
      assert.equal(body, JSON.stringify(JSON.parse(readFileSync(golden, "utf8"))));
      assert.deepEqual(leftOut, []);
    });

    it(`in the format ${format} has the same bytes whatever order the declarations came in`, () => {
      const { body } = renderDeclarations(format, declarations);
      fc.assert(
        fc.property(fc.shuffledSubarray([...declarations], { minLength: declarations.length }), (shuffled) => {
          assert.equal(renderDeclarations(format, shuffled).body, body);
        }),
        { numRuns: 10 },
      );
    });
  }

  it("is an empty array of nothing", () => {
    for (const format of declarationFormats) assert.equal(renderDeclarations(format, []).body, "[]");
  });

  it("has the shapes of the providers' own packages", () => {
    const anthropic: Anthropic.Tool[] = JSON.parse(renderDeclarations("anthropic", declarations).body);
    const chat: OpenAI.ChatCompletionTool[] = JSON.parse(renderDeclarations("openai-chat", declarations).body);
    const responses: OpenAI.Responses.FunctionTool[] = JSON.parse(renderDeclarations("openai-responses", declarations).body);
    const [gemini]: GeminiTool[] = JSON.parse(renderDeclarations("gemini", declarations).body);
    const bedrock: BedrockTool[] = JSON.parse(renderDeclarations("bedrock", declarations).body);
    const mcp: McpTool[] = JSON.parse(renderDeclarations("mcp", declarations).body);
    const names = ["draw", "label", "list_issues", "now", "search"];
    assert.deepEqual(
      anthropic.map(({ name }) => name),
      names,
    );
    assert.deepEqual(
      gemini?.functionDeclarations?.map(({ name }) => name),
      names,
    );
    assert.deepEqual(
      bedrock.flatMap(({ toolSpec }) => (toolSpec ? [toolSpec.name] : [])),
      names,
    );
    assert.deepEqual(
      mcp.map(({ name, inputSchema }) => `${name} ${inputSchema.type}`),
      names.map((name) => `${name} object`),
    );
    assert.deepEqual(
      chat.map((tool) => tool.type === "function" && typeof tool.function.strict),
      Array(5).fill("boolean"),
    );
    assert.deepEqual(
      responses.map(({ type, strict }) => `${type} ${typeof strict}`),
      Array(5).fill("function boolean"),
    );
  });

  it("never sends the catalogue's id to a provider", () => {
    for (const format of providerFormats) {
      assert.doesNotMatch(renderDeclarations(format, declarations).body, /agents\/github/);
    }
  });
});

describe("the cache breakpoint", () => {
  const cases: Record<string, { cache?: "off" | "5m" | "1h"; asked: ("5m" | "1h" | undefined)[]; set: (string | undefined)[] }> = {
    "is on the last declaration, with the longest lifetime that any asks for": {
      asked: ["1h", "5m", undefined],
      set: [undefined, undefined, "1h"],
    },
    "is not set where none asks": { asked: [undefined, undefined], set: [undefined, undefined] },
    "is shorter where the caller says so": { cache: "5m", asked: ["1h", undefined], set: [undefined, "5m"] },
    "is off where the caller says so": { cache: "off", asked: ["1h"], set: [undefined] },
    "is set where the caller asks and no declaration does": { cache: "1h", asked: [undefined], set: ["1h"] },
  };
  for (const [name, { cache, asked, set }] of Object.entries(cases)) {
    it(name, () => {
      const tools = asked.map((ttl, index) => ({ ...declarationOf(now, `t${index}`), ...(ttl ? { cache: ttl } : {}) }));
      const rendered: Anthropic.Tool[] = JSON.parse(renderDeclarations("anthropic", tools, cache ? { cache } : {}).body);
      assert.deepEqual(
        rendered.map((tool) => tool.cache_control?.ttl),
        set,
      );
    });
  }
});

const points = (body: string): string[] =>
  JSON.parse(body).flatMap(({ toolSpec, cachePoint }: BedrockTool) => [toolSpec?.name ?? `point ${cachePoint?.ttl ?? "5m"}`]);

describe("Bedrock's cache point", () => {
  const tools = ["a", "b"].map((name) => ({ ...declarationOf(now, name), cache: "1h" as const }));
  it("is an entry after the last declaration, and names no lifetime that is the default", () => {
    assert.deepEqual(points(renderDeclarations("bedrock", tools).body), ["a", "b", "point 1h"]);
    assert.match(renderDeclarations("bedrock", tools, { cache: "5m" }).body, /,\{"cachePoint":\{"type":"default"\}\}\]$/);
    assert.deepEqual(points(renderDeclarations("bedrock", tools, { cache: "off" }).body), ["a", "b"]);
  });
  it("is none beside no declaration", () => {
    assert.equal(renderDeclarations("bedrock", [], { cache: "1h" }).body, "[]");
  });
});

describe("declarations beyond a number", () => {
  const tools = Array.from({ length: 5 }, (_, index) => ({ ...declarationOf(now, `t${index}`), cache: "5m" as const }));
  const defer = { after: 2, search: "bm25" } as const;

  it("are left to Anthropic's search, which comes first, and the breakpoint is on the last that is read", () => {
    const rendered: Anthropic.ToolUnion[] = JSON.parse(renderDeclarations("anthropic", tools, { defer }).body);
    const search: Anthropic.ToolSearchToolBm25_20251119 = { type: "tool_search_tool_bm25_20251119", name: "tool_search_tool_bm25" };
    assert.deepEqual(rendered[0], search);
    assert.deepEqual(
      (rendered.slice(1) as Anthropic.Tool[]).map(({ name, defer_loading, cache_control }) => [name, defer_loading, cache_control?.ttl]),
      [
        ["t0", undefined, undefined],
        ["t1", undefined, "5m"],
        ["t2", true, undefined],
        ["t3", true, undefined],
        ["t4", true, undefined],
      ],
    );
  });
  it("are searched by patterns where the caller says so", () => {
    const search: Anthropic.ToolSearchToolRegex20251119 = { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" };
    assert.deepEqual(JSON.parse(renderDeclarations("anthropic", tools, { defer: { after: 1, search: "regex" } }).body)[0], search);
  });
  it("are left to OpenAI's search in Responses", () => {
    const rendered: OpenAI.Responses.Tool[] = JSON.parse(renderDeclarations("openai-responses", tools, { defer }).body);
    const search: OpenAI.Responses.ToolSearchTool = { type: "tool_search" };
    assert.deepEqual(rendered[0], search);
    assert.deepEqual(
      (rendered.slice(1) as OpenAI.Responses.FunctionTool[]).map(({ defer_loading }) => defer_loading),
      [undefined, undefined, true, true, true],
    );
  });
  it("are never all of them", () => {
    const rendered: Anthropic.Tool[] = JSON.parse(renderDeclarations("anthropic", tools, { defer: { after: 0, search: "bm25" } }).body);
    assert.equal(rendered.filter(({ defer_loading }) => !defer_loading).length, 2);
  });
  it("are none where there are no more, and then there is no search either, which OpenAI would refuse", () => {
    for (const format of ["anthropic", "openai-responses"] as const) {
      assert.equal(renderDeclarations(format, tools, { defer: { after: 5, search: "bm25" } }).body, renderDeclarations(format, tools).body);
    }
  });
  it("are read where the provider has no search", () => {
    for (const format of ["neutral", "openai-chat", "gemini", "bedrock", "mcp"] as const)
      assert.equal(renderDeclarations(format, tools, { defer }).body, renderDeclarations(format, tools).body);
  });
});

describe("pages", () => {
  const broken: Declaration = { name: "t2", description: "", parameters: { type: "object", anyOf: [{}], properties: { "a b": {} } } };
  const tools = Array.from({ length: 45 }, (_, index) => ({ ...declarationOf(now, `t${index}`), cache: "5m" as const })).filter(
    ({ name }) => name !== broken.name,
  );
  for (const format of declarationFormats) {
    it(`in the format ${format} are together what the whole list is: budgets, breakpoint, search and all`, () => {
      const options = { defer: { after: 7, search: "bm25" } } as const;
      const whole = renderDeclarations(format, [...tools, broken], options);
      const parts = [0, 10, 20, 30, 40].map((start) =>
        renderDeclarations(format, [broken, ...tools], { ...options, page: { start, end: start + 10 } }),
      );
      const entries = (body: string) => JSON.parse(body).flatMap((entry: GeminiTool) => entry.functionDeclarations ?? [entry]);
      assert.deepEqual(
        parts.flatMap(({ body }) => entries(body)),
        entries(whole.body),
      );
      assert.deepEqual(
        parts.flatMap(({ leftOut }) => leftOut),
        whole.leftOut,
      );
    });
  }
});

describe("a provider's rules leave out one declaration and say why", () => {
  const tool = (parameters: JsonObject, more: Partial<Declaration> = {}): Declaration => ({
    name: "t",
    description: "T.",
    parameters,
    ...more,
  });
  const object = (properties: JsonObject): JsonObject => ({ type: "object", properties, additionalProperties: false });
  const cases: Record<string, { declaration: Declaration; provider: ProviderFormat; breach: string | null }> = {
    "a property with a sign that Anthropic refuses": {
      declaration: tool(object({ $top: { type: "integer" } })),
      provider: "anthropic",
      breach: "PropertyName /parameters/properties/$top",
    },
    "a property with a space, deep inside": {
      declaration: tool(object({ a: { type: "array", items: { anyOf: [object({ "b c": {} })] } } })),
      provider: "anthropic",
      breach: "PropertyName /parameters/properties/a/items/anyOf/0/properties/b c",
    },
    "a property of 72 characters": {
      declaration: tool(object({ settings__continuous__meeting__chat__auto__add__invited__external__users: {} })),
      provider: "anthropic",
      breach: "PropertyName /parameters/properties/settings__continuous__meeting__chat__auto__add__invited__external__users",
    },
    "such a property is fine elsewhere": {
      declaration: tool(object({ $top: { type: "integer" } })),
      provider: "openai-chat",
      breach: null,
    },
    "a dot in a name": {
      declaration: tool(object({}), { name: "agent.describe" }),
      provider: "openai-responses",
      breach: "NamePattern /name",
    },
    "alternatives at the root": {
      declaration: tool({ type: "object", anyOf: [{}] }),
      provider: "anthropic",
      breach: "RootKeyword /parameters/anyOf",
    },
    "a root that is no object": {
      declaration: tool({ type: "array", items: {} }),
      provider: "openai-chat",
      breach: "RootType /parameters/type",
    },
    "a description of 1,025 characters": {
      declaration: tool(object({}), { description: "x".repeat(1025) }),
      provider: "openai-chat",
      breach: "DescriptionTooLong /description",
    },
    "a description of 1,025 characters, at Anthropic": {
      declaration: tool(object({}), { description: "x".repeat(1025) }),
      provider: "anthropic",
      breach: null,
    },
    "a reference out of the schema": {
      declaration: tool(object({ a: { $ref: "https://example.com/schema" } })),
      provider: "anthropic",
      breach: "ExternalReference /parameters/properties/a/$ref",
    },
  };
  for (const [name, { declaration, provider, breach }] of Object.entries(cases)) {
    it(name, () => {
      const [first] = lintDeclaration(declaration, provider);
      assert.equal(first ? `${first.rule} ${first.where}` : null, breach);
      const { body, leftOut } = renderDeclarations(provider, [declaration, declarationOf(now)]);
      assert.equal(JSON.parse(body).length, breach ? 1 : 2);
      assert.deepEqual(
        leftOut.map(({ rule, where }) => `${rule} ${where}`),
        breach ? [breach] : [],
      );
    });
  }

  it("the 129th tool at OpenAI", () => {
    const tools = Array.from({ length: 158 }, (_, index) => declarationOf(now, `tool_${String(index).padStart(3, "0")}`));
    const { body, leftOut } = renderDeclarations("openai-chat", tools);
    assert.equal(JSON.parse(body).length, 128);
    assert.deepEqual([leftOut.length, leftOut[0]?.name, leftOut[0]?.rule], [30, "tool_128", "TooManyTools"]);
    assert.equal(JSON.parse(renderDeclarations("anthropic", tools).body).length, 158);
  });

  it("every declaration that shares its name with another", () => {
    const { body, leftOut } = renderDeclarations("anthropic", [declarationOf(now), declarationOf(search, "now"), declarationOf(search)]);
    assert.deepEqual(
      JSON.parse(body).map(({ name }: { name: string }) => name),
      ["search"],
    );
    assert.deepEqual(
      leftOut.map(({ rule }) => rule),
      ["DuplicateName", "DuplicateName"],
    );
  });
});

describe("strictness", () => {
  const strictOf = (provider: ProviderFormat, parameters: JsonObject): JsonObject | null =>
    strictCopy(parameters, provider)?.schema ?? null;
  const open: JsonObject = {
    type: "object",
    properties: { a: { type: "object", properties: {} } },
    required: ["a"],
    additionalProperties: false,
  };

  it("is not asked for where a schema leaves an object open on purpose", () => {
    for (const provider of ["anthropic", "openai-chat"] as const) assert.equal(strictOf(provider, open), null);
  });
  it("is not asked of OpenAI for optional properties", () => {
    assert.equal(strictOf("openai-chat", parametersSchema(search)), null);
    assert.ok(strictOf("anthropic", parametersSchema(search)));
  });
  it("tells in words what the provider's subset can't say", () => {
    const schema = parametersSchema(func("f", { count: prim("u8"), image: list(prim("u8")), rights: flags({ a: "" }) }));
    assert.deepEqual(JSON.parse(compactJson(strictOf("anthropic", schema)?.properties ?? null)), {
      count: { type: "integer", description: "(minimum 0, maximum 255)" },
      image: { type: "string", description: "(base64)" },
      rights: { type: "array", items: { type: "string", enum: ["a"] }, description: "(each item once)" },
    });
    assert.deepEqual(JSON.parse(compactJson(strictOf("openai-chat", schema)?.properties ?? null)).count, {
      type: "integer",
      minimum: 0,
      maximum: 255,
    });
  });
  it("drops a format that OpenAI doesn't know", () => {
    const schema: JsonObject = {
      type: "object",
      properties: { a: { type: "string", format: "uri" } },
      required: ["a"],
      additionalProperties: false,
    };
    assert.equal(compactJson(strictOf("openai-chat", schema)?.properties ?? null), '{"a":{"type":"string","description":"(format uri)"}}');
  });
  it("is asked of Bedrock only where the caller does, since most of its models don't know it", () => {
    const strictIn = (strict?: boolean): unknown[] =>
      JSON.parse(renderDeclarations("bedrock", [declarationOf(now)], strict === undefined ? {} : { strict }).body).map(
        ({ toolSpec }: BedrockTool) => toolSpec?.strict,
      );
    assert.deepEqual([strictIn(), strictIn(false), strictIn(true)], [[undefined], [undefined], [true]]);
  });
  it("counts what a reference leads to each time it is made, and follows none in a circle", () => {
    const part = { type: "object", properties: { a: { type: "string" }, b: { type: "string" } }, additionalProperties: false } as const;
    const schema = (times: number, definition: JsonObject = part): JsonObject => ({
      type: "object",
      properties: Object.fromEntries(Array.from({ length: times }, (_, index) => [`p${index}`, { $ref: "#/$defs/part" }])),
      required: Array.from({ length: times }, (_, index) => `p${index}`),
      additionalProperties: false,
      $defs: { part: definition },
    });
    assert.deepEqual(
      [1, 3].map((times) => strictCopy(schema(times), "anthropic")?.optionals),
      [2, 6],
    );
    const circle = { ...part, properties: { a: { $ref: "#/$defs/part" } }, required: ["a"] };
    assert.equal(strictCopy(schema(1, circle), "anthropic"), null);
    assert.ok(strictCopy(schema(1, circle), "openai-chat"));
  });
  it("stops at Anthropic's budgets, less what the caller reserves", () => {
    const tools = Array.from({ length: 30 }, (_, index) => declarationOf(now, `t${String(index).padStart(2, "0")}`));
    const strictIn = (body: string): number => JSON.parse(body).filter((tool: Anthropic.Tool) => tool.strict === true).length;
    assert.equal(strictIn(renderDeclarations("anthropic", tools).body), 20);
    assert.equal(strictIn(renderDeclarations("anthropic", tools, { reserve: { tools: 5 } }).body), 15);
    assert.equal(strictIn(renderDeclarations("anthropic", tools, { strict: false }).body), 0);
    const optional = Array.from({ length: 30 }, (_, index) =>
      declarationOf(func("f", { a: option(prim("bool")), b: option(prim("bool")) }), `t${index}`),
    );
    assert.equal(strictIn(renderDeclarations("anthropic", optional).body), 12);
    const unions = Array.from({ length: 30 }, (_, index) => declarationOf(draw, `t${index}`)).map((one) => ({
      ...one,
      parameters: parametersSchema(func("f", { shape: variant({ none: null, circle: prim("f64") }) })),
    }));
    assert.equal(strictIn(renderDeclarations("anthropic", unions).body), 16);
  });

  it("gives copies that the providers' own packages change no further, and that admit whatever the reviewed schema admits", () => {
    fc.assert(
      fc.property(
        types.chain((type) => fc.tuple(fc.constant(type), valuesOf(type))),
        ([type, value]) => {
          const schema = parametersSchema(func("f", { "a-value": list(type, 1), b: prim("bool") }));
          for (const provider of ["anthropic", "openai-chat"] as const) {
            const strict = strictOf(provider, schema);
            if (!strict) continue;
            const plain = JSON.parse(compactJson(strict));
            const theirs = JSON.parse(JSON.stringify(provider === "anthropic" ? transformJSONSchema(plain) : toStrictJsonSchema(plain)));
            assert.deepEqual(descriptionsIn(theirs), descriptionsIn(plain));
            if (provider === "openai-chat") assert.deepEqual(theirs, plain);
            assert.equal(compileSchema(strict)({ a_value: [value], b: true }), null);
          }
          const rendered = JSON.parse(
            renderDeclarations("openai-chat", [{ name: "f", description: "", parameters: schema }], { strict: false }).body,
          );
          assert.equal(compileSchema(rendered[0].function.parameters)({ a_value: [value], b: true }), null);
        },
      ),
      { numRuns: 150 },
    );
  });

  it("without it, arrays still have items and objects properties where OpenAI insists", () => {
    const [tool] = JSON.parse(renderDeclarations("openai-chat", [declarationOf(label)], { strict: false }).body);
    assert.deepEqual(tool.function.parameters.properties.labels, {
      type: "object",
      additionalProperties: { type: "string" },
      properties: {},
    });
    const [tupled] = JSON.parse(
      renderDeclarations("openai-chat", [declarationOf(func("f", { at: tuple(prim("bool"), prim("string")) }))], { strict: false }).body,
    );
    assert.deepEqual(tupled.function.parameters.properties.at, {
      type: "array",
      minItems: 2,
      maxItems: 2,
      items: { anyOf: [{ type: "boolean" }, { type: "string" }] },
      description: "(items in this order: boolean, string)",
    });
  });

  it("keeps an option in a list apart from an open record", () => {
    assert.ok(strictOf("openai-chat", parametersSchema(func("f", { a: list(option(record({ x: prim("bool") }))) }))));
  });
});

const descriptionsIn = (value: JsonValue): string[] => {
  if (Array.isArray(value)) return value.flatMap(descriptionsIn);
  if (!isJsonObject(value)) return [];
  return [...(typeof value.description === "string" ? [value.description] : []), ...Object.values(value).flatMap(descriptionsIn)];
};
