import assert from "node:assert/strict";
import { test } from "node:test";
import { countedJournal } from "../../../src/catalogue/call-metrics.ts";
import type { CatalogueDeps } from "../../../src/catalogue/catalogue.ts";
import type { Dispatched } from "../../../src/catalogue/dispatch.ts";
import type { JournalEntry } from "../../../src/catalogue/journal.ts";
import { scrapedMetrics } from "../../../src/telemetry/prometheus.ts";
import { Scraped } from "../../support/scraped.ts";
import { type Ask, serving } from "./serving.ts";
import { okReply, scriptedHost } from "./world.ts";

/** A catalogue as `serving` makes it, that counts. */
const counting = async (change: Partial<CatalogueDeps> = {}) => {
  const metrics = scrapedMetrics();
  const served = await serving({ metrics, ...change });
  return { ...served, read: async () => new Scraped(await metrics.text()) };
};

const call = (name: string, args: object = { repo: "octo/spoon" }): string => JSON.stringify({ name, arguments: args });

test("a call is counted by what came of it, and its tool's run by what the host said", async () => {
  await using served = await counting();
  await served.post("/v1/calls", call("list_issues"));
  await served.post("/v1/calls", call("list_issues"));
  await served.post("/v1/calls", call("list_issues", { repo: 7 }));
  await served.post("/v1/calls", call("list_pulls"));
  const scraped = await served.read();
  assert.equal(scraped.value("ambit_calls_total", { outcome: "ok", gate: "", code: "" }), 2);
  assert.equal(scraped.value("ambit_calls_total", { outcome: "failed", gate: "schema", code: "ArgumentInvalid" }), 1);
  assert.equal(scraped.value("ambit_calls_total", { outcome: "refused", gate: "match", code: "NotOffered" }), 1);
  assert.equal(scraped.value("ambit_call_duration_seconds_count", { outcome: "ok" }), 2);
  const grant = { namespace: "agents", grant: "github-list-issues" };
  assert.equal(scraped.value("ambit_tool_calls_total", { ...grant, outcome: "ok" }), 2);
  assert.equal(scraped.value("ambit_tool_calls_total", { ...grant, outcome: "failed" }), 1);
  const workload = { namespace: "agents", workload: "github" };
  assert.equal(scraped.value("ambit_host_attempts_total", workload), 2);
  assert.equal(scraped.value("ambit_host_run_seconds_count", workload), 2);
  assert.equal(scraped.value("ambit_host_run_seconds_sum", workload), 0.004);
  assert.equal(scraped.value("ambit_host_queue_seconds_sum", workload), 0.002);
  assert.equal(scraped.value("ambit_call_bytes_total", { ...workload, direction: "arguments" }), 2 * '{"repo":"octo/spoon"}'.length);
  assert.equal(scraped.value("ambit_call_bytes_total", { ...workload, direction: "result" }), 2 * '["an issue"]'.length);
  assert.equal(scraped.value("ambit_live_grants"), 1);
});

test("what a tool did beside answering is counted as its host said", async () => {
  const use = { requests: 3, deniedRequests: 1, sentBytes: 10, receivedBytes: 20, writtenFileBytes: 30, exchanges: [] };
  const reply = { ...okReply(), stats: { queueMs: 0, runMs: 0, use } };
  await using served = await counting({ dispatch: scriptedHost({ kind: "replied", reply }).dispatch });
  await served.post("/v1/calls", call("list_issues"));
  const scraped = await served.read();
  const workload = { namespace: "agents", workload: "github" };
  assert.equal(scraped.value("ambit_tool_requests_total", { ...workload, result: "sent" }), 2);
  assert.equal(scraped.value("ambit_tool_requests_total", { ...workload, result: "denied" }), 1);
  assert.equal(scraped.value("ambit_tool_network_bytes_total", { ...workload, direction: "sent" }), 10);
  assert.equal(scraped.value("ambit_tool_network_bytes_total", { ...workload, direction: "received" }), 20);
  assert.equal(scraped.value("ambit_tool_written_bytes_total", workload), 30);
});

