import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolGrantSpec } from "../../../src/api/generated/toolgrant.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../../../src/api/json.ts";
import { refusalText } from "../../../src/catalogue/call-end.ts";
import { readCallPolicy } from "../../../src/catalogue/call-policy.ts";
import { speaking } from "./mcp/speaking.ts";
import { liveGrant, objectIn } from "./world.ts";

/** `arguments` and `labels` are JSON text, so that nothing of them is lost on the way. */
interface Asked {
  readonly name?: string;
  readonly arguments?: string;
  readonly labels?: string;
  readonly session?: string;
}

interface Told {
  readonly outcome: JsonValue;
  readonly text: JsonValue;
  readonly label: JsonValue;
  readonly retryAfter: JsonValue;
}

type Served = Awaited<ReturnType<typeof speaking>>;
type Path = (served: Served, asked: Asked) => Promise<Told>;

const good = '{"repo":"a/b"}';
const json = { "content-type": "application/json" };
const member = (value: JsonValue | undefined, key: string): JsonValue => (isJsonObject(value) ? (value[key] ?? null) : null);
const first = (value: JsonValue): JsonValue => (Array.isArray(value) ? (value[0] ?? null) : null);

/** Each way to a tool that there is. */
const paths: Readonly<Record<string, Path>> = {
  HTTP: async (served, { name = "list_issues", arguments: args = good, labels = "null", session = "s" }) => {
    const body = `{"name":${JSON.stringify(name)},"arguments":${args},"labels":${labels},"session":${JSON.stringify(session)}}`;
    const { text, headers } = await served.post("/v1/calls", body, json);
    const answer = objectIn(text);
    return {
      outcome: answer.outcome ?? null,
      text: member(first(answer.content ?? null), "text"),
      label: answer.label ?? null,
      retryAfter: headers["retry-after"] ?? null,
    };
  },
  "provider blocks": async (served, { name = "list_issues", arguments: args = good, labels = "null", session = "s" }) => {
    const block = `{"type":"tool_use","id":"t","name":${JSON.stringify(name)},"input":${args}}`;
    const body = `{"turn":[${block}],"labels":[${labels}],"session":${JSON.stringify(session)}}`;
    const { text, headers } = await served.post("/v1/calls?format=anthropic", body, json);
    const { answer, calls } = objectIn(text);
    const call = first(calls ?? null);
    return {
      outcome: member(call, "outcome"),
      text: member(first(member(answer, "content")), "content"),
      label: member(call, "label"),
      retryAfter: headers["retry-after"] ?? null,
    };
  },
  MCP: async (served, { name = "list_issues", arguments: args = good, labels = "null", session = "s" }) => {
    const meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"dev.ambit/labels":${labels},"dev.ambit/session":${JSON.stringify(session)}}`;
    const params = `{"_meta":${meta},"name":${JSON.stringify(name)},"arguments":${args}}`;
    const { result, error } = await served.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`, {
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": /^[\x21-\x7e]*$/.test(name) ? name : `=?base64?${Buffer.from(name).toString("base64")}?=`,
    });
    const told = result._meta;
    return {
      outcome: error.code === -32602 ? "unknown tool" : member(told, "dev.ambit/outcome"),
      text: error.message ?? member(first(result.content ?? null), "text"),
      label: member(told, "dev.ambit/label"),
      retryAfter: member(told, "dev.ambit/retry-after") === null ? null : String(member(told, "dev.ambit/retry-after")),
    };
  },
};

const triage = { kind: "ServiceAccount", name: "triage", namespace: "agents" };
const labeler = { labelers: [triage] };
const trusted = '{"/repo":{"trusted":true,"sources":["task:ticket"]}}';
const ofTicket = '{"/repo":{"sources":["task:ticket"]}}';
const sensitivity = (text: string) => `{"/repo":{"sensitivity":"${text}"}}`;
const times = (count: number, asked: Asked = {}): Asked[] =>
  Array.from({ length: count }, (_, index) => ({ ...asked, session: `s${index}` }));

