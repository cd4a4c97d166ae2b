import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sha256Digest } from "../../../../src/api/digest.ts";
import type { ToolGrant } from "../../../../src/api/generated/toolgrant.ts";
import { approve } from "../../../../src/grants/approve.ts";
import type { ObservedCode } from "../../../../src/grants/judge.ts";
import type { ClusterToolGrant } from "../../../../src/operator/kinds.ts";
import { decideGrant, type SeenGrant } from "../../../../src/operator/toolgrant/decide.ts";
import { code, grantOf, listIssues, otherCode, reach } from "../../grants/issues-tool.ts";

const approved = (changes: Partial<ToolGrant["spec"]> = {}, component: readonly Sha256Digest[] = [code]): ClusterToolGrant =>
  approve({ grant: grantOf(changes), fn: listIssues(), reach, component, now: new Date(0) }) as ClusterToolGrant;

const serving = (digest: Sha256Digest, changes: Partial<ObservedCode> = {}): ObservedCode => ({
  digest,
  reach,
  fn: listIssues(),
  ...changes,
});

const seen = (grant: ClusterToolGrant, codes: readonly ObservedCode[], changes: Partial<SeenGrant> = {}): SeenGrant => ({
  grant,
  farSide: { observed: { codes }, images: new Map(codes.map(({ digest }) => [digest, `registry.test/${digest}`])) },
  running: new Set(codes.map(({ digest }) => digest)),
  rivals: [grant],
  acceptances: new Map(),
  ...changes,
});

const absent = (reason: string, passing: boolean): SeenGrant["farSide"] => {
  const found = { code: reason, message: `${reason} is so` };
  return { observed: { codes: [], absent: found }, images: new Map(), ...(passing ? { passing: { ...found, retryAfterMs: 1 } } : {}) };
};

const elsewhere = { subjects: [{ kind: "ServiceAccount", name: "triage", namespace: "elsewhere" }] } as const;
const abroad = approved(elsewhere);

const cases: Record<
  string,
  { seen: SeenGrant; phase: string; ready: [status: string, reason: string]; stalled: string; components: readonly string[] }
> = {
  "a draft waits for a person": {
    seen: seen(grantOf() as ClusterToolGrant, [serving(code)]),
    phase: "Draft",
    ready: ["False", "NoReview"],
    stalled: "True",
    components: [],
  },
  "an approved grant whose code runs is ready": {
    seen: seen(approved(), [serving(code)]),
    phase: "Active",
    ready: ["True", "Active"],
    stalled: "False",
    components: [code],
  },
  "an approved grant whose code no ready pod runs is live and not ready": {
    seen: seen(approved(), [serving(code)], { running: new Set([otherCode]) }),
    phase: "Active",
    ready: ["False", "NoReadyHost"],
    stalled: "False",
    components: [code],
  },
  "a live grant whose MCP server has no ready pod waits for one": {
    seen: seen(approved(), [serving(code)], { silentServer: "issues-mcp" }),
    phase: "Active",
    ready: ["False", "NoReadyHost"],
    stalled: "False",
    components: [code],
  },
  "new code that was not reviewed is not approved beside the old": {
    seen: seen(approved(), [serving(otherCode), serving(code)]),
    phase: "Active",
    ready: ["True", "Active"],
    stalled: "False",
    components: [code],
  },
  "new code that was reviewed beforehand is approved beside the old": {
    seen: seen(approved({}, [code, otherCode]), [serving(otherCode), serving(code)]),
    phase: "Active",
    ready: ["True", "Active"],
    stalled: "False",
    components: [otherCode, code],
  },
  "a function that is gone stalls": {
    seen: seen(approved(), [serving(code, { fn: null, notOffered: "the workload excludes it" })]),
    phase: "Drifted",
    ready: ["False", "FunctionNotOffered"],
    stalled: "True",
    components: [],
  },
  "a registry that does not answer may pass": {
    seen: seen(approved(), [], { farSide: absent("RegistryUnreachable", true) }),
    phase: "Withheld",
    ready: ["False", "RegistryUnreachable"],
    stalled: "False",
    components: [],
  },
  "a Workload that is not there needs a person": {
    seen: seen(approved(), [], { farSide: absent("WorkloadMissing", false) }),
    phase: "Withheld",
    ready: ["False", "WorkloadMissing"],
    stalled: "True",
    components: [],
  },
  "a grant for another namespace alone, which has not accepted it, is withheld": {
    seen: seen(abroad, [serving(code)]),
    phase: "Withheld",
    ready: ["False", "NotAccepted"],
    stalled: "True",
    components: [],
  },
  "the same grant is offered once the namespace accepts it": {
    seen: seen(abroad, [serving(code)], { acceptances: new Map([["elsewhere", "agents"]]) }),
    phase: "Active",
    ready: ["True", "Active"],
    stalled: "False",
    components: [code],
  },
  "a schema that can't be checked makes it invalid": {
    seen: seen(approved({ declaration: { name: "n", description: "d", parameters: { type: "object", $ref: "https://example.com/s" } } }), [
      serving(code),
    ]),
    phase: "Invalid",
    ready: ["False", "SchemaUnusable"],
    stalled: "True",
    components: [],
  },
};

