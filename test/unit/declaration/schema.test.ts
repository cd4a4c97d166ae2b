import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson } from "../../../src/api/json.ts";
import type { WitType } from "../../../src/api/wit.ts";
import { declarationOf } from "../../../src/declaration/declaration.ts";
import { outputSchema, parametersSchema } from "../../../src/declaration/schema.ts";
import { enumeration, flags, func, list, listIssues, map, option, prim, record, result, tuple, variant } from "./wit-types.ts";

it("the documentation's example comes out to the letter", () => {
  assert.equal(
    compactJson({ ...declarationOf(listIssues) }),
    '{"name":"list_issues","description":"List the issues in a repository.","parameters":{"type":"object","properties":{"repo":{"type":"string","description":"The repository, as owner/name."},"state":{"type":"string","enum":["open","closed"],"description":"Which issues to list."}},"required":["repo","state"],"additionalProperties":false}}',
  );
});

const base64 =
  '{"type":"string","contentEncoding":"base64","pattern":"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"}';
const int = (minimum?: number, maximum?: number): string =>
  `{"type":"integer"${minimum === undefined ? "" : `,"minimum":${minimum}`}${maximum === undefined ? "" : `,"maximum":${maximum}`}}`;
const closed = (properties: string, required: string): string =>
  `{"type":"object","properties":{${properties}},"required":[${required}],"additionalProperties":false}`;
const f32 = '{"type":"number","minimum":-3.4028234663852886e+38,"maximum":3.4028234663852886e+38}';

const argumentSchemas: Record<string, { type: WitType; schema: string }> = {
  bool: { type: prim("bool"), schema: '{"type":"boolean"}' },
  string: { type: prim("string"), schema: '{"type":"string"}' },
  u8: { type: prim("u8"), schema: int(0, 255) },
  u16: { type: prim("u16"), schema: int(0, 65535) },
  u32: { type: prim("u32"), schema: int(0, 4294967295) },
  "u64, whose upper bound a reader's parser would round": { type: prim("u64"), schema: int(0) },
  s8: { type: prim("s8"), schema: int(-128, 127) },
  s16: { type: prim("s16"), schema: int(-32768, 32767) },
  s32: { type: prim("s32"), schema: int(-2147483648, 2147483647) },
  s64: { type: prim("s64"), schema: int() },
  f32: { type: prim("f32"), schema: f32 },
  f64: { type: prim("f64"), schema: '{"type":"number"}' },
  char: { type: prim("char"), schema: '{"type":"string","minLength":1,"maxLength":1}' },
  bytes: { type: list(prim("u8")), schema: base64 },
  "bytes of a fixed number": { type: list(prim("u8"), 4), schema: `{"type":"array","items":${int(0, 255)},"minItems":4,"maxItems":4}` },
  "a list": { type: list(prim("string")), schema: '{"type":"array","items":{"type":"string"}}' },
  "a tuple": {
    type: tuple(prim("bool"), prim("string")),
    schema: '{"type":"array","prefixItems":[{"type":"boolean"},{"type":"string"}],"minItems":2,"maxItems":2}',
  },
  "an option in a list": {
    type: list(option(prim("bool"))),
    schema: '{"type":"array","items":{"anyOf":[{"type":"boolean"},{"type":"null"}]}}',
  },
  "an option of an option in a list": {
    type: list(option(option(prim("bool")))),
    schema: `{"type":"array","items":{"anyOf":[${closed('"some":{"anyOf":[{"type":"boolean"},{"type":"null"}]}', '"some"')},{"type":"null"}]}}`,
  },
  "a record": {
    type: record({ "dark-blue": prim("bool"), URL: option(prim("string")) }),
    schema: closed('"dark_blue":{"type":"boolean"},"URL":{"type":"string"}', '"dark_blue"'),
  },
  "a record of optional fields": {
    type: record({ a: option(prim("bool")) }),
    schema: '{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false}',
  },
  "an enum, whose names stay as written": {
    type: enumeration({ "dark-blue": "", red: "" }),
    schema: '{"type":"string","enum":["dark-blue","red"]}',
  },
  "an enum with comments on its cases": {
    type: enumeration({ red: "Like blood.", blue: "" }, "A colour."),
    schema: '{"type":"string","enum":["red","blue"],"description":"A colour.\\n- red: Like blood."}',
  },
  "a variant without payloads": { type: variant({ a: null, b: null }), schema: '{"type":"string","enum":["a","b"]}' },
  "a variant": {
    type: variant({ none: null, circle: prim("f64") }),
    schema: `{"anyOf":[${closed('"tag":{"type":"string","enum":["none"]}', '"tag"')},${closed('"tag":{"type":"string","enum":["circle"]},"val":{"type":"number"}', '"tag","val"')}]}`,
  },
  "a result": {
    type: result(prim("bool"), prim("string")),
    schema: `{"anyOf":[${closed('"ok":{"type":"boolean"}', '"ok"')},${closed('"err":{"type":"string"}', '"err"')}]}`,
  },
  "a result without values": {
    type: result(null, null),
    schema: `{"anyOf":[${closed('"ok":{"type":"null"}', '"ok"')},${closed('"err":{"type":"null"}', '"err"')}]}`,
  },
  flags: {
    type: flags({ read: "", "write-it": "" }),
    schema: '{"type":"array","items":{"type":"string","enum":["read","write-it"]},"uniqueItems":true}',
  },
  "a map with text keys": {
    type: map(prim("string"), prim("bool")),
    schema: '{"type":"object","additionalProperties":{"type":"boolean"}}',
  },
  "a map with other keys": {
    type: map(prim("u8"), prim("bool")),
    schema: `{"type":"array","items":${closed(`"key":${int(0, 255)},"value":{"type":"boolean"}`, '"key","value"')}}`,
  },
};

