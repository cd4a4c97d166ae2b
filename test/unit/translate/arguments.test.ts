import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson, type JsonObject, parseJson } from "../../../src/api/json.ts";
import type { WitType } from "../../../src/api/wit.ts";
import { checkArguments, normaliseArguments, parseArguments } from "../../../src/translate/arguments.ts";
import { toComponentValues } from "../../../src/translate/to-component.ts";
import { enumeration, flags, func, list, listIssues, map, option, prim, record, result, tuple, variant } from "../declaration/wit-types.ts";

const parsed = (text: string): JsonObject => parseJson(text) as JsonObject;
const thrownBy = (act: () => unknown): Invalid => {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof Invalid) return thrown;
    throw thrown;
  }
  throw new Error("nothing was thrown");
};

describe("arguments are parsed", () => {
  it("from text and from bytes alike", () => {
    assert.equal(compactJson(parseArguments('{"a": 18446744073709551615}')), '{"a":18446744073709551615}');
    assert.equal(compactJson(parseArguments(new TextEncoder().encode('{"a":"é"}'))), '{"a":"é"}');
  });
  it("as none where a model sends an empty text", () => assert.equal(compactJson(parseArguments(" ")), "{}"));
  const refused: Record<string, { source: string | Uint8Array; code: string }> = {
    "an array": { source: "[]", code: "ArgumentsNotObject" },
    "a string that holds an object": { source: '"{}"', code: "ArgumentsNotObject" },
    null: { source: "null", code: "ArgumentsNotObject" },
    "bytes that are not UTF-8": { source: new Uint8Array([0x7b, 0xff, 0x7d]), code: "JsonNotUtf8" },
    "an overlong encoding": { source: new Uint8Array([0x22, 0xc0, 0x80, 0x22]), code: "JsonNotUtf8" },
    "more than a megabyte": { source: new Uint8Array(4 * 1024 * 1024), code: "JsonTooLong" },
    "a key twice": { source: '{"a":1,"a":1}', code: "JsonDuplicateKey" },
    "nesting of 10,000": { source: '{"a":'.repeat(10_000), code: "JsonTooDeep" },
    "half a surrogate pair": { source: '{"a":"\\ud83d"}', code: "JsonLoneSurrogate" },
  };
  for (const [name, { source, code }] of Object.entries(refused)) {
    it(`but not from ${name}`, () => assert.equal(thrownBy(() => parseArguments(source)).code, code));
  }
});

describe("normalised arguments", () => {
  const fn = func("f", {
    a: option(prim("u8")),
    b: list(record({ x: option(prim("bool")), y: prim("u8") })),
    c: option(option(prim("u8"))),
    d: variant({ v: record({ z: option(prim("string")) }), w: null }),
    e: map(prim("string"), record({ z: option(prim("string")) })),
  });
  const cases: Record<string, { given: string; is: string }> = {
    "leave out an optional argument that is null": { given: '{"a":null}', is: "{}" },
    "leave it out in a record in a list": { given: '{"b":[{"x":null,"y":1}]}', is: '{"b":[{"y":1}]}' },
    "leave it out in a variant's value and a map's": {
      given: '{"d":{"tag":"v","val":{"z":null}},"e":{"k":{"z":null}}}',
      is: '{"d":{"tag":"v","val":{}},"e":{"k":{}}}',
    },
    "keep null where an option of an option has one": { given: '{"c":null}', is: '{"c":null}' },
    "keep null where it is an error": { given: '{"b":null,"other":null}', is: '{"b":null,"other":null}' },
    "keep what doesn't fit as it is": { given: '{"b":{"0":1},"d":[null],"e":"x"}', is: '{"b":{"0":1},"d":[null],"e":"x"}' },
  };
  for (const [name, { given, is }] of Object.entries(cases)) {
    it(name, () => assert.equal(compactJson(normaliseArguments(fn, parsed(given))), is));
  }
});

