import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256Of } from "../../../src/api/digest.ts";
import type { ToolGrantSpec } from "../../../src/api/generated/toolgrant.ts";
import { type ApproveOptions, approve } from "../../../src/grants/approve.ts";
import { draftGrant, draftObjectName } from "../../../src/grants/draft.ts";
import { grantDigest } from "../../../src/grants/grant-digest.ts";
import { code, grantOf, listIssues, otherCode, reach } from "./issues-tool.ts";

const now = new Date("2026-01-31T12:00:00.123Z");
const attempt = (changes: Partial<ToolGrantSpec>, options: Partial<ApproveOptions> = {}) =>
  approve({ grant: grantOf(changes), fn: listIssues(), reach, component: [code], reviewer: "ada", now, ...options });

const { declaration } = grantOf().spec;

const refusals: Record<string, { changes: Partial<ToolGrantSpec>; options?: Partial<ApproveOptions>; code: string }> = {
  "nobody may call it": { changes: { subjects: [] }, code: "NoSubjects" },
  "it has no description": { changes: { declaration: { ...declaration, description: " \n" } }, code: "NoDescription" },
  "it has no name": { changes: { declaration: { ...declaration, name: "" } }, code: "NameUnusable" },
  "its name is one that providers refuse": { changes: { declaration: { ...declaration, name: "list issues" } }, code: "NameUnusable" },
  "the component does not offer the function": { changes: {}, options: { fn: null }, code: "NotOffered" },
  "it mutates and takes untrusted arguments without a rule": { changes: { mutates: true }, code: "NeverCallable" },
  "nothing that a model writes is public": { changes: { egressCeiling: "Public" }, code: "NeverCallable" },
  "a rule wants trust that no caller without labels has": {
    changes: { fields: [{ path: "/repo", requireTrusted: true }] },
    code: "NeverCallable",
  },
  "a rule wants a source": { changes: { fields: [{ path: "/repo", allowedSources: ["task"] }] }, code: "NeverCallable" },
  "a rule wants less sensitivity": {
    changes: { fields: [{ path: "/repo", oneOf: ["a/b"], maxSensitivity: "Public" }] },
    code: "NeverCallable",
  },
  "no call fits into its budget": { changes: { maxEgressBytes: { bytes: "9", window: "1h" } }, code: "NeverCallable" },
  "the description hides a character": {
    changes: { declaration: { ...declaration, description: "List\u200b issues" } },
    code: "HiddenCharacters",
  },
  "a schema hides a character": {
    changes: { declaration: { ...declaration, parameters: { type: "object", properties: { a: { description: "\u{e0041}" } } } } },
    code: "HiddenCharacters",
  },
  "another character is allowed than the one that hides": {
    changes: { declaration: { ...declaration, description: "List\u200b issues" } },
    options: { allowHidden: ["U+200C"] },
    code: "HiddenCharacters",
  },
  "no digest is listed": { changes: {}, options: { component: [] }, code: "TooManyDigests" },
  "three digests are listed": { changes: {}, options: { component: [code, otherCode, sha256Of("a third")] }, code: "TooManyDigests" },
};

for (const [sentence, { changes, options, code: expected }] of Object.entries(refusals)) {
  test(`approval is refused when ${sentence}`, () => assert.throws(() => attempt(changes, options), { code: expected }));
}

const approvals: Record<string, { changes: Partial<ToolGrantSpec>; options?: Partial<ApproveOptions> }> = {
  "it only reads": { changes: {} },
  "its budget has room for the smallest call": { changes: { maxEgressBytes: { bytes: "10", window: "1h" } } },
  "it mutates and a value is one of a list": { changes: { mutates: true, fields: [{ path: "/repo", oneOf: ["a/b"] }] } },
  "it mutates and takes untrusted arguments in the open": { changes: { mutates: true, fields: [{ path: "", acceptUntrusted: true }] } },
  "it mutates and needs no argument": { changes: { mutates: true, declaration: { ...declaration, parameters: { type: "object" } } } },
  "the reviewer spells out the hidden character": {
    changes: { declaration: { ...declaration, description: "List\u200b issues" } },
    options: { allowHidden: ["U+200B"] },
  },
};

for (const [sentence, { changes, options }] of Object.entries(approvals)) {
  test(`approval is given when ${sentence}`, () => assert(attempt(changes, options).spec.review));
}

test("a review has the digests, the reach, the code and who, when and why; the draft label goes", () => {
  const grant = { ...grantOf(), metadata: { ...grantOf().metadata, labels: { "ambit.dev/draft": "true", team: "a" } } };
  const approved = approve({ grant, fn: listIssues(), reach, component: [otherCode, code, code], reviewer: "ada", note: "ok", now });
  const { definition, ...review } = approved.spec.review ?? assert.fail();
  assert.match(definition, /^v1:sha256:[0-9a-f]{64}$/);
  assert.deepEqual(review, {
    grant: grantDigest(grant.spec),
    reach,
    component: [code, otherCode].sort(),
    reviewer: "ada",
    time: "2026-01-31T12:00:00Z",
    note: "ok",
  });
  assert.deepEqual(approved.metadata.labels, { team: "a" });
  assert.equal(grantDigest(approved.spec), grantDigest(grant.spec), "the review does not count in the grant's digest");
});

test("a draft copies the words, takes the narrowest rights, names nobody, and is the same each time", () => {
  const make = () =>
    draftGrant({ namespace: "agents", workload: "github", source: { name: "github" }, fn: listIssues(), name: "list_issues" });
  const draft = make();
  assert.deepEqual(draft, make());
  assert.equal(draft.spec.declaration.description, "List the issues in a repository.");
  assert.equal(draft.spec.mutates, true);
  assert.equal(draft.spec.subjects, undefined);
  assert.equal(draft.spec.review, undefined);
  assert.deepEqual(draft.spec.declaration.parameters.required, ["repo", "state"]);
  assert.match(draft.metadata.name, /^github-list-issues-[0-9a-f]{8}$/);
});

test("functions that differ only in case or interface get different object names, all valid", () => {
  const identity = { workload: "w", component: "c", interface: null, function: "foo" };
  const names = [
    identity,
    { ...identity, function: "Foo" },
    { ...identity, interface: "a:b/c" },
    { ...identity, component: "d" },
    { ...identity, function: "-".repeat(300) },
  ].map(draftObjectName);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/);
});
