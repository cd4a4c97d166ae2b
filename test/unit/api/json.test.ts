import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { canonicalJson, compactJson, type JsonValue, parseJson } from "../../../src/api/json.ts";

describe("exact JSON", () => {
  const accepted: Record<string, { text: string; value: unknown }> = {
    "an integer that a double holds stays a number": { text: "9007199254740991", value: 9007199254740991 },
    "an integer beyond 2^53 keeps all its digits": { text: "9007199254740993", value: 9007199254740993n },
    "the largest u64 is exact": { text: "18446744073709551615", value: 18446744073709551615n },
    "the smallest s64 is exact": { text: "-9223372036854775808", value: -9223372036854775808n },
    "2^64 is not rounded into range": { text: "18446744073709551616", value: 18446744073709551616n },
    "an integer may be written with a fraction of zeros": { text: "42.0", value: 42 },
    "an integer may be written with an exponent": { text: "1e19", value: 10000000000000000000n },
    "a fraction and an exponent may make an integer": { text: "92233720368547758.07e2", value: 9223372036854775807n },
    "a double's own text means that double": { text: "3.4028234663852886e38", value: 3.4028234663852886e38 },
    "digits and exponent that cancel out over a long text cost nothing": { text: `1${"0".repeat(100_000)}e-99980`, value: 1e20 },
    "a fraction stays a fraction": { text: "0.1", value: 0.1 },
    "an escape may spell a character beyond the BMP": { text: '"\\ud83d\\ude00"', value: "😀" },
  };
  for (const [name, { text, value }] of Object.entries(accepted)) it(name, () => assert.deepEqual(parseJson(text), value));

  it("__proto__ is a key like any other", () => {
    const parsed = parseJson('{"__proto__":{"admin":true}}') as { readonly admin?: JsonValue };
    assert.equal(Object.getPrototypeOf(parsed), null);
    assert.equal(parsed.admin, undefined);
    assert.equal(compactJson(parsed as JsonValue), '{"__proto__":{"admin":true}}');
  });

  const refused: Record<string, { text: string; code: string; at?: string }> = {
    "a key twice": { text: '{"a":{"b":1,"b":2}}', code: "JsonDuplicateKey", at: "/a" },
    "a key twice, spelled in two ways": { text: '{"a":1,"\\u0061":2}', code: "JsonDuplicateKey", at: "" },
    "half a surrogate pair": { text: '["\\ud800"]', code: "JsonLoneSurrogate", at: "/0" },
    NaN: { text: '{"a":NaN}', code: "JsonSyntax", at: "/a" },
    "a number that is infinite as a double": { text: "1e999", code: "JsonNumberRange" },
    "a million digits": { text: "1".repeat(1_000_000), code: "JsonNumberRange" },
    "nesting of 10,000": { text: "[".repeat(10_000), code: "JsonTooDeep" },
    "text after the value": { text: "{} x", code: "JsonSyntax" },
    "a comma too many": { text: "[1,]", code: "JsonSyntax" },
    "a leading zero": { text: "[01]", code: "JsonSyntax" },
    "a control character in a string": { text: '"a\nb"', code: "JsonSyntax" },
    "a byte order mark": { text: "\ufeff{}", code: "JsonSyntax" },
    nothing: { text: "", code: "JsonSyntax" },
  };
  for (const [name, { text, code, at }] of Object.entries(refused)) {
    it(`refuses ${name}`, () => {
      assert.throws(
        () => parseJson(text),
        (thrown) => thrown instanceof Invalid && thrown.code === code && (at === undefined || thrown.at === at),
      );
    });
  }

  it("agrees with the platform's parser wherever that is exact", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        assert.equal(compactJson(parseJson(text)), JSON.stringify(JSON.parse(text)));
      }),
      { numRuns: 300 },
    );
  });

  it("any text gives a value or a typed error", () => {
    const pieces = fc.constantFrom("{", "}", "[", "]", ",", ":", '"', "\\", "u00", "1", "e", "-", ".", "null", "tru", " ", "a", "\ud800");
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        try {
          parseJson(parts.join(""));
        } catch (thrown) {
          assert.ok(thrown instanceof Invalid, String(thrown));
        }
      }),
      { numRuns: 500 },
    );
  });

  it("the canonical form sorts keys by code units and is the same for equal values", () => {
    assert.equal(canonicalJson(parseJson('{"b":1.0,"a":[1e2],"\\u20ac":null,"A":"\\u0041"}')), '{"A":"A","a":[100],"b":1,"€":null}');
  });
});