interface Case {
  readonly spec?: Partial<Omit<ToolGrantSpec, "declaration">>;
  readonly policy?: object;
  /** The last of these is admitted, … */
  readonly within: readonly Asked[];
  /** … and the last of these is refused by `gate` with `code`; it differs from the former in nothing but what the gate is about. */
  readonly past: readonly Asked[];
  readonly gate: string;
  readonly code: string;
  readonly kind?: "validation" | "rate";
}

/** In the order of the gates. The canonical arguments have 14 bytes. */
const cases: Readonly<Record<string, Case>> = {
  "a name byte for byte": { within: [{}], past: [{ name: "list_issues " }], gate: "match", code: "NotOffered" },
  "the largest number of the type": {
    within: [{ arguments: '{"repo":"a/b","number":18446744073709551615}' }],
    past: [{ arguments: '{"repo":"a/b","number":18446744073709551616}' }],
    gate: "schema",
    code: "ArgumentInvalid",
    kind: "validation",
  },
  "a label no better than none": {
    within: [{ labels: sensitivity("Internal") }],
    past: [{ labels: sensitivity("Public") }],
    gate: "labels",
    code: "LabelNotPermitted",
  },
  "a source, of who may name sources": {
    spec: { fields: [{ path: "/repo", allowedSources: ["task:ticket"] }] },
    policy: labeler,
    within: [{ labels: ofTicket }],
    past: [{ labels: '{"/repo":{"sources":["task:ticket","tool:agents/mail"]}}' }],
    gate: "provenance",
    code: "FieldSource",
  },
  "the same bytes from a source that is trusted": {
    spec: { mutates: true, fields: [{ path: "/repo", requireTrusted: true }] },
    policy: labeler,
    within: [{ labels: trusted }],
    past: [{ labels: ofTicket }],
    gate: "provenance",
    code: "FieldUntrusted",
  },
  "a tool that changes things and has no rules, with trusted arguments": {
    spec: { mutates: true },
    policy: labeler,
    within: [{ labels: trusted }],
    past: [{}],
    gate: "provenance",
    code: "UntrustedArgument",
  },
  "the grant's ceiling": {
    spec: { egressCeiling: "Confidential" },
    within: [{ labels: sensitivity("Confidential") }],
    past: [{ labels: sensitivity("Secret") }],
    gate: "egress-ceiling",
    code: "TooSensitive",
  },
  "the caller's ceiling": {
    spec: { egressCeiling: "Secret" },
    policy: { ceilings: [{ subject: triage, ceiling: "Internal" }] },
    within: [{}],
    past: [{ labels: sensitivity("Confidential") }],
    gate: "egress-ceiling",
    code: "TooSensitive",
  },
  "as many refusals as may be": {
    policy: { denials: { count: 3, window: "10m" } },
    within: [...times(2, { labels: sensitivity("Secret") }), {}],
    past: [...times(3, { labels: sensitivity("Secret") }), {}],
    gate: "denials",
    code: "TooManyDenials",
  },
  "bytes up to the budget": {
    spec: { maxEgressBytes: { bytes: "28", window: "1h" } },
    within: times(2),
    past: [{}, { arguments: '{"repo":"a/bc"}', session: "another" }],
    gate: "egress-budget",
    code: "EgressBudgetSpent",
  },
  "calls up to the rate, whatever the session": {
    spec: { rateLimit: { count: 2, window: "1m" } },
    within: times(2),
    past: times(3),
    gate: "rate",
    code: "RateExceeded",
    kind: "rate",
  },
};

