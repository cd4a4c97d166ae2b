import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalJson, type JsonValue, parseJson } from "../../../src/api/json.ts";
import { parseClusterJson } from "../../../src/kube/json.ts";

test("JSON from an API server is read as exactly as JSON from anybody", () => {
  const digits = fc.stringMatching(/^(0|[1-9][0-9]{0,24})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?$/);
  fc.assert(
    fc.property(fc.array(digits, { maxLength: 3 }), fc.constantFrom(" ", "\n", ""), (numbers, space) => {
      const text = `{"numbers":[${numbers.join(`${space},${space}`)}],"text":"${numbers.join("x")}"}`;
      assert.equal(canonicalJson(parseClusterJson(text) as JsonValue), canonicalJson(parseJson(text)));
    }),
    { numRuns: 1000 },
  );
});

test("an integer that a double can't hold is a bigint", () => {
  assert.deepEqual(parseClusterJson("[9007199254740993]"), [9007199254740993n]);
  assert.deepEqual(parseClusterJson("[1234567890]"), [1234567890]);
});
