import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldRule } from "../../../src/api/generated/toolgrant.ts";
import { type JsonObject, parseJson } from "../../../src/api/json.ts";
import { type ArgumentViolation, type GatedGrant, gates, judgeCall, matchOffer } from "../../../src/grants/gates.ts";
import { type Label, type Labels, noLabels, type Sensitivity } from "../../../src/grants/labels.ts";

interface Case {
  readonly args: string;
  readonly spec?: Partial<Omit<GatedGrant["spec"], "declaration">>;
  readonly labels?: Record<string, Label>;
  readonly callerCeiling?: Sensitivity;
  readonly violation?: ArgumentViolation;
  /** The code of the refusal; null where the call is admitted. */
  readonly code: string | null;
}

const trusted: Label = { sources: ["task:ticket"], trusted: true, sensitivity: "Internal" };
const fromTool: Label = { sources: ["tool:mail"], trusted: false, sensitivity: "Internal" };
const rules = (...fields: FieldRule[]) => ({ fields });

const cases: Record<string, Case> = {
  "a tool that only reads takes what a model wrote": { args: '{"a":1}', spec: { mutates: false }, code: null },
  "a tool that mutates takes no untrusted argument": { args: '{"a":1}', code: "UntrustedArgument" },
  "a tool that mutates takes a call without arguments": { args: "{}", code: null },
  "a tool that mutates takes trusted arguments": { args: '{"a":1}', labels: { "": trusted }, code: null },
  "one untrusted leaf is enough": { args: '{"a":1,"b":[{"c":2}]}', labels: { "": trusted, "/b/0/c": fromTool }, code: "UntrustedArgument" },
  "the nearest ancestor's label counts": { args: '{"b":{"c":2}}', labels: { "": fromTool, "/b": trusted }, code: null },
  "an empty list is a leaf": { args: '{"b":[]}', labels: { "": trusted, "/b": fromTool }, code: "UntrustedArgument" },
  "a trusted label beside the value does not count": { args: '{"a":1}', labels: { "/b": trusted }, code: "UntrustedArgument" },

  "a value of the list is admitted": { args: '{"repo":"a/b"}', spec: rules({ path: "/repo", oneOf: ["a/b", 1] }), code: null },
  "a value beside the list is refused": { args: '{"repo":"a/c"}', spec: rules({ path: "/repo", oneOf: ["a/b"] }), code: "FieldValue" },
  "no trimming and no case folding": { args: '{"repo":"A/b "}', spec: rules({ path: "/repo", oneOf: ["a/b"] }), code: "FieldValue" },
  "a number is not its text": { args: '{"n":"1"}', spec: rules({ path: "/n", oneOf: [1] }), code: "FieldValue" },
  "numbers are equal by value": { args: '{"n":1.0}', spec: rules({ path: "/n", oneOf: [1] }), code: null },
  "large integers are compared exactly": {
    args: '{"n":9007199254740993}',
    spec: rules({ path: "/n", oneOf: [9007199254740992n] }),
    code: "FieldValue",
  },
  "objects are equal whatever the order of keys": {
    args: '{"o":{"b":1,"a":2}}',
    spec: rules({ path: "/o", oneOf: [{ a: 2, b: 1 }] }),
    code: null,
  },
  "a value that is not there is refused": { args: "{}", spec: rules({ path: "/repo", oneOf: ["a/b"] }), code: "FieldMissing" },
  "a prototype's property is not there": { args: "{}", spec: rules({ path: "/constructor", acceptUntrusted: true }), code: "FieldMissing" },
  "a list position has no leading zero": {
    args: '{"l":[1,2]}',
    spec: rules({ path: "/l/01", acceptUntrusted: true }),
    code: "FieldMissing",
  },
  "escapes in a pointer are read": { args: '{"a/b":{"~":1}}', spec: rules({ path: "/a~1b/~0", oneOf: [1] }), code: null },
  "acceptUntrusted takes what a model wrote": { args: '{"a":1}', spec: rules({ path: "", acceptUntrusted: true }), code: null },
  "requireTrusted refuses what a model wrote": {
    args: '{"a":1}',
    spec: rules({ path: "/a", requireTrusted: true }),
    code: "FieldUntrusted",
  },
  "requireTrusted refuses a part that is untrusted": {
    args: '{"a":{"b":1,"c":2}}',
    spec: rules({ path: "/a", requireTrusted: true }),
    labels: { "/a": trusted, "/a/c": fromTool },
    code: "FieldUntrusted",
  },
  "requireTrusted takes a trusted value": {
    args: '{"a":1}',
    spec: rules({ path: "/a", requireTrusted: true }),
    labels: { "/a": trusted },
    code: null,
  },
  "the same bytes from elsewhere are another value": {
    args: '{"a":1}',
    spec: rules({ path: "/a", requireTrusted: true }),
    labels: { "/a": fromTool },
    code: "FieldUntrusted",
  },
  "allowedSources refuses a value without a source": {
    args: '{"a":1}',
    spec: rules({ path: "/a", allowedSources: ["task:ticket"] }),
    code: "FieldSource",
  },
  "allowedSources refuses one source that is not listed": {
    args: '{"a":1}',
    spec: rules({ path: "/a", allowedSources: ["task:ticket"] }),
    labels: { "/a": { ...trusted, sources: ["task:ticket", "tool:mail"] } },
    code: "FieldSource",
  },
  "allowedSources takes listed sources": {
    args: '{"a":1}',
    spec: rules({ path: "/a", allowedSources: ["tool:mail"] }),
    labels: { "/a": fromTool },
    code: null,
  },
  "a field's own ceiling holds": {
    args: '{"a":1}',
    spec: rules({ path: "/a", acceptUntrusted: true, maxSensitivity: "Public" }),
    code: "FieldSensitivity",
  },
  "every rule must hold": {
    args: '{"a":1,"b":2}',
    spec: rules({ path: "/a", acceptUntrusted: true }, { path: "/b", oneOf: [1] }),
    code: "FieldValue",
  },
  "a rule that requires nothing refuses": {
    args: '{"a":1}',
    spec: rules({ path: "/a", maxSensitivity: "Secret" }),
    code: "FieldRuleEmpty",
  },

  "what a model wrote is Internal and passes an Internal ceiling": {
    args: '{"a":1}',
    spec: { mutates: false, egressCeiling: "Internal" },
    code: null,
  },
  "and not a Public one": { args: '{"a":1}', spec: { mutates: false, egressCeiling: "Public" }, code: "TooSensitive" },
  "the default ceiling is Internal": {
    args: '{"a":1}',
    spec: { mutates: false },
    labels: { "/a": { ...fromTool, sensitivity: "Confidential" } },
    code: "TooSensitive",
  },
  "a Secret leaf passes a Secret ceiling": {
    args: '{"a":1}',
    spec: { mutates: false, egressCeiling: "Secret" },
    labels: { "/a": { ...fromTool, sensitivity: "Secret" } },
    code: null,
  },
  "the caller's lower ceiling counts": {
    args: '{"a":1}',
    spec: { mutates: false, egressCeiling: "Secret" },
    callerCeiling: "Public",
    code: "TooSensitive",
  },
  "a sensitivity that is unknown passes nothing": {
    args: '{"a":1}',
    spec: { mutates: false, egressCeiling: "Secret" },
    labels: { "/a": { ...fromTool, sensitivity: "Cosmic" as Sensitivity } },
    code: "TooSensitive",
  },
  "the schema is judged first": { args: '{"a":1}', violation: { at: "/a", message: "must be a string" }, code: "ArgumentInvalid" },
};

