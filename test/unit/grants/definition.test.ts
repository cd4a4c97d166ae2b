import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { WitFunction, WitType } from "../../../src/api/wit.ts";
import { definitionDigest, definitionText, definitionTree } from "../../../src/grants/definition.ts";
import { listIssues } from "./issues-tool.ts";

// Written by hand after docs/review.md: this text must never change, or every review in the world drifts.
const v1 =
  '{"async":true,"docs":"List the issues in a repository.","function":"list-issues","interface":"example:github/issues@0.1.0",' +
  '"params":[{"name":"args","type":1}],"result":4,"types":[' +
  '{"cases":[{"docs":"","name":"open"},{"docs":"","name":"closed"}],"docs":"","kind":"enum"},' +
  '{"docs":"","fields":[{"docs":"The repository, as owner/name.","name":"repo","type":"string"},{"docs":"Which issues to list.","name":"state","type":0}],"kind":"record"},' +
  '{"docs":"","fields":[{"docs":"","name":"number","type":"u32"},{"docs":"","name":"state","type":0}],"kind":"record"},' +
  '{"element":2,"kind":"list"},' +
  '{"err":"string","kind":"result","ok":3}],"v":1}';

test("the v1 encoding of a definition is the documented text", () => {
  assert.equal(definitionText(listIssues()), v1);
  assert.equal(definitionDigest(listIssues()), `v1:sha256:${createHash("sha256").update(v1).digest("hex")}`);
});

const changes: Record<string, WitFunction> = {
  "the function's doc comment": listIssues({ docs: "List issues." }),
  "a field's doc comment": listIssues({}, "The repository."),
  "a space at the end of a doc comment": listIssues({}, "The repository, as owner/name. "),
  "the interface's version": listIssues({ interface: "example:github/issues@0.1.1" }),
  "the function's name": listIssues({ name: "list-issue" }),
  async: listIssues({ async: false }),
  "the result": listIssues({ result: null }),
  "a parameter's name": listIssues({ params: listIssues().params.map((param) => ({ ...param, name: "arguments" })) }),
  "the width of a number": listIssues({ params: [{ name: "args", type: { kind: "u64" } }] }),
};

for (const [what, fn] of Object.entries(changes)) {
  test(`another digest when ${what} changes`, () => assert.notEqual(definitionDigest(fn), definitionDigest(listIssues())));
}

test("the name of a type does not count, since types are structural", () => {
  const [param] = listIssues().params;
  assert(param?.type.kind === "record");
  const renamed = listIssues({ params: [{ name: "args", type: { ...param.type, name: "arguments" } }] });
  assert.equal(definitionDigest(renamed), definitionDigest(listIssues()));
});

test("the digest does not depend on which types the decoder shares", () => {
  const apart = structuredClone(listIssues());
  const shared: WitType = { kind: "list", element: { kind: "u8" } };
  const twice = (first: WitType, second: WitType) =>
    listIssues({
      params: [
        { name: "a", type: first },
        { name: "b", type: second },
      ],
    });
  assert.equal(definitionDigest(apart), definitionDigest(listIssues()));
  assert.equal(definitionDigest(twice(shared, shared)), definitionDigest(twice(shared, { ...shared })));
});

test("types that share without end when written out are digested and shown in bounds", () => {
  let type: WitType = { kind: "u8" };
  for (let depth = 0; depth < 60; depth++) type = { kind: "tuple", items: [type, type] };
  const fn = listIssues({ params: [{ name: "bomb", type }] });
  assert(definitionText(fn).length < 10_000);
  assert(JSON.stringify(definitionTree(definitionText(fn))).length < 5_000_000);
});

test("the tree shows each type where it is used", () => {
  const tree = definitionTree(v1) as {
    params: readonly { type: { fields: readonly { name: string; type: unknown }[] } }[];
    result: { ok: unknown };
  };
  assert.deepEqual(
    tree.params[0]?.type.fields.map(({ name }) => name),
    ["repo", "state"],
  );
  assert.equal((tree.params[0]?.type.fields[1]?.type as { kind: string } | undefined)?.kind, "enum");
  assert.equal((tree.result.ok as { kind: string }).kind, "list");
});
