import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson } from "../../../src/api/json.ts";
import type { WitType } from "../../../src/api/wit.ts";
import { resultOf, type Settled } from "../../../src/translate/result.ts";
import { func, list, map, option, prim, record, result, variant } from "../declaration/wit-types.ts";

/** As jco's generated code throws it. */
class ComponentError extends Error {
  readonly payload: unknown;
  constructor(payload: unknown) {
    super(String(payload));
    this.payload = payload;
  }
}

const megabyte = 1024 * 1024;

describe("a result is", () => {
  const cases: Record<string, { type: WitType | null; settled: Settled; is: string }> = {
    "text as it is": { type: prim("string"), settled: { returned: 'a "b"' }, is: 'ok|a "b"|{"result":"a \\"b\\""}' },
    "empty text as it is": { type: prim("string"), settled: { returned: "" }, is: 'ok||{"result":""}' },
    "compact JSON of anything else": { type: list(prim("u8"), 2), settled: { returned: [1, 2] }, is: 'ok|[1,2]|{"result":[1,2]}' },
    "a record without a wrapper": {
      type: record({ "a-b": prim("bool") }),
      settled: { returned: { aB: true } },
      is: 'ok|{"a_b":true}|{"a_b":true}',
    },
    "a few words for nothing": { type: null, settled: { returned: undefined }, is: "ok|Done.|" },
    "a few words for ok without a value": { type: result(null, prim("string")), settled: { returned: undefined }, is: "ok|Done.|" },
    "null for a none": { type: option(prim("bool")), settled: { returned: undefined }, is: 'ok|null|{"result":null}' },
    "without the fields that hold nothing": {
      type: record({ a: option(prim("bool")), b: prim("u8") }),
      settled: { returned: { b: 1 } },
      is: 'ok|{"b":1}|{"b":1}',
    },
    "the value of ok": {
      type: result(prim("u64"), prim("string")),
      settled: { returned: 2n ** 64n - 1n },
      is: 'ok|18446744073709551615|{"result":18446744073709551615}',
    },
    "what JSON numbers can't say, as text": { type: prim("f64"), settled: { returned: Number.NaN }, is: 'ok|NaN|{"result":"NaN"}' },
    "the shortest text of a 32-bit float": { type: prim("f32"), settled: { returned: Math.fround(0.1) }, is: 'ok|0.1|{"result":0.1}' },
    "base64 of bytes": { type: list(prim("u8")), settled: { returned: new Uint8Array([0, 255]) }, is: 'ok|AP8=|{"result":"AP8="}' },
    "an object of a map with text keys": {
      type: map(prim("string"), prim("u8")),
      settled: { returned: new Map([["__proto__", 1]]) },
      is: 'ok|{"__proto__":1}|{"__proto__":1}',
    },
    "the error's text": {
      type: result(null, prim("string")),
      settled: { thrown: new ComponentError("no such file") },
      is: "tool-error|no such file",
    },
    "compact JSON of another error": {
      type: result(null, variant({ "not-found": prim("string"), other: null })),
      settled: { thrown: new ComponentError({ tag: "not-found", val: "x" }) },
      is: 'tool-error|{"tag":"not-found","val":"x"}',
    },
    "a few words for an error without a value": {
      type: result(prim("bool"), null),
      settled: { thrown: new ComponentError(undefined) },
      is: "tool-error|The tool failed and gave no reason.",
    },
    "a few words for an empty error": {
      type: result(prim("bool"), prim("string")),
      settled: { thrown: new ComponentError("") },
      is: "tool-error|The tool failed and gave no reason.",
    },
  };
  for (const [name, { type, settled, is }] of Object.entries(cases)) {
    it(name, () => {
      const made = resultOf(func("f", {}, type), settled, megabyte);
      const parts = [made.outcome, made.text];
      if (made.outcome === "ok") parts.push(made.structured ? compactJson(made.structured) : "");
      assert.equal(parts.join("|"), is);
    });
  }
});

describe("what is no result of the tool", () => {
  it("a trap, is thrown on", () => {
    const trap = new WebAssembly.RuntimeError("unreachable");
    assert.throws(() => resultOf(func("f", {}, result(null, prim("string"))), { thrown: trap }, megabyte), trap);
  });
  it("an error of a function that has none, is thrown on", () => {
    const error = new ComponentError("from an import");
    assert.throws(() => resultOf(func("f", {}, prim("string")), { thrown: error }, megabyte), error);
  });
  const codeOf = (type: WitType, returned: unknown, limit = megabyte): string | undefined => {
    try {
      resultOf(func("f", {}, type), { returned }, limit);
      return undefined;
    } catch (thrown) {
      if (thrown instanceof Invalid) return thrown.code;
      throw thrown;
    }
  };
  it("more than the limit, is refused by the byte", () => {
    assert.equal(codeOf(prim("string"), "x".repeat(98), 100), undefined);
    assert.equal(codeOf(prim("string"), "é".repeat(51), 100), "ResultTooLarge");
    assert.equal(codeOf(list(prim("bool")), Array(1000).fill(true), 1000), "ResultTooLarge");
  });
  it("a hundred aliases of one buffer, is refused before it is written out", () => {
    const buffer = new Uint8Array(megabyte);
    assert.equal(codeOf(list(list(prim("u8"))), Array(100).fill(buffer)), "ResultTooLarge");
  });
  it("an error beyond the limit, is refused as well", () => {
    assert.throws(
      () => resultOf(func("f", {}, result(null, prim("string"))), { thrown: new ComponentError("x".repeat(200)) }, 100),
      (thrown) => thrown instanceof Invalid && thrown.code === "ResultTooLarge",
    );
  });
  it("a value of another type, is refused", () => {
    const cases: [WitType, unknown][] = [
      [prim("u64"), 1],
      [prim("u8"), 1.5],
      [prim("string"), 7],
      [prim("string"), "\ud800"],
      [prim("char"), "ab"],
      [list(prim("bool")), "abc"],
      [record({ a: prim("bool") }), null],
      [record({ a: prim("bool") }), {}],
      [variant({ a: prim("bool") }), { tag: "b" }],
      [list(result(null, null)), [{ tag: "none" }]],
    ];
    for (const [type, value] of cases) assert.equal(codeOf(type, value), "ResultInvalid", JSON.stringify(type));
  });
});