for (const [sentence, { args, spec = {}, labels, callerCeiling, violation = null, code }] of Object.entries(cases)) {
  test(`gates: ${sentence}`, () => {
    const given: Labels = labels ? new Map(Object.entries(labels)) : noLabels;
    const call = { name: "t", arguments: parseJson(args) as JsonObject, labels: given, ...(callerCeiling ? { callerCeiling } : {}) };
    const verdict = judgeCall(call, { spec: { declaration: { name: "t" }, ...spec }, check: () => violation });
    assert.equal(verdict.admitted ? null : verdict.code, code);
    if (!verdict.admitted) assert.equal(verdict.kind, code === "ArgumentInvalid" ? "validation" : "policy");
  });
}

test("a name matches byte for byte or is refused, and near misses are refused alike", () => {
  const offered = new Map([["list_issues", 1]]);
  assert.deepEqual(matchOffer("list_issues", offered), { grant: 1 });
  const refusals = ["List_issues", "list_issues ", "list-issues", "list_issue", "", "constructor", "__proto__", "list_issues\u200b"].map(
    (name) => matchOffer(name, offered),
  );
  for (const refusal of refusals) assert.deepEqual(refusal, refusals[0]);
  assert.equal(refusals[0]?.grant, null);
});

test("a gate that is added is asked in its place, and is not asked after a refusal", () => {
  const asked: string[] = [];
  const counting = (name: string, code: string | null) => () => {
    asked.push(name);
    return code === null ? ({ admitted: true } as const) : ({ admitted: false, gate: "rate", kind: "policy", code, reason: "" } as const);
  };
  const call = { name: "t", arguments: {}, labels: noLabels };
  const grant: GatedGrant = { spec: { declaration: { name: "t" } }, check: () => null };
  judgeCall(call, grant, [...gates, counting("one", null), counting("two", "No"), counting("three", null)]);
  assert.deepEqual(asked, ["one", "two"]);
});