describe("arguments that don't fit are refused with the place, what was expected and what came:", () => {
  const one = (type: WitType) => func("f", { a: type, rest: option(prim("string")) });
  const cases: Record<string, { type: WitType; given: string; message: string }> = {
    "a missing one": { type: prim("bool"), given: "{}", message: "/a: required but missing; expected true or false" },
    "one that is unknown": {
      type: prim("bool"),
      given: '{"a":true,"b":1}',
      message: "/b: no such property; expected an object with a, rest",
    },
    __proto__: {
      type: prim("bool"),
      given: '{"a":true,"__proto__":{}}',
      message: "/__proto__: no such property; expected an object with a, rest",
    },
    "text for a number": {
      type: prim("u32"),
      given: '{"a":"42"}',
      message: '/a: expected an integer from 0 to 4294967295; got the string "42"',
    },
    "a fraction": { type: prim("u8"), given: '{"a":1.5}', message: "/a: expected an integer from 0 to 255; got 1.5" },
    "a negative number": {
      type: prim("u64"),
      given: '{"a":-1}',
      message: "/a: expected an integer from 0 to 18446744073709551615; got -1",
    },
    "2^64": {
      type: prim("u64"),
      given: '{"a":18446744073709551616}',
      message: "/a: expected an integer from 0 to 18446744073709551615; got 18446744073709551616",
    },
    "a number beyond 32 bits": {
      type: prim("f32"),
      given: '{"a":1e39}',
      message: "/a: expected a number that fits 32 bits (at most about 3.4e38); got 1e+39",
    },
    "a name that is none": {
      type: enumeration({ open: "", closed: "" }),
      given: '{"a":"Open"}',
      message: '/a: expected one of "open", "closed"; got the string "Open"',
    },
    "two characters": {
      type: prim("char"),
      given: '{"a":"ab"}',
      message: '/a: expected a string of exactly one character; got the string "ab"',
    },
    "no character": { type: prim("char"), given: '{"a":""}', message: '/a: expected a string of exactly one character; got the string ""' },
    "text that is no base64": {
      type: list(prim("u8")),
      given: '{"a":"a-b_"}',
      message: '/a: expected a string of base64 with padding; got the string "a-b_"',
    },
    "base64 with bits to spare": {
      type: list(prim("u8")),
      given: '{"a":"AB=="}',
      message: '/a: expected a string of base64 with padding; got the string "AB=="',
    },
    "an item deep inside": {
      type: list(record({ "b-c": tuple(prim("bool"), prim("u8")) })),
      given: '{"a":[{"b_c":[true,1]},{"b_c":[true,null]}]}',
      message: "/a/1/b_c/1: expected an integer from 0 to 255; got null",
    },
    "a tuple of another length": {
      type: tuple(prim("bool")),
      given: '{"a":[true,true]}',
      message: "/a: expected an array of exactly 1 items; got an array of 2 items",
    },
    "an object for a list": {
      type: list(prim("bool")),
      given: '{"a":{"0":true}}',
      message: '/a: expected an array; got an object with the keys "0"',
    },
    "a flag twice": {
      type: flags({ read: "" }),
      given: '{"a":["read","read"]}',
      message: '/a/1: expected each flag at most once; got the string "read"',
    },
    "a case that is none": {
      type: variant({ x: prim("bool"), y: null }),
      given: '{"a":{"tag":"z"}}',
      message: '/a/tag: expected one of "x", "y"; got the string "z"',
    },
    "a case without its value": {
      type: variant({ x: prim("bool"), y: null }),
      given: '{"a":{"tag":"x"}}',
      message: "/a/val: expected true or false; got nothing",
    },
    "a value that a case doesn't have": {
      type: variant({ x: prim("bool"), y: null }),
      given: '{"a":{"tag":"y","val":null}}',
      message: '/a: expected an object with tag for the case "y"; got an object with the keys "tag", "val"',
    },
    "both sides of a result": {
      type: result(null, null),
      given: '{"a":{"ok":null,"err":null}}',
      message: '/a: expected an object with either "ok" or "err"; got an object with the keys "ok", "err"',
    },
    "a key of a map twice": {
      type: map(prim("u8"), prim("bool")),
      given: '{"a":[{"key":1,"value":true},{"key":1.0,"value":true}]}',
      message: "/a/1/key: expected each key at most once; got 1",
    },
    "a long value, told in short": {
      type: prim("bool"),
      given: `{"a":"${"😀".repeat(500)}"}`,
      message: `/a: expected true or false; got the string "${"😀".repeat(39)}…"`,
    },
  };
  for (const [name, { type, given, message }] of Object.entries(cases)) {
    it(name, () => {
      const thrown = thrownBy(() => checkArguments(one(type), parsed(given)));
      assert.equal(thrown.message, message);
      assert.equal(thrown.code, "ArgumentInvalid");
      assert.equal(thrown.at, message.slice(0, message.indexOf(":")));
    });
  }

  it("a message stays short however large the value and the type", () => {
    const wide = enumeration(Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`name-${index}`, ""])));
    const { message } = thrownBy(() => checkArguments(one(wide), { a: "x".repeat(100_000) }));
    assert.ok(message.length < 500, message);
  });
});

