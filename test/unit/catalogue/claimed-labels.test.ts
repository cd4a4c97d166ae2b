import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type JsonObject, type JsonValue, parseJson } from "../../../src/api/json.ts";
import { claimedLabels } from "../../../src/catalogue/claimed-labels.ts";

const args: JsonObject = { a: { b: [1, { c: null }] }, "d/e": "f", "": 0 };
const codeOf = (claimed: JsonValue, isLabeler = true) => claimedLabels(claimed, args, isLabeler).refusal?.code ?? null;
const many = (count: number): string[] => Array.from({ length: count }, (_, index) => `source ${index}`);

const cases: Readonly<Record<string, { readonly claimed: JsonValue; readonly code: string | null }>> = {
  "of everything": { claimed: { "": { trusted: true } }, code: null },
  "of a value in a list in an object": { claimed: { "/a/b/1/c": { sensitivity: "Secret" } }, code: null },
  "of a value whose key is escaped": { claimed: { "/d~1e": {} }, code: null },
  "of a value whose key is empty": { claimed: { "/": {} }, code: null },
  "of none": { claimed: {}, code: null },
  "of a value that is not there": { claimed: { "/a/c": {} }, code: "LabelsMalformed" },
  "past the end of a list": { claimed: { "/a/b/2": {} }, code: "LabelsMalformed" },
  "of what every object has": { claimed: { "/constructor": {} }, code: "LabelsMalformed" },
  "by a name instead of a pointer": { claimed: { a: {} }, code: "LabelsMalformed" },
  "by a pointer with half an escape": { claimed: { "/d~e": {} }, code: "LabelsMalformed" },
  "in a list": { claimed: [], code: "LabelsMalformed" },
  "with a member of another name": { claimed: { "": { trust: true } }, code: "LabelsMalformed" },
  "with trust that is a text": { claimed: { "": { trusted: "true" } }, code: "LabelsMalformed" },
  "with a sensitivity in another case": { claimed: { "": { sensitivity: "secret" } }, code: "LabelsMalformed" },
  "with a source that is empty": { claimed: { "": { sources: [""] } }, code: "LabelsMalformed" },
  "with a source of 512 characters": { claimed: { "": { sources: ["s".repeat(512)] } }, code: null },
  "with a source of 513": { claimed: { "": { sources: ["s".repeat(513)] } }, code: "LabelsMalformed" },
  "with 256 sources": { claimed: { "": { sources: many(256) } }, code: null },
  "with 257 sources": { claimed: { "": { sources: many(257) } }, code: "LabelsMalformed" },
  "with 257 sources in two labels": {
    claimed: { "": { sources: many(200) }, "/a": { sources: many(257).slice(190) } },
    code: "LabelsMalformed",
  },
};
for (const [what, { claimed, code }] of Object.entries(cases)) {
  test(`labels ${what} ${code === null ? "count" : "are refused"}`, () => assert.equal(codeOf(claimed), code));
}

test("256 labels count, and one more are refused", () => {
  const wide: JsonObject = Object.fromEntries(many(257).map((name) => [name, 0]));
  const labels = (count: number): JsonObject => Object.fromEntries(many(count).map((name) => [`/${name}`, {}]));
  assert.equal(claimedLabels(labels(256), wide, false).refusal, null);
  assert.equal(claimedLabels(labels(257), wide, false).refusal?.code, "LabelsMalformed");
});

test("whatever is claimed, it is read or refused; of who is no labeler nothing counts that is better than a model's words", () => {
  const label = fc.oneof(
    fc.record(
      {
        trusted: fc.boolean(),
        sources: fc.array(fc.string(), { maxLength: 2 }),
        sensitivity: fc.constantFrom("Public", "Internal", "Confidential", "Secret", "secret"),
      },
      { requiredKeys: [] },
    ),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const pointer = fc.oneof(fc.constantFrom("", "/a", "/a/b", "/a/b/0", "/x", "/d~1e"), fc.string());
  const claims = fc.oneof(fc.dictionary(pointer, label, { maxKeys: 4 }), fc.jsonValue({ maxDepth: 3 }));
  fc.assert(
    fc.property(claims, (written) => {
      const claimed = parseJson(JSON.stringify(written).toWellFormed());
      const { labels, refusal } = claimedLabels(claimed, args, false);
      if (refusal) assert.equal(labels.size, 0);
      for (const { trusted, sources, sensitivity } of labels.values()) {
        assert.ok(!trusted && sources.length === 0 && sensitivity !== "Public");
      }
    }),
    { numRuns: 500 },
  );
});
