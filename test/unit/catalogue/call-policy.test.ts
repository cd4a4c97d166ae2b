import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultCallPolicy, readCallPolicy } from "../../../src/catalogue/call-policy.ts";
import { serviceAccountCaller } from "../../../src/catalogue/caller.ts";

const planner = serviceAccountCaller("agents", "planner");
const triage = serviceAccountCaller("agents", "triage");
const subject = { kind: "ServiceAccount", name: "planner", namespace: "agents" };

test("an installation that decided nothing trusts nobody's labels and limits refusals", () => {
  assert.equal(defaultCallPolicy.isLabeler(planner), false);
  assert.equal(defaultCallPolicy.explainsTo(planner), false);
  assert.equal(defaultCallPolicy.ceilingOf(planner), "Secret");
  assert.deepEqual(defaultCallPolicy.denials, { max: 30, perSession: null, windowMs: 600_000 });
});

test("labelers and those who are told why are whom the file names, and no others", () => {
  const policy = readCallPolicy({ labelers: [subject], explainsTo: [{ kind: "User", name: "ada" }] });
  assert.deepEqual([planner, triage].map(policy.isLabeler), [true, false]);
  assert.deepEqual([{ user: "ada", groups: [], namespace: null }, planner].map(policy.explainsTo), [true, false]);
});

test("of several ceilings that name a caller the lowest counts", () => {
  const ceilings = [
    { subject: { kind: "Group", name: "system:serviceaccounts:agents" }, ceiling: "Confidential" },
    { subject, ceiling: "Public" },
  ];
  const { ceilingOf } = readCallPolicy({ ceilings });
  assert.deepEqual([planner, triage].map(ceilingOf), ["Public", "Confidential"]);
});

test("denials can be counted otherwise, or not at all", () => {
  const denials = { count: 3, perSession: 2, window: "1h" };
  assert.deepEqual(readCallPolicy({ denials }).denials, { max: 3, perSession: 2, windowMs: 3_600_000 });
  assert.equal(readCallPolicy({ denials: null }).denials, null);
});

const faults: Record<string, { readonly written: unknown; readonly code?: string; readonly at?: string }> = {
  "no object": { written: [] },
  "a misspelt setting": { written: { labelrs: [] } },
  "a ceiling that is none": { written: { ceilings: [{ subject, ceiling: "internal" }] }, at: "/ceilings/0/ceiling" },
  "a ServiceAccount without its namespace": { written: { labelers: [{ kind: "ServiceAccount", name: "planner" }] }, at: "/labelers/0" },
  "a Group with a namespace": { written: { explainsTo: [{ kind: "Group", name: "g", namespace: "n" }] }, at: "/explainsTo/0" },
  "no refusal at all": { written: { denials: { count: 0, window: "1m" } }, at: "/denials/count" },
  "a window that is none": { written: { denials: { count: 1, window: "1 minute" } }, code: "WindowInvalid" },
};
for (const [what, { written, code = "CallPolicyInvalid", at }] of Object.entries(faults)) {
  test(`a policy is not taken with ${what}`, () => assert.throws(() => readCallPolicy(written), { code, ...(at !== undefined && { at }) }));
}
