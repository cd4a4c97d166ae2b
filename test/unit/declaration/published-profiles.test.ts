import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { parse } from "yaml";
import { compactJson, type JsonObject } from "../../../src/api/json.ts";
import { looseCopy } from "../../../src/declaration/loose-copy.ts";
import { parametersSchema } from "../../../src/declaration/schema.ts";
import { strictCopy } from "../../../src/declaration/strict-copy.ts";
import { types } from "../translate/types.ts";
import { reviewedSchemas } from "./schemas.ts";
import { func } from "./wit-types.ts";

/**
 * Against what somebody else wrote down of the providers' documents: meta-schemas and examples of UnitVectorY-Labs/jsonschemaprofiles (MIT, as of February
 * 2026), beside this file's fixtures.
 */
const folder = new URL("../../fixtures/jsonschemaprofiles/", import.meta.url);
type Cases = Record<"valid" | "invalid", Record<string, JsonObject>>;
const cases: Record<"openai_202602" | "gemini_202602", Cases> = JSON.parse(readFileSync(new URL("cases.json", folder), "utf8"));

const profile = (name: keyof typeof cases) => {
  const validate = new Ajv2020({ strict: false }).compile(parse(readFileSync(new URL(`${name}.yaml`, folder), "utf8")));
  return (schema: JsonObject): string => {
    const plain = JSON.parse(compactJson(schema));
    return validate(plain) ? "fits" : `${compactJson(schema)}: ${JSON.stringify(validate.errors?.[0])}`;
  };
};

describe("OpenAI's profile", () => {
  const openai = profile("openai_202602");
  const strictOf = (schema: JsonObject): JsonObject | undefined => strictCopy(schema, "openai-chat")?.schema;

  for (const [name, schema] of Object.entries(cases.openai_202602.valid)) {
    it(`takes as strict: ${name}`, () => assert.deepEqual(JSON.parse(compactJson(strictOf(schema) ?? {})), schema));
  }
  for (const [name, schema] of Object.entries(cases.openai_202602.invalid)) {
    it(`would refuse, and is not asked: ${name}`, () => {
      const strict = strictOf(schema);
      if (strict) assert.equal(openai(strict), "fits");
    });
  }
  it("has every strict copy of whatever a reviewer wrote", () => {
    let strict = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          reviewedSchemas,
          types.map((type) => parametersSchema(func("f", { a: type }))),
        ),
        (schema) => {
          const copy = strictOf(schema);
          // OpenAI's own package makes alternatives of null alone, which the profile leaves out.
          if (!copy || compactJson(copy).includes('"type":"null"')) return;
          strict++;
          assert.equal(openai(copy), "fits");
        },
      ),
      { numRuns: 400 },
    );
    assert.ok(strict > 40, `only ${strict} schemas had a strict copy`);
  });
});

describe("Gemini's profile, which knows neither alternatives nor references,", () => {
  const gemini = profile("gemini_202602");
  const wrapped = (schema: JsonObject): JsonObject => ({ type: "object", properties: { v: schema }, required: ["v"] });

  for (const [name, { propertyOrdering: _order, ...schema }] of Object.entries(cases.gemini_202602.valid)) {
    it(`has as it is: ${name}`, () => assert.deepEqual(JSON.parse(compactJson(looseCopy(wrapped(schema), "gemini"))), wrapped(schema)));
  }
  for (const [name, schema] of Object.entries(cases.gemini_202602.invalid)) {
    if (/anyof|ref|missing type|missing items/.test(name)) continue;
    it(`would refuse, and is given a copy: ${name}`, () => assert.equal(gemini(looseCopy(wrapped(schema), "gemini")), "fits"));
  }
  it("is given items of any kind where there are none", () => {
    assert.deepEqual(looseCopy({ type: "array" }, "gemini"), { type: "array", items: {} });
  });
  it("has the copy of every function without alternatives", () => {
    let seen = 0;
    fc.assert(
      fc.property(types, (type) => {
        const copy = looseCopy(parametersSchema(func("f", { a: type })), "gemini");
        if (compactJson(copy).includes('"anyOf"')) return;
        seen++;
        assert.equal(gemini(copy), "fits");
      }),
      { numRuns: 200 },
    );
    assert.ok(seen > 40);
  });
});
