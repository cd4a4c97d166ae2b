import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { Transient } from "../../../src/api/errors.ts";
import { defaultCallPolicy } from "../../../src/catalogue/call-policy.ts";
import type { CatalogueConfig, CatalogueDeps } from "../../../src/catalogue/catalogue.ts";
import type { Dispatched } from "../../../src/catalogue/dispatch.ts";
import type { JournalEntry } from "../../../src/catalogue/journal.ts";
import { CallTracing } from "../../../src/catalogue/tracing.ts";
import { gateNames } from "../../../src/grants/gates.ts";
import { startTraces } from "../../../src/telemetry/traces.ts";
import { startOtlpReceiver } from "../../support/otlp-receiver.ts";
import { serving } from "./serving.ts";
import { liveGrant, okReply, scriptedHost, stats } from "./world.ts";

interface Schema {
  readonly properties: Readonly<Record<string, { readonly enum?: readonly unknown[] }>>;
}

/** What docs/catalogue.md points readers of the journal to. */
const schema: Schema = JSON.parse(readFileSync(new URL("../../../docs/journal.schema.json", import.meta.url), "utf8"));
const validate = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true }).compile(schema);

const good = { repo: "octo/spoon" };
const label = { sources: ["task:ticket"], trusted: true, sensitivity: "Public" };
const use = { requests: 2, deniedRequests: 1, sentBytes: 10, receivedBytes: 20, writtenFileBytes: 0, exchanges: [] };

interface Case {
  readonly call?: object;
  readonly answer?: Dispatched;
  readonly deps?: Partial<CatalogueDeps>;
  readonly config?: Partial<CatalogueConfig>;
  readonly grant?: Parameters<typeof liveGrant>[1];
  readonly journalled: Partial<JournalEntry>;
}

const cases: Record<string, Case> = {
  "a call that ran": { journalled: { outcome: "ok", gate: null } },
  "a call that said more than its answer": {
    answer: { kind: "replied", reply: { ...okReply(), stats: { ...stats, use } } },
    journalled: { outcome: "ok", use: { requests: 2, deniedRequests: 1, sentBytes: 10, receivedBytes: 20, writtenFileBytes: 0 } },
  },
  "a tool's own error": {
    answer: { kind: "replied", reply: { outcome: "tool-error", text: "no", stats } },
    journalled: { outcome: "tool-error" },
  },
  "a failure in the host": {
    answer: { kind: "replied", reply: { outcome: "failed", code: "Deadline", text: "too slow", ran: true, stats } },
    journalled: { outcome: "failed", code: "Deadline" },
  },
  "a tool that may have changed something and did not answer": {
    grant: { mutates: true },
    call: { name: "list_issues", arguments: good, labels: { "": label } },
    config: { policy: { ...defaultCallPolicy, isLabeler: () => true } },
    answer: { kind: "lost", message: "gone" },
    journalled: { outcome: "in-doubt", code: "HostLost" },
  },
  "labels that counted": {
    call: { name: "list_issues", arguments: good, labels: { "/repo": label }, session: "s-1" },
    config: { policy: { ...defaultCallPolicy, isLabeler: () => true } },
    journalled: { outcome: "ok", labels: { "/repo": label }, session: "s-1" },
  },
  "labels that are nobody's to give": {
    call: { name: "list_issues", arguments: good, labels: { "/repo": label } },
    journalled: { outcome: "refused", gate: "labels" },
  },
  "an argument from nobody knows where for a tool that mutates": {
    grant: { mutates: true },
    journalled: { outcome: "refused", gate: "provenance" },
  },
  "a call that can't be counted": {
    grant: { rateLimit: { count: 1, window: "1m" } },
    deps: { counters: { take: () => Promise.reject(new Transient("StoreAway", "no store")), giveBack: () => {}, close: () => {} } },
    journalled: { outcome: "failed", gate: "rate", code: "StoreAway" },
  },
  "arguments that do not fit": { call: { name: "list_issues", arguments: { repo: 7 } }, journalled: { outcome: "failed", gate: "schema" } },
  "arguments that are no object": { call: { name: "list_issues", arguments: 7 }, journalled: { gate: "schema", arguments: null } },
  "a name that is not offered, and long": {
    call: { name: "x".repeat(500), arguments: {} },
    journalled: { outcome: "refused", gate: "match", tool: null, name: "x".repeat(128) },
  },
  "a search, which the catalogue answers itself": {
    call: { name: "search_tools", arguments: { query: "issues" } },
    journalled: { outcome: "ok", attempts: 0, component: null },
  },
  "no host that takes it": { answer: { kind: "unreachable", message: "gone" }, journalled: { outcome: "failed", code: "HostUnreachable" } },
};

for (const [name, { call = { name: "list_issues", arguments: good }, answer, deps, config, grant, journalled }] of Object.entries(cases)) {
  test(`the journal's line fits its schema: ${name}`, async () => {
    const dispatch = answer === undefined ? {} : { dispatch: scriptedHost(answer).dispatch };
    await using served = await serving({ ...dispatch, ...deps }, config);
    if (grant) served.state.apply([{ kind: "grant", grant: liveGrant("github-list-issues", grant) }]);
    assert.equal((await served.post("/v1/calls", JSON.stringify(call))).status, 200);
    const [entry, ...more] = served.journal;
    assert.ok(entry);
    assert.equal(more.length, 0);
    for (const [field, value] of Object.entries(journalled)) assert.deepEqual(entry[field as keyof JournalEntry], value, field);
    fits(entry);
  });
}

test("the journal's line fits its schema where a trace is kept", async () => {
  await using receiver = await startOtlpReceiver();
  const traces = await startTraces({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url },
    instance: "one",
    report: (fault) => assert.fail(String(fault)),
  });
  assert.ok(traces);
  await using served = await serving({ tracing: new CallTracing(traces) });
  await served.post("/v1/calls", JSON.stringify({ name: "list_issues", arguments: good }));
  await traces.close();
  const [entry] = served.journal;
  assert.ok(entry?.trace);
  fits(entry);
});

test("the schema lists every gate and nothing that no line has", async () => {
  assert.deepEqual(schema.properties.gate?.enum, [...gateNames, "fault", null]);
  await using served = await serving();
  await served.post("/v1/calls", JSON.stringify({ name: "list_issues", arguments: good }));
  const [entry] = served.journal;
  assert.deepEqual(Object.keys(schema.properties).sort(), [...Object.keys(entry ?? {}), "trace"].sort());
});

/** As a reader gets it: written and read again. */
const fits = (entry: JournalEntry): void => {
  const isFitting = validate(JSON.parse(JSON.stringify(entry)));
  assert.ok(isFitting, JSON.stringify(validate.errors));
};