describe("a conversion ends", () => {
  const names = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`n${index}`, ""]));
  const cases: Record<string, { type: WitType; item: string; error: RegExp | null }> = {
    "for many values of an enum with many names": { type: enumeration(names), item: '"n9999"', error: null },
    "for many values of a variant with many cases": {
      type: variant(Object.fromEntries(Object.keys(names).map((name) => [name, null]))),
      item: '"n9999"',
      error: null,
    },
    "for many records with many fields left out": {
      type: record(Object.fromEntries(Object.keys(names).map((name) => [name, option(prim("bool"))]))),
      item: "{}",
      error: /more than can be checked in time/,
    },
    "for many sets of many flags": { type: flags(names), item: "[]", error: /more than can be checked in time/ },
  };
  for (const [name, { type, item, error }] of Object.entries(cases)) {
    it(name, () => {
      const fn = func("f", { a: list(type) });
      const given = normaliseArguments(fn, parsed(`{"a":[${`${item},`.repeat(50_000)}${item}]}`));
      if (error) assert.match(thrownBy(() => checkArguments(fn, given)).message, error);
      else checkArguments(fn, given);
    });
  }
});

describe("component values", () => {
  it("are one record where the only parameter is one", () => {
    assert.deepEqual(toComponentValues(listIssues, parsed('{"repo":"o/r","state":"open"}')), [{ repo: "o/r", state: "open" }]);
  });
  it("are one a parameter otherwise, in their order", () => {
    const fn = func("f", { "first-one": prim("u8"), second: option(prim("string")), third: record({ x: prim("bool") }) });
    assert.deepEqual(toComponentValues(fn, parsed('{"third":{"x":true},"first_one":7.0}')), [7, undefined, { x: true }]);
  });
  it("are exact at both ends of 64 bits", () => {
    const fn = func("f", { a: prim("u64"), b: prim("s64"), c: list(prim("u64")) });
    assert.deepEqual(toComponentValues(fn, parsed('{"a":18446744073709551615,"b":-9223372036854775808,"c":[1,9007199254740993]}')), [
      18446744073709551615n,
      -9223372036854775808n,
      BigUint64Array.of(1n, 9007199254740993n),
    ]);
  });
  it("name record fields and flags as jco does, cases as WIT does", () => {
    const fn = func("f", {
      a: record({ "get-URL": prim("bool") }),
      b: flags({ "read-it": "", write: "" }),
      c: variant({ "dark-blue": null }),
      d: enumeration({ "dark-blue": "" }),
    });
    assert.deepEqual(toComponentValues(fn, parsed('{"a":{"get_URL":true},"b":["read-it"],"c":"dark-blue","d":"dark-blue"}')), [
      { getUrl: true },
      { readIt: true, write: false },
      { tag: "dark-blue" },
      "dark-blue",
    ]);
  });
  it("tell the three values of an option of an option apart", () => {
    const fn = func("f", { a: list(option(option(prim("u8")))), b: option(option(prim("u8"))) });
    assert.deepEqual(toComponentValues(fn, parsed('{"a":[null,{"some":null},{"some":1}]}')), [
      [{ tag: "none" }, { tag: "some", val: undefined }, { tag: "some", val: 1 }],
      { tag: "none" },
    ]);
  });
});
