import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalJson, type JsonValue, parseJson } from "../../../src/api/json.ts";
import { describeChanges } from "../../../src/grants/changes.ts";

const cases: Record<string, { before: JsonValue; after: JsonValue; changes: (string | null)[][] }> = {
  "nothing changed": { before: { a: [1, { b: 2 }] }, after: { a: [1, { b: 2 }] }, changes: [] },
  "the order of keys is no change": { before: { a: 1, b: 2 }, after: { b: 2, a: 1 }, changes: [] },
  "a value": { before: { a: { b: 1 } }, after: { a: { b: "1" } }, changes: [["/a/b", "1", '"1"']] },
  "a key that is new and one that is gone": {
    before: { a: 1 },
    after: { "b/c": [] },
    changes: [
      ["/a", "1", null],
      ["/b~1c", null, "[]"],
    ],
  },
  "a member of a list of named things is told by its name": {
    before: [
      { name: "x", docs: "1" },
      { name: "y", docs: "2" },
    ],
    after: [{ name: "y", docs: "3" }],
    changes: [
      ["/x", '{"docs":"1"}', null],
      ["/y/docs", "2", "3"],
    ],
  },
  "a member of another list by its place": {
    before: ["a", "b"],
    after: ["a", "c", "d"],
    changes: [
      ["/1", "b", "c"],
      ["/2", null, "d"],
    ],
  },
  "a list whose members lost their names": { before: [{ name: "0", a: 1 }], after: [{ a: 1 }], changes: [["/0/name", "0", null]] },
  "the order of named things is a change": {
    before: [{ name: "x" }, { name: "y" }],
    after: [{ name: "y" }, { name: "x" }],
    changes: [["", "order: x, y", "order: y, x"]],
  },
  "another kind of value": { before: { a: [] }, after: { a: {} }, changes: [["/a", "[]", "{}"]] },
  "hidden characters are spelled out": { before: "a", after: "a\u202e", changes: [["", "a", "a⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩"]] },
};

for (const [sentence, { before, after, changes }] of Object.entries(cases)) {
  test(`changes: ${sentence}`, () => {
    assert.deepEqual(
      describeChanges(before, after).map((change) => [change.path, change.before, change.after]),
      changes,
    );
  });
}

test("there are no changes exactly between equal values", () => {
  const value = fc.json({ maxDepth: 3 }).map((text) => parseJson(text));
  fc.assert(
    fc.property(value, value, (before, after) => {
      assert.deepEqual(describeChanges(before, before), []);
      assert.equal(describeChanges(before, after).length === 0, canonicalJson(before) === canonicalJson(after));
    }),
    { numRuns: 300 },
  );
});

test("the list of changes is bounded and says how many more there are", () => {
  const many = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`k${i}`, i]));
  const changes = describeChanges({}, many);
  assert.equal(changes.length, 100);
  assert.equal(changes.at(-1)?.after, "… and 151 more differences");
});
