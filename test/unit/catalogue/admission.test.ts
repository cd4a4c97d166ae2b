import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { sha256Of } from "../../../src/api/digest.ts";
import { Invalid } from "../../../src/api/errors.ts";
import type { ToolGrantSpec } from "../../../src/api/generated/toolgrant.ts";
import { parseJson } from "../../../src/api/json.ts";
import { Admission, type CallRequest } from "../../../src/catalogue/admission.ts";
import { Allowances } from "../../../src/catalogue/allowance.ts";
import { refusalText } from "../../../src/catalogue/call-end.ts";
import { ProcessCounters } from "../../../src/catalogue/counters.ts";
import type { Dispatched } from "../../../src/catalogue/dispatch.ts";
import type { JournalEntry } from "../../../src/catalogue/journal.ts";
import { callJudge } from "../../../src/catalogue/judge.ts";
import { OfferBook } from "../../../src/catalogue/offers.ts";
import { CatalogueState, type Endpoint } from "../../../src/catalogue/state.ts";
import { verifyTicket } from "../../../src/tickets/ticket.ts";
import { code, endpoint, githubComponent, liveGrant, okReply, otherCode, scriptedHost, signingKeys, stats, triage } from "./world.ts";

const now = Date.parse("2026-11-30T12:00:00Z");
const keys = signingKeys();

const scene = (answers: readonly Dispatched[], endpoints: readonly Endpoint[] = [endpoint()], change: Partial<ToolGrantSpec> = {}) => {
  const state = new CatalogueState();
  const grant = liveGrant("github-list-issues", change);
  state.apply([
    { kind: "grant", grant },
    { kind: "endpoints", of: githubComponent, endpoints },
  ]);
  const host = scriptedHost(...answers);
  const journal: JournalEntry[] = [];
  const admission = new Admission({
    state,
    judge: callJudge(),
    allowances: new Allowances(new ProcessCounters(() => 0), null),
    signer: () => keys,
    dispatch: host.dispatch,
    journal: (entry) => journal.push(entry),
    now: () => now,
    monotonic: () => 0,
    random: (bytes) => randomBytes(bytes),
    report: (fault) => assert.fail(String(fault)),
  });
  const offers = new OfferBook(state);
  const call = (args: string, more: Partial<CallRequest> = {}) =>
    admission.call(triage, offers.offersFor(triage), {
      name: "list_issues",
      arguments: asModelWrote(args),
      labels: undefined,
      session: null,
      ...more,
    });
  return { call, journal, sent: host.sent, grant, state };
};

/** As `provider-calls.ts` reads a model's text. */
const asModelWrote = (text: string): CallRequest["arguments"] => {
  try {
    return parseJson(text);
  } catch (thrown) {
    if (thrown instanceof Invalid) return thrown;
    throw thrown;
  }
};

const good = '{"repo": "octo/app"}';
const replied = (reply = okReply()): Dispatched => ({ kind: "replied", reply });
const hostRefused: Dispatched = {
  kind: "refused",
  refusal: { refused: true, code: "TicketMisdirected", message: "the ticket is for another boot" },
};

test("what runs is the canonical form of what was judged, under a ticket for exactly those bytes and one process", async () => {
  const { call, sent, grant } = scene([replied()]);
  const answer = await call('{ "number": 18446744073709551615, "repo": "octo/app" }');
  assert.equal(answer.outcome, "ok");
  const [first] = sent;
  assert.ok(first);
  assert.equal(first.body, '{"number":18446744073709551615,"repo":"octo/app"}');
  const verified = verifyTicket(
    first.ticket,
    new Map([[keys.kid, { key: keys.publicKey, notAfter: now + 1 }]]),
    { component: code, pod: "pod-1", boot: "boot-1" },
    now,
  );
  assert.equal(verified.body, sha256Of(first.body));
  assert.equal(verified.function, "list-issues");
  assert.equal(verified.interface, "example:github/issues@0.1.0");
  assert.equal(verified.definition, grant.definition);
  assert.equal(verified.grant, grant.grant);
});

test("a field given as null is judged and sent as one left out", async () => {
  const { call, sent } = scene([replied()]);
  await call('{"repo": "octo/app", "number": null}');
  assert.equal(sent[0]?.body, '{"repo":"octo/app"}');
});

const unmatched: Record<string, string> = {
  "another case": "List_Issues",
  "a space after it": "list_issues ",
  "a part of it": "list",
  "a prefix before it": "agents.list_issues",
  "a property of every object": "constructor",
  "a prototype": "__proto__",
  nothing: "",
};
for (const [what, name] of Object.entries(unmatched)) {
  test(`a name that is not byte for byte an offered one is refused: ${what}`, async () => {
    const { call, sent, journal } = scene([replied()]);
    const answer = await call(good, { name });
    assert.equal(answer.outcome, "refused");
    assert.equal(answer.text, refusalText);
    assert.equal(sent.length, 0);
    assert.equal(journal[0]?.gate, "match");
    assert.equal(journal[0]?.tool, null);
  });
}

