import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JsonObject } from "../../../src/api/json.ts";
import { toolListing } from "../../../src/grants/listing.ts";
import { wrongHeader } from "../../../src/grants/parameter-headers.ts";

const text = (header: unknown): JsonObject => ({ type: "string", "x-mcp-header": header }) as JsonObject;
const withProperties = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: "object", properties, ...more });

const right: Record<string, JsonObject> = {
  "no header": withProperties({ a: { type: "string" } }),
  "one of each type": withProperties({
    a: text("A"),
    b: { type: "integer", "x-mcp-header": "B" },
    c: { type: "boolean", "x-mcp-header": "C" },
  }),
  "an argument within an argument": withProperties({ a: withProperties({ b: text("B") }) }),
  "an argument that is called so": withProperties({ "x-mcp-header": { type: "number" } }),
  "a value that looks so": withProperties({ a: { type: "object", default: { "x-mcp-header": 7 }, enum: [{ "x-mcp-header": 7 }] } }),
  "all that a name may hold": withProperties({ a: text("!#$%&'*+-.^_`|~09AZaz") }),
};

const wrong: Record<string, readonly [schema: JsonObject, why: RegExp]> = {
  "an empty name": [withProperties({ a: text("") }), /no header can be called so \(x-mcp-header at \/properties\/a\)/],
  "a name with a space": [withProperties({ a: text("A B") }), /called so/],
  "a name with a colon": [withProperties({ a: text("A:") }), /called so/],
  "a name that ends in a line feed": [withProperties({ a: text("A\n") }), /called so/],
  "a name with a line of its own": [withProperties({ a: text("A\r\nB: c") }), /called so/],
  "a name in other letters": [withProperties({ a: text("Ä") }), /called so/],
  "a name that is no text": [withProperties({ a: text(7) }), /called so/],
  "one name twice, in another case": [withProperties({ a: text("Region"), b: text("region") }), /the header of \/properties\/a too/],
  "a number": [withProperties({ a: { type: "number", "x-mcp-header": "A" } }), /only a string, an integer or a boolean/],
  "an object": [withProperties({ a: { type: "object", "x-mcp-header": "A" } }), /only a string/],
  "two types": [withProperties({ a: { type: ["string", "null"], "x-mcp-header": "A" } }), /only a string/],
  "no type": [withProperties({ a: { "x-mcp-header": "A" } }), /only a string/],
  "the root": [withProperties({}, { "x-mcp-header": "A" }), /no single argument is meant \(x-mcp-header at the root\)/],
  ...Object.fromEntries(
    Object.entries({
      items: withProperties({ a: { type: "array", items: text("A") } }),
      prefixItems: withProperties({ a: { type: "array", prefixItems: [text("A")] } }),
      additionalProperties: withProperties({}, { additionalProperties: text("A") }),
      patternProperties: withProperties({}, { patternProperties: { a: text("A") } }),
      anyOf: withProperties({}, { anyOf: [withProperties({ a: text("A") })] }),
      oneOf: withProperties({ a: { oneOf: [text("A")] } }),
      allOf: withProperties({}, { allOf: [withProperties({ a: text("A") })] }),
      if: withProperties({}, { if: withProperties({ a: text("A") }) }),
      $defs: withProperties({ a: { $ref: "#/$defs/a" } }, { $defs: { a: text("A") } }),
    }).map(([keyword, schema]) => [`an argument below ${keyword}`, [schema, /no single argument is meant/] as const]),
  ),
};

describe("an input schema that asks for arguments in headers", () => {
  for (const [what, schema] of Object.entries(right)) it(`may have ${what}`, () => assert.equal(wrongHeader(schema), null));

  for (const [what, [schema, why]] of Object.entries(wrong)) {
    it(`may not have ${what}: the tool is left out, and no other`, () => {
      assert.match(wrongHeader(schema) ?? "", why);
      const listing = toolListing({}, [
        { name: "wrong", inputSchema: JSON.stringify(schema) },
        { name: "right", inputSchema: '{"type":"object"}' },
      ]);
      assert.deepEqual(
        listing.tools.map(({ name }) => name),
        ["right"],
      );
      assert.match(listing.notOffered[0]?.reason ?? "", /asks wrongly for a header: /);
    });
  }
});