describe("the schema of an argument that is", () => {
  for (const [name, { type, schema }] of Object.entries(argumentSchemas)) {
    it(name, () =>
      assert.equal(
        compactJson(parametersSchema(func("f", { first: type, second: prim("bool") })).properties ?? null),
        `{"first":${schema},"second":{"type":"boolean"}}`,
      ),
    );
  }
});

describe("parameters", () => {
  const cases: Record<string, { params: Record<string, WitType>; schema: string }> = {
    "are an empty closed object for a function without any": {
      params: {},
      schema: '{"type":"object","properties":{},"additionalProperties":false}',
    },
    "are the fields of the only parameter if it is a record, whose own comment is not used": {
      params: { args: record({ a: [prim("bool"), "The a."] }, "Unused.") },
      schema: closed('"a":{"type":"boolean","description":"The a."}', '"a"'),
    },
    "stay apart when there are two records": {
      params: { a: record({ x: prim("bool") }), b: record({ y: prim("bool") }) },
      schema: closed(`"a":${closed('"x":{"type":"boolean"}', '"x"')},"b":${closed('"y":{"type":"boolean"}', '"y"')}`, '"a","b"'),
    },
    "have one property where the only parameter is an optional record": {
      params: { args: option(record({ x: prim("bool") })) },
      schema: `{"type":"object","properties":{"args":${closed('"x":{"type":"boolean"}', '"x"')}},"additionalProperties":false}`,
    },
    "may leave out what is optional": {
      params: { "max-count": option(prim("u8")) },
      schema: `{"type":"object","properties":{"max_count":${int(0, 255)}},"additionalProperties":false}`,
    },
    "describe a field by its own comment rather than its type's": {
      params: { a: record({ x: [enumeration({ e: "" }, "The type."), "The field."], y: option(enumeration({ e: "" }, "The type.")) }) },
      schema: closed(
        '"x":{"type":"string","enum":["e"],"description":"The field."},"y":{"type":"string","enum":["e"],"description":"The type."}',
        '"x"',
      ),
    },
  };
  for (const [name, { params, schema }] of Object.entries(cases)) {
    it(name, () => assert.equal(compactJson(parametersSchema(func("f", params))), schema));
  }
});

describe("the output schema", () => {
  const cases: Record<string, { type: WitType | null; schema: string | null }> = {
    "is none for a function that gives nothing": { type: null, schema: null },
    "is none for a result without a value": { type: result(null, prim("string")), schema: null },
    "is the record's own": { type: record({ x: prim("bool") }), schema: closed('"x":{"type":"boolean"}', '"x"') },
    "wraps what is no object": { type: prim("string"), schema: closed('"result":{"type":"string"}', '"result"') },
    "is that of the ok side": { type: result(prim("u8"), prim("string")), schema: closed(`"result":${int(0, 255)}`, '"result"') },
    "names what JSON numbers can't say": {
      type: prim("f64"),
      schema: closed('"result":{"anyOf":[{"type":"number"},{"type":"string","enum":["NaN","Infinity","-Infinity"]}]}', '"result"'),
    },
    "has an object at its root for a variant": {
      type: variant({ a: prim("bool") }),
      schema: `{"type":"object","anyOf":[${closed('"tag":{"type":"string","enum":["a"]},"val":{"type":"boolean"}', '"tag","val"')}]}`,
    },
    "leaves optional fields out of required": {
      type: record({ x: option(prim("bool")) }),
      schema: '{"type":"object","properties":{"x":{"type":"boolean"}},"additionalProperties":false}',
    },
  };
  for (const [name, { type, schema }] of Object.entries(cases)) {
    it(name, () => {
      const made = outputSchema(func("f", {}, type));
      assert.equal(made && compactJson(made), schema);
    });
  }
});

describe("a schema is refused", () => {
  const codeOf = (type: WitType): string => {
    try {
      parametersSchema(func("f", { value: type }));
      return "none";
    } catch (thrown) {
      if (thrown instanceof Invalid) return thrown.code;
      throw thrown;
    }
  };

  it("where shared types make a few bytes stand for 2^40 of them", () => {
    let type: WitType = prim("bool");
    for (let i = 0; i < 40; i++) type = tuple(type, type);
    assert.equal(codeOf(type), "SchemaTooLarge");
  });

  it("where types nest without end", () => {
    let type: WitType = prim("bool");
    for (let i = 0; i < 10_000; i++) type = list(type);
    assert.equal(codeOf(type), "SchemaTooLarge");
  });

  it("where a comment is a megabyte", () => {
    assert.equal(codeOf(enumeration({ a: "x".repeat(1_000_000) })), "SchemaTooLarge");
  });

  it("where an enum has more names than a declaration can hold", () => {
    assert.equal(codeOf(enumeration(Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`name-${i}`, ""])))), "SchemaTooLarge");
  });

  it("where JSON can't carry a type, and says where", () => {
    assert.throws(
      () => parametersSchema(func("f", { value: list(record({ body: { kind: "stream", element: null } })) })),
      (thrown) => thrown instanceof Invalid && thrown.code === "TypeNotRepresentable" && thrown.at === "parameters.value.[].body",
    );
  });
});