const misfits: Record<string, { readonly text: string; readonly code: string; readonly says: RegExp }> = {
  "a wrong type": { text: '{"repo": 7}', code: "ArgumentInvalid", says: /\/repo/ },
  "a missing field": { text: "{}", code: "ArgumentInvalid", says: /\/repo/ },
  "a field of another name": { text: '{"repo": "a/b", "x": 1}', code: "ArgumentInvalid", says: /\/x/ },
  "a number past the type": { text: '{"repo": "a/b", "number": 18446744073709551616}', code: "ArgumentInvalid", says: /\/number/ },
  "a prototype as key": { text: '{"repo": "a/b", "__proto__": {"repo": "c/d"}}', code: "ArgumentInvalid", says: /__proto__/ },
  "a duplicate key": { text: '{"repo": "a/b", "repo": "c/d"}', code: "JsonDuplicateKey", says: /twice/ },
  "half a surrogate pair": { text: '{"repo": "\\ud83d"}', code: "JsonLoneSurrogate", says: /surrogate/ },
  "no JSON": { text: "{repo: octo}", code: "JsonSyntax", says: /not JSON/ },
  NaN: { text: '{"repo": NaN}', code: "JsonSyntax", says: /not JSON/ },
  "a list": { text: "[]", code: "ArgumentsNotObject", says: /object/ },
  "depth without end": { text: `{"repo":${"[".repeat(10_000)}`, code: "JsonTooDeep", says: /deeper/ },
};
for (const [what, { text, code: expected, says }] of Object.entries(misfits)) {
  test(`arguments that do not fit never reach a host, and the model is told why: ${what}`, async () => {
    const { call, sent, journal } = scene([replied()]);
    const answer = await call(text);
    assert.equal(answer.outcome, "failed");
    assert.equal(answer.reason?.code, expected);
    assert.match(answer.text, says);
    assert.equal(sent.length, 0);
    assert.equal(journal[0]?.gate, "schema");
  });
}

test("a tool that mutates takes nothing that a model wrote, and the model learns no reason", async () => {
  const { call, sent, journal } = scene([replied()], [endpoint()], { mutates: true });
  const answer = await call(good);
  assert.equal(answer.outcome, "refused");
  assert.equal(answer.text, refusalText);
  assert.equal(sent.length, 0);
  assert.equal(journal[0]?.code, "UntrustedArgument");
});

const claims: Record<string, { readonly labels: string; readonly gate: string | null; readonly outcome: string }> = {
  "a worse sensitivity counts": { labels: '{"/repo": {"sensitivity": "Secret"}}', gate: "egress-ceiling", outcome: "refused" },
  "the same as without is let through": {
    labels: '{"": {"trusted": false, "sources": [], "sensitivity": "Internal"}}',
    gate: null,
    outcome: "ok",
  },
  "trust is not to be claimed": { labels: '{"/repo": {"trusted": true}}', gate: "labels", outcome: "refused" },
  "a source is not to be claimed": { labels: '{"/repo": {"sources": ["task:ticket"]}}', gate: "labels", outcome: "refused" },
  "a lower sensitivity is not to be claimed": { labels: '{"": {"sensitivity": "Public"}}', gate: "labels", outcome: "refused" },
  "a misspelt label is told": { labels: '{"/repo": {"sensitvity": "Secret"}}', gate: "labels", outcome: "failed" },
  "a key that is no pointer is told": { labels: '{"repo": {"sensitivity": "Secret"}}', gate: "labels", outcome: "failed" },
  "one of no value, that may have been meant for another, is told": {
    labels: '{"/rep": {"sensitivity": "Secret"}}',
    gate: "labels",
    outcome: "failed",
  },
};
for (const [what, { labels, gate, outcome }] of Object.entries(claims)) {
  test(`labels of a caller: ${what}`, async () => {
    const { call, journal } = scene([replied()]);
    const answer = await call(good, { labels: parseJson(labels) });
    assert.equal(answer.outcome, outcome);
    assert.equal(journal[0]?.gate, gate);
  });
}

const two = [endpoint(), endpoint({ url: "http://127.0.0.1:2", podUid: "pod-2", bootId: "boot-2" })];
const trap = (ran: boolean): Dispatched => replied({ outcome: "failed", code: "Trap", text: "The tool trapped.", ran, stats });
const ends: Record<
  string,
  {
    readonly answers: readonly Dispatched[];
    readonly mutates?: boolean;
    readonly outcome: string;
    readonly code: string | null;
    readonly sent: number;
  }