for (const [sentence, { seen: given, phase, ready, stalled, components }] of Object.entries(cases)) {
  test(sentence, () => {
    const verdict = decideGrant(given);
    const condition = (type: string) => verdict.conditions.find((one) => one.type === type);
    assert.equal(verdict.phase, phase);
    assert.deepEqual([condition("Ready")?.status, condition("Ready")?.reason], ready);
    assert.equal(condition("Stalled")?.status, stalled);
    assert.deepEqual(verdict.status.components, components);
  });
}

test("a grant that one namespace takes and another doesn't is offered, and says who has not accepted it", () => {
  const grant = approved({ subjects: [...elsewhere.subjects, { kind: "ServiceAccount", name: "triage", namespace: "agents" }] });
  const { phase, conditions } = decideGrant(seen(grant, [serving(code)]));
  assert.equal(phase, "Active");
  const offered = conditions.find(({ type }) => type === "Offered");
  assert.deepEqual([offered?.status, offered?.reason], ["False", "NotAccepted"]);
  assert.match(offered?.message ?? "", /namespace elsewhere does not accept grants from agents/);
});

test("what is observed goes together: the definition, the code that has it, where that is and what it may touch", () => {
  const wider = { ...reach, hosts: ["api.github.com", "example.com"] };
  const { status } = decideGrant(seen(approved(), [serving(otherCode, { reach: wider }), serving(code)]));
  assert.equal(status.observed?.component, code);
  assert.equal(status.observed?.image, `registry.test/${code}`);
  assert.deepEqual(status.observed?.reach, reach);
});

test("a definition that is too long for a status withholds the tool, since the catalogue could not read it", () => {
  const fn = listIssues({ docs: "x".repeat(140_000) });
  const grant = approve({ grant: grantOf(), fn, reach, component: [code], now: new Date(0) }) as ClusterToolGrant;
  const { phase, reasons, status } = decideGrant(seen(grant, [serving(code, { fn })]));
  assert.equal(phase, "Withheld");
  assert.equal(reasons[0]?.code, "DefinitionTooLong");
  assert.equal(status.observed?.text, undefined);
});

test("providers that would refuse the declaration and characters that hide are named", () => {
  const parameters = { type: "object", anyOf: [{}], properties: { "a b": {} } };
  const grant = grantOf({ declaration: { name: "", description: "List\u200b it.", parameters } }) as ClusterToolGrant;
  const { status } = decideGrant(seen(grant, [serving(code)]));
  assert.deepEqual(
    status.leftOut?.map(({ provider, where }) => [provider, where]),
    [
      ["anthropic", "/parameters/anyOf"],
      ["openai-chat", "/parameters/anyOf"],
      ["openai-responses", "/parameters/anyOf"],
      ["gemini", "/parameters/properties/a b"],
      ["bedrock", "/parameters/anyOf"],
    ],
  );
  assert.deepEqual(status.hiddenCharacters, [{ path: "/description", codePoint: "U+200B", name: "ZERO WIDTH SPACE" }]);
});
