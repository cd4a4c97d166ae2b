import fc from "fast-check";
import type { JsonObject, JsonValue } from "../../../src/api/json.ts";

/**
 * Schemas as a reviewer may write them, over so few names, texts and numbers that a value often fits one: every keyword that a copy may meet, in odd company.
 */

const names = fc.constantFrom("a", "b", "c");
const texts = fc.constantFrom("", "a", "ab", "2026-01-01", "YQ==");
const numbers = fc.constantFrom(-1, 0, 1, 2, 1.5, 18446744073709551615n);
const scalars: fc.Arbitrary<JsonValue> = fc.oneof(texts, numbers, fc.boolean(), fc.constant(null));
const typeNames = fc.constantFrom("object", "array", "string", "integer", "number", "boolean", "null");
const counts = fc.nat({ max: 3 });

export const values: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    scalars,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(names, tie("value"), { maxKeys: 3 }),
  ),
})).value;

const keywords = (schema: fc.Arbitrary<JsonValue>): fc.Arbitrary<JsonObject> =>
  fc.oneof(
    fc.record({ type: typeNames }),
    fc.record({ type: fc.uniqueArray(typeNames, { minLength: 1, maxLength: 3 }) }),
    fc.record({ enum: fc.uniqueArray(scalars, { minLength: 1, maxLength: 4 }) }),
    fc.record({ const: scalars }),
    fc.record(
      {
        type: fc.constant("object"),
        properties: fc.dictionary(names, schema, { maxKeys: 3 }),
        required: fc.uniqueArray(names, { maxLength: 2 }),
        additionalProperties: fc.oneof(schema, fc.constant(false)),
      },
      { requiredKeys: [] },
    ),
    fc.record({ patternProperties: fc.dictionary(fc.constantFrom("^a", "b|c"), schema, { maxKeys: 1 }) }),
    fc.record({ minProperties: counts, maxProperties: counts }, { requiredKeys: [] }),
    fc.record({ propertyNames: schema }),
    fc.record({ dependentRequired: fc.dictionary(names, fc.uniqueArray(names, { maxLength: 2 }), { maxKeys: 1 }) }),
    fc.record({ dependentSchemas: fc.dictionary(names, schema, { maxKeys: 1 }) }),
    fc.record({ unevaluatedProperties: fc.constant(false) }),
    fc.record(
      {
        type: fc.constant("array"),
        items: fc.oneof(schema, fc.constant(false)),
        prefixItems: fc.array(schema, { minLength: 1, maxLength: 2 }),
        minItems: counts,
        maxItems: counts,
        uniqueItems: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
    fc.record({ contains: schema, maxContains: counts }, { requiredKeys: ["contains"] }),
    fc.record({ minimum: numbers, exclusiveMaximum: numbers, multipleOf: fc.constant(1) }, { requiredKeys: [] }),
    fc.record(
      { minLength: counts, maxLength: counts, pattern: fc.constantFrom("^a", "b$"), format: fc.constantFrom("date", "uri") },
      { requiredKeys: [] },
    ),
    fc.record({ anyOf: fc.array(schema, { minLength: 1, maxLength: 3 }) }),
    fc.record({ oneOf: fc.array(schema, { minLength: 1, maxLength: 3 }) }),
    fc.record({ allOf: fc.array(schema, { minLength: 1, maxLength: 2 }) }),
    fc.record({ not: schema }),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    fc.record({ if: schema, then: schema, else: schema }, { requiredKeys: ["if"] }),
    fc.record({ $ref: fc.constantFrom("#/$defs/x", "#/$defs/y", "#/properties/a", "#/definitions/x") }),
    fc.record(
      { title: fc.constant("T"), description: fc.constant("D."), default: scalars, "x-mcp-header": fc.constant("H") },
      { requiredKeys: [] },
    ),
  );

const subschemas: fc.Arbitrary<JsonValue> = fc.letrec<{ schema: JsonValue }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.record({ type: typeNames }),
    fc.boolean(),
    fc.array(keywords(tie("schema")), { minLength: 1, maxLength: 3 }).map((parts): JsonValue => Object.assign({}, ...parts)),
  ),
})).schema;

/** Always of an object, with definitions for the references that others make. */
export const reviewedSchemas: fc.Arbitrary<JsonObject> = fc
  .record({
    root: fc.array(keywords(subschemas), { maxLength: 2 }),
    a: subschemas,
    x: subschemas,
    y: subschemas,
    additionalProperties: fc.constantFrom(true, false),
  })
  .map(({ root, a, x, y, additionalProperties }): JsonObject => {
    const merged: Record<string, JsonValue> = Object.assign({ additionalProperties }, ...root, { type: "object" });
    const properties = (merged.properties ?? {}) as JsonObject;
    return { ...merged, properties: { ...properties, a }, $defs: { x, y }, definitions: { x: y } };
  });