test("a call that a host has is under way until it answers", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<Dispatched>();
  const { promise: sent, resolve: send } = Promise.withResolvers<void>();
  await using served = await counting({
    dispatch: () => {
      send();
      return answered;
    },
  });
  const called = served.post("/v1/calls", call("list_issues"));
  await sent;
  assert.equal((await served.read()).value("ambit_calls_in_flight"), 1);
  assert.equal((await served.read()).value("ambit_http_requests_in_flight", { route: "/v1/calls" }), 1);
  assert.equal((await served.read()).value("ambit_connections"), 1);
  answer({ kind: "replied", reply: okReply() });
  await called;
  assert.equal((await served.read()).value("ambit_calls_in_flight"), 0);
});

test("nothing that a caller writes becomes a label", async () => {
  await using served = await counting();
  const secret = "caller-chosen";
  await served.post("/v1/calls", call(secret));
  await served.post("/v1/calls", JSON.stringify({ name: "list_issues", arguments: { repo: secret }, session: secret }));
  const odd: readonly (readonly [string, Ask?])[] = [
    [`/${secret}`],
    [`/v1/declarations/${secret}`],
    [`/v1/search?q=${secret}`],
    ["/v1/calls", { method: "PROPFIND" }],
    ["/v1/declarations", { headers: { host: `${secret}.example`, "user-agent": secret } }],
  ];
  for (const [path, ask] of odd) await served.ask(path, ask);
  const scraped = await served.read();
  assert.equal(scraped.sum("ambit_http_requests_total"), 7);
  assert.equal(scraped.value("ambit_http_requests_total", { route: "other", method: "GET", code: "404" }), 1);
  assert.equal(scraped.value("ambit_http_requests_total", { route: "/v1/declarations/{name}", method: "GET", code: "404" }), 1);
  assert.equal(scraped.value("ambit_http_requests_total", { route: "/v1/calls", method: "other", code: "405" }), 1);
  assert.equal(scraped.value("ambit_http_requests_total", { route: "/v1/declarations", method: "GET", code: "421" }), 1);
  for (const series of scraped.series) assert.ok(!series.includes(secret), series);
});

test("a list that is fresh is told from one that was sent", async () => {
  await using served = await counting();
  const { headers } = await served.ask("/v1/declarations");
  await served.ask("/v1/declarations", { headers: { "if-none-match": headers.etag ?? "" } });
  const scraped = await served.read();
  const route = { route: "/v1/declarations", method: "GET" };
  assert.equal(scraped.value("ambit_http_requests_total", { ...route, code: "200" }), 1);
  assert.equal(scraped.value("ambit_http_requests_total", { ...route, code: "304" }), 1);
  assert.equal(scraped.value("ambit_http_request_duration_seconds_count", { route: "/v1/declarations" }), 2);
  assert.equal(scraped.value("ambit_http_requests_in_flight", { route: "/v1/declarations" }), 0);
});

test("what can be many is counted by name only while it is few", async () => {
  await using served = await serving();
  await served.post("/v1/calls", call("list_issues"));
  const [entry] = served.journal;
  assert.ok(entry);
  const metrics = scrapedMetrics();
  const seen: JournalEntry[] = [];
  const journal = countedJournal(metrics, (entry) => seen.push(entry));
  for (let index = 0; index < 1500; index++) {
    journal({ ...entry, tool: `agents/grant-${index}`, workload: `w-${index}`, code: `Code${index}`, outcome: "failed" });
  }
  const scraped = new Scraped(await metrics.text());
  const series = (name: string): number => [...scraped.series].filter((one) => one.startsWith(`["${name}"`)).length;
  assert.equal(series("ambit_tool_calls_total"), 1001);
  assert.equal(series("ambit_calls_total"), 101);
  assert.equal(series("ambit_host_attempts_total"), 201);
  assert.equal(scraped.value("ambit_tool_calls_total", { namespace: "other", grant: "other", outcome: "failed" }), 500);
  assert.equal(scraped.sum("ambit_tool_calls_total"), 1500);
  assert.equal(seen.length, 1500);
});