for (const [path, ask] of Object.entries(paths)) {
  const last = async (served: Served, asked: readonly Asked[]): Promise<Told> => {
    let told: Told | undefined;
    for (const one of asked) told = await ask(served, one);
    assert.ok(told);
    return told;
  };

  for (const [what, { spec = {}, policy = {}, within, past, gate, code, kind }] of Object.entries(cases)) {
    test(`${path}: ${what}, and no more`, async () => {
      const world = async () => {
        const served = await speaking({}, { policy: readCallPolicy(policy) });
        served.state.apply([{ kind: "grant", grant: liveGrant("github-list-issues", spec) }]);
        return served;
      };
      await using first = await world();
      assert.equal((await last(first, within)).outcome, "ok");
      assert.equal(first.journal.at(-1)?.gate, null);
      await using second = await world();
      for (const one of past.slice(0, -1)) await ask(second, one);
      const sentBefore = second.sent.length;
      const told = await last(second, past.slice(-1));
      assert.deepEqual([second.journal.at(-1)?.gate, second.journal.at(-1)?.code], [gate, code]);
      assert.equal(second.sent.length, sentBefore, "nothing of it reached a host");
      assert.equal(told.label, null);
      if (kind === "validation") {
        assert.equal(told.outcome, "failed");
        assert.match(String(told.text), /\/number/);
      } else if (kind === "rate") {
        assert.equal(told.outcome, "refused");
        assert.match(String(told.text), /again in 61 s/);
        assert.equal(told.retryAfter, "61");
      } else if (path === "MCP" && gate === "match") {
        assert.deepEqual([told.outcome, told.text], ["unknown tool", "Unknown tool"]);
      } else {
        assert.deepEqual([told.outcome, told.text], ["refused", refusalText]);
        assert.equal(told.retryAfter, null);
      }
    });
  }

  test(`${path}: a name that is nearly one is that of no tool, and told alike`, async () => {
    await using served = await speaking();
    const names = [
      "list_issues ",
      "List_issues",
      "list-issues",
      "list_issue",
      "list_issues\u200b",
      "constructor",
      "__proto__",
      "toString",
      "",
    ];
    const told = [];
    for (const name of names) told.push(await ask(served, { name }));
    for (const one of told) assert.deepEqual(one, told[0]);
    assert.notEqual(told[0]?.outcome, "ok");
    assert.equal(served.sent.length, 0);
    assert.deepEqual(
      served.journal.map(({ gate, tool }) => [gate, tool]),
      names.map(() => ["match", null]),
    );
  });

  test(`${path}: what went through a second tool still comes from the first`, async () => {
    await using served = await speaking({}, { policy: readCallPolicy(labeler) });
    const sources = ["tool:agents/mail", "tool:agents/translate"];
    const sending = (name: string, allowedSources: string[]) =>
      liveGrant(name, { declaration: { name }, mutates: true, fields: [{ path: "/repo", allowedSources }] });
    served.state.apply([
      { kind: "grant", grant: liveGrant("mail", { declaration: { name: "mail" }, outputSensitivity: "Confidential" }) },
      {
        kind: "grant",
        grant: liveGrant("translate", { declaration: { name: "translate" }, egressCeiling: "Secret", outputSensitivity: "Public" }),
      },
      { kind: "grant", grant: { ...sending("send", ["tool:agents/translate"]) } },
      { kind: "grant", grant: { ...sending("send_any", sources) } },
    ]);
    const read = await ask(served, { name: "mail" });
    assert.deepEqual({ ...(read.label as JsonObject) }, { sources: ["tool:agents/mail"], trusted: false, sensitivity: "Confidential" });
    const translated = await ask(served, { name: "translate", labels: JSON.stringify({ "/repo": read.label }) });
    assert.deepEqual({ ...(translated.label as JsonObject) }, { sources, trusted: false, sensitivity: "Confidential" });
    assert.deepEqual(parseJson(JSON.stringify(served.journal.at(-1)?.resultLabel)), translated.label);

    const onward = JSON.stringify({ "/repo": translated.label });
    assert.equal((await ask(served, { name: "send", labels: onward })).outcome, "refused");
    assert.equal(served.journal.at(-1)?.code, "FieldSource");
    const quieter = JSON.stringify({ "/repo": { ...(translated.label as JsonObject), sensitivity: "Internal" } });
    assert.equal((await ask(served, { name: "send_any", labels: quieter })).outcome, "ok");
    assert.equal((await ask(served, { name: "send_any", labels: onward })).outcome, "refused");
    assert.equal(served.journal.at(-1)?.code, "TooSensitive");
  });

  test(`${path}: counters that can't be asked admit nothing, and say so`, async () => {
    const counters = { take: () => Promise.reject(new Error("no route to the store")), giveBack: () => undefined, close: () => undefined };
    await using served = await speaking({ counters });
    const told = await ask(served, {});
    assert.equal(told.outcome, "failed");
    assert.match(String(told.text), /not run/);
    assert.deepEqual([served.journal[0]?.gate, served.sent.length, served.faults.length], ["rate", 0, 1]);
  });
}
