import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import type { WitFunction, WitType } from "../../../src/api/wit.ts";
import { definitionDigest, definitionText } from "../../../src/grants/definition.ts";
import { toolOfDefinition } from "../../../src/grants/definition-function.ts";

const name = fc.constantFrom("a", "list-issues", "zähler");
const docs = fc.constantFrom("", "What it is.\nMore of it.", "\u202e");
const label = fc.record({ name, docs });
const primitive = fc.constantFrom<WitType>({ kind: "string" }, { kind: "u64" }, { kind: "char" }, { kind: "error-context" });

const { type } = fc.letrec<{ type: WitType; maybe: WitType | null }>((tie) => ({
  maybe: fc.option(tie("type")),
  type: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    primitive,
    fc.record({ kind: fc.constant("list" as const), element: tie("type") }),
    fc.record({ kind: fc.constant("list" as const), element: tie("type"), length: fc.constantFrom(4, 0) }),
    fc.record({ kind: fc.constant("map" as const), key: primitive, value: tie("type") }),
    fc.record({ kind: fc.constant("tuple" as const), items: fc.array(tie("type"), { maxLength: 3 }) }),
    fc.record({ kind: fc.constant("option" as const), some: tie("type") }),
    fc.record({ kind: fc.constant("result" as const), ok: tie("maybe"), err: tie("maybe") }),
    fc.record({
      kind: fc.constant("record" as const),
      name: fc.option(name),
      docs,
      fields: fc.array(fc.record({ name, type: tie("type"), docs }), { maxLength: 3 }),
    }),
    fc.record({
      kind: fc.constant("variant" as const),
      name: fc.option(name),
      docs,
      cases: fc.array(fc.record({ name, docs, type: tie("maybe") }), { maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant("enum" as const), name: fc.option(name), docs, cases: fc.array(label, { maxLength: 3 }) }),
    fc.record({ kind: fc.constant("flags" as const), name: fc.option(name), docs, flags: fc.array(label, { maxLength: 3 }) }),
    fc.record({ kind: fc.constantFrom("own" as const, "borrow" as const), resource: name }),
    fc.record({ kind: fc.constantFrom("stream" as const, "future" as const), element: tie("maybe") }),
  ),
}));

const fn: fc.Arbitrary<WitFunction> = fc.record({
  interface: fc.option(fc.constant("example:github/issues@0.1.0")),
  name,
  form: fc.constant("function" as const),
  async: fc.boolean(),
  params: fc.array(fc.record({ name, type }), { maxLength: 3 }),
  result: fc.option(type),
  docs,
});

test("a function that is read back from its definition has the same definition", () => {
  fc.assert(
    fc.property(fn, (given) => {
      const read = toolOfDefinition(definitionText(given));
      assert.equal(definitionDigest(read), definitionDigest(given));
    }),
    { numRuns: 300 },
  );
});

const good = (types: string, result: string): string =>
  `{"async":false,"docs":"","function":"f","interface":null,"params":[],"result":${result},"types":${types},"v":1}`;

test("what is written by hand is read", () => {
  const read = toolOfDefinition(good('[{"kind":"option","some":"u8"}]', "0"));
  assert.ok(read.form === "function");
  assert.deepEqual(read.result, { kind: "option", some: { kind: "u8" } });
});

const bad: Record<string, string> = {
  "text that is no JSON": "{",
  "a list instead of an object": "[]",
  "a type that refers to itself": good('[{"kind":"option","some":0}]', "0"),
  "a type that comes later": good('[{"kind":"option","some":1},{"kind":"option","some":"u8"}]', "0"),
  "a type that nobody uses": good('[{"kind":"option","some":"u8"}]', '"u8"'),
  "an unknown kind": good('[{"kind":"resource"}]', "0"),
  "an unknown primitive": good("[]", '"u128"'),
  "another version": good("[]", "null").replace('"v":1', '"v":2'),
  "a field that the encoding has not": good("[]", "null").replace('"v":1', '"v":1,"w":1'),
  "whitespace that is not canonical": ` ${good("[]", "null")}`,
  "a length that is no number": good('[{"element":"u8","kind":"list","length":"4"}]', "0"),
};

for (const [what, text] of Object.entries(bad)) {
  test(`${what} is no definition`, () => {
    assert.throws(
      () => toolOfDefinition(text),
      (thrown) => thrown instanceof Invalid && thrown.code === "DefinitionMalformed",
    );
  });
}