> = {
  "a tool's own error": {
    answers: [replied({ outcome: "tool-error", text: "no such repository", stats })],
    outcome: "tool-error",
    code: null,
    sent: 1,
  },
  "a refused ticket goes once to another host": { answers: [hostRefused, replied()], outcome: "ok", code: null, sent: 2 },
  "and no further": { answers: [hostRefused, hostRefused, replied()], outcome: "failed", code: "TicketMisdirected", sent: 2 },
  "a host that is not there": {
    answers: [{ kind: "unreachable", message: "ECONNREFUSED" }, replied()],
    outcome: "ok",
    code: null,
    sent: 2,
  },
  "a busy host": {
    answers: [replied({ outcome: "failed", code: "Busy", text: "busy", ran: false, stats }), replied()],
    outcome: "ok",
    code: null,
    sent: 2,
  },
  "a lost answer of a tool that only reads": {
    answers: [{ kind: "lost", message: "reset" }, replied()],
    outcome: "failed",
    code: "HostLost",
    sent: 1,
  },
  "a lost answer of a tool that mutates": {
    answers: [{ kind: "lost", message: "reset" }, replied()],
    mutates: true,
    outcome: "in-doubt",
    code: "HostLost",
    sent: 1,
  },
  "a trap of a tool that only reads": { answers: [trap(true)], outcome: "failed", code: "Trap", sent: 1 },
  "a trap of a tool that mutates": { answers: [trap(true)], mutates: true, outcome: "in-doubt", code: "Trap", sent: 1 },
};
for (const [what, { answers, mutates = false, outcome, code: expected, sent: times }] of Object.entries(ends)) {
  test(`what a call comes to: ${what}`, async () => {
    const fields = mutates ? [{ path: "", acceptUntrusted: true as const }] : [];
    const { call, sent, journal } = scene(answers, two, { mutates, fields });
    const answer = await call(good);
    assert.equal(answer.outcome, outcome);
    assert.equal(answer.reason?.code ?? null, expected);
    assert.equal(sent.length, times);
    assert.equal(journal[0]?.attempts, times);
    assert.equal(new Set(sent.map(({ claims }) => claims.nonce)).size, times, "each host gets a ticket of its own");
    assert.equal(new Set(sent.map(({ claims }) => claims.pod)).size, times, "never the same host twice");
  });
}

const unreachable: Dispatched = { kind: "unreachable", message: "ECONNREFUSED" };
const busy = replied({ outcome: "failed", code: "Busy", text: "busy", ran: false, stats });
const counted: Record<string, { readonly first: Dispatched | null; readonly again: string }> = {
  "a host that ran it": { first: replied(), again: "refused" },
  "a host that was busy: it was sent the arguments": { first: busy, again: "refused" },
  "a host that refused the ticket": { first: hostRefused, again: "refused" },
  "no host, since none could be reached": { first: unreachable, again: "ok" },
  "no host, since none was ready": { first: null, again: "ok" },
};
for (const [what, { first, again }] of Object.entries(counted)) {
  test(`what a call takes of its limits, where it went to ${what}`, async () => {
    const limits = { rateLimit: { count: 1, window: "1m" }, maxEgressBytes: { bytes: "19", window: "1m" } } as const;
    const { call, state } = scene(first ? [first, replied()] : [replied()], first ? [endpoint()] : [], limits);
    await call(good);
    state.apply([{ kind: "endpoints", of: githubComponent, endpoints: [endpoint()] }]);
    assert.equal((await call(good)).outcome, again);
  });
}

test("no host with approved code: nothing runs, and it is said so", async () => {
  const { call, sent } = scene([replied()], [endpoint({ component: otherCode })]);
  const answer = await call(good);
  assert.equal(answer.outcome, "failed");
  assert.equal(answer.reason?.code, "NoReadyHost");
  assert.equal(sent.length, 0);
});

test("the journal has one line a call, with digests and never a value", async () => {
  const { call, journal } = scene([replied(okReply("the secret of the result"))]);
  await call('{"repo": "the/secret"}', { session: "s-1" });
  assert.equal(journal.length, 1);
  const [entry] = journal;
  assert.deepEqual(entry, {
    time: "2026-11-30T12:00:00.000Z",
    event: "call",
    id: entry?.id,
    subject: "system:serviceaccount:agents:triage",
    session: "s-1",
    name: "list_issues",
    tool: "agents/github-list-issues",
    workload: "github",
    grant: sha256Of("grant github-list-issues"),
    definition: `v1:${sha256Of("definition")}`,
    component: code,
    pod: "pod-1",
    arguments: sha256Of('{"repo":"the/secret"}'),
    argumentBytes: 21,
    labels: null,
    resultLabel: { sources: ["tool:agents/github-list-issues"], trusted: false, sensitivity: "Internal" },
    gate: null,
    outcome: "ok",
    code: null,
    reason: null,
    attempts: 1,
    resultBytes: 24,
    use: null,
    durations: { totalMs: 0, hostMs: 0, queueMs: 1, runMs: 2 },
  });
  assert.ok(!JSON.stringify(journal).includes("secret"));
});
