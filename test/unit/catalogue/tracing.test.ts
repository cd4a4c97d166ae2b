import assert from "node:assert/strict";
import { test } from "node:test";
import type { CatalogueDeps } from "../../../src/catalogue/catalogue.ts";
import { CallTracing } from "../../../src/catalogue/tracing.ts";
import { startTraces } from "../../../src/telemetry/traces.ts";
import { type ReceivedSpan, startOtlpReceiver } from "../../support/otlp-receiver.ts";
import { serving } from "./serving.ts";
import { endpoint, githubComponent, okReply, scriptedHost } from "./world.ts";

const agentTrace = "0af7651916cd43dd8448eb211c80319c";
const agentSpan = "b7ad6b7169203331";
const sampled = { traceparent: `00-${agentTrace}-${agentSpan}-01` };

/** A catalogue whose spans go to a collector of the test's, by the environment's variables. */
const traced = async (env: Readonly<Record<string, string>> = {}, change: Partial<CatalogueDeps> = {}) => {
  const receiver = await startOtlpReceiver();
  const faults: unknown[] = [];
  const traces = await startTraces({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...env },
    instance: "catalogue-1",
    report: (fault) => faults.push(fault),
  });
  assert.ok(traces);
  const served = await serving({ tracing: new CallTracing(traces), ...change });
  /** Ends the exporting: what was sent is all there is. */
  const spans = async (): Promise<readonly ReceivedSpan[]> => {
    await traces.close();
    return receiver.spans;
  };
  const dispose = async () => {
    await served[Symbol.asyncDispose]();
    await traces.close();
    await receiver[Symbol.asyncDispose]();
  };
  return { ...served, receiver, faults, spans, [Symbol.asyncDispose]: dispose };
};

const call = (name = "list_issues", args: object = { repo: "octo/spoon" }): string => JSON.stringify({ name, arguments: args });

const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan => {
  const found = spans.filter((span) => span.name === name);
  assert.equal(found.length, 1, `${name} among ${spans.map((span) => span.name).join(", ")}`);
  return found[0] ?? assert.fail();
};

test("a call's spans follow the agent's, down to the tool's run", async () => {
  await using served = await traced();
  assert.equal((await served.post("/v1/calls", call(), sampled)).status, 200);
  const spans = await served.spans();
  assert.deepEqual(new Set(spans.map(({ traceId }) => traceId)), new Set([agentTrace]));
  const request = named(spans, "POST /v1/calls");
  const tool = named(spans, "execute_tool list_issues");
  const dispatch = named(spans, "dispatch");
  const queue = named(spans, "queue");
  const run = named(spans, "run");
  assert.deepEqual(
    [request, tool, dispatch, queue, run].map(({ parentSpanId }) => parentSpanId),
    [agentSpan, request.spanId, tool.spanId, dispatch.spanId, dispatch.spanId],
  );
  assert.deepEqual([request.kind, dispatch.kind], [2, 3]);
  assert.deepEqual(
    [request, queue].map(({ service, resource }) => [service, resource["service.instance.id"]]),
    [
      ["ambit-catalogue", "catalogue-1"],
      ["ambit-host", "catalogue-1"],
    ],
  );
  assert.equal(request.attributes["http.response.status_code"], 200);
  assert.equal(tool.attributes["ambit.grant"], "agents/github-list-issues");
  assert.equal(tool.attributes["ambit.outcome"], "ok");
  assert.equal(dispatch.attributes["k8s.pod.uid"], "pod-1");
  assert.deepEqual(
    tool.events.map(({ attributes }) => [attributes["ambit.gate"], attributes["ambit.verdict"]]),
    ["match", "schema", "labels", "provenance", "egress-ceiling", "denials", "egress-budget", "rate"].map((gate) => [gate, "admitted"]),
  );
  // As long as the host said: a millisecond in its queue, two running.
  assert.ok(Math.abs(queue.endMs - queue.startMs - 1) < 0.01 && Math.abs(run.endMs - run.startMs - 2) < 0.01);
  assert.ok(Math.abs(queue.endMs - run.startMs) < 0.01);
});

test("the requests that a tool made are spans within its run", async () => {
  const use = { requests: 2, deniedRequests: 1, sentBytes: 0, receivedBytes: 9, writtenFileBytes: 0 };
  const exchanges = [{ method: "GET", host: "https://api.example.com", atMs: 0.5, ms: 1.25, status: 200 }];
  const reply = { ...okReply(), stats: { queueMs: 1, runMs: 2, use: { ...use, exchanges } } };
  await using served = await traced({}, { dispatch: scriptedHost({ kind: "replied", reply }).dispatch });
  await served.post("/v1/calls", call(), sampled);
  const spans = await served.spans();
  const run = named(spans, "run");
  const request = named(spans, "GET https://api.example.com");
  assert.deepEqual([request.parentSpanId, request.kind, request.service], [run.spanId, 3, "ambit-host"]);
  assert.equal(request.attributes["http.response.status_code"], 200);
  assert.ok(Math.abs(request.startMs - run.startMs - 0.5) < 0.01 && Math.abs(request.endMs - request.startMs - 1.25) < 0.01);
  assert.deepEqual([run.attributes["ambit.requests"], run.attributes["ambit.requests.denied"]], [2, 1]);
  assert.deepEqual(served.journal[0]?.use, use);
});

test("the journal names the trace", async () => {
  await using served = await traced();
  await served.post("/v1/calls", call(), sampled);
  assert.equal(served.journal[0]?.trace, agentTrace);
});

test("a refused call says which gate refused, and was dispatched nowhere", async () => {
  await using served = await traced();
  await served.post("/v1/calls", call("list_issues", { repo: 7 }), sampled);
  const spans = await served.spans();
  const tool = named(spans, "execute_tool list_issues");
  assert.deepEqual(
    tool.events.map(({ attributes }) => [attributes["ambit.gate"], attributes["ambit.verdict"]]),
    [
      ["match", "admitted"],
      ["schema", "refused"],
    ],
  );
  assert.equal(tool.attributes["error.type"], "ArgumentInvalid");
  assert.equal(spans.length, 2);
});

test("a second host that was tried is a second hop, and the first says why", async () => {
  const host = scriptedHost({ kind: "unreachable", message: "gone" }, { kind: "replied", reply: okReply() });
  await using served = await traced({}, { dispatch: host.dispatch });
  const hosts = [endpoint({ podUid: "pod-1" }), endpoint({ podUid: "pod-2", url: "http://127.0.0.1:2" })];
  served.state.apply([{ kind: "endpoints", of: githubComponent, endpoints: hosts }]);
  await served.post("/v1/calls", call(), sampled);
  const hops = (await served.spans()).filter(({ name }) => name === "dispatch");
  assert.deepEqual(
    hops.map(({ isError, attributes }) => [isError, attributes["error.type"]]),
    [
      [true, "unreachable"],
      [false, undefined],
    ],
  );
});

test("the calls of a turn, side by side, each have spans of their own", async () => {
  await using served = await traced();
  const blocks = [1, 2, 3].map((number) => ({ type: "tool_use", id: `t${number}`, name: "list_issues", input: { repo: "a/b", number } }));
  assert.equal((await served.post("/v1/calls?format=anthropic", JSON.stringify(blocks), sampled)).status, 200);
  const spans = await served.spans();
  const tools = spans.filter(({ name }) => name === "execute_tool list_issues");
  assert.equal(tools.length, 3);
  const hops = spans.filter(({ name }) => name === "dispatch");
  assert.deepEqual(new Set(hops.map(({ parentSpanId }) => parentSpanId)), new Set(tools.map(({ spanId }) => spanId)));
});

test("a call over MCP follows the span that came with it, and is linked to its request's", async () => {
  await using served = await traced();
  const params = { name: "list_issues", arguments: { repo: "octo/spoon" }, _meta: { traceparent: sampled.traceparent } };
  const initialize = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
  };
  const accept = { accept: "application/json, text/event-stream" };
  const begun = await served.post("/mcp", JSON.stringify(initialize), accept);
  const session = { "mcp-session-id": String(begun.headers["mcp-session-id"]), "mcp-protocol-version": "2025-11-25" };
  const asked = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params });
  assert.equal((await served.post("/mcp", asked, { ...accept, ...session })).status, 200);
  const spans = await served.spans();
  const tool = named(spans, "execute_tool list_issues");
  assert.deepEqual([tool.traceId, tool.parentSpanId], [agentTrace, agentSpan]);
  assert.equal(named(spans, "dispatch").parentSpanId, tool.spanId);
  const requests = spans.filter(({ name }) => name === "POST /mcp");
  assert.ok(requests.every(({ traceId }) => traceId !== agentTrace));
  assert.ok(tool.links.some(({ spanId }) => requests.some((request) => request.spanId === spanId)));
});

test("nothing that a caller writes is in a span", async () => {
  await using served = await traced();
  const secret = "caller-chosen";
  await served.post("/v1/calls", call(secret), sampled);
  await served.post("/v1/calls", call("list_issues", { repo: secret }), sampled);
  await served.ask(`/v1/search?q=${secret}`, { headers: sampled });
  await served.ask(`/${secret}`, { headers: { ...sampled, tracestate: `a=${secret}`, baggage: `a=${secret}` } });
  const spans = await served.spans();
  assert.ok(spans.length >= 6);
  assert.doesNotMatch(JSON.stringify(spans), new RegExp(secret));
});

const headers: Record<string, { traceparent: string; follows: boolean }> = {
  "a later version is read as far as it is known": { traceparent: `01-${agentTrace}-${agentSpan}-01-more`, follows: true },
  "version 00 with something more is none": { traceparent: `00-${agentTrace}-${agentSpan}-01-more`, follows: false },
  "version ff is none": { traceparent: `ff-${agentTrace}-${agentSpan}-01`, follows: false },
  "capitals are none": { traceparent: `00-${agentTrace.toUpperCase()}-${agentSpan}-01`, follows: false },
  "a trace of zeros is none": { traceparent: `00-${"0".repeat(32)}-${agentSpan}-01`, follows: false },
  "a span of zeros is none": { traceparent: `00-${agentTrace}-${"0".repeat(16)}-01`, follows: false },
  "what is no header of this kind is none": { traceparent: "x".repeat(8000), follows: false },
};

for (const [name, { traceparent, follows }] of Object.entries(headers)) {
  test(`traceparent: ${name}`, async () => {
    await using served = await traced();
    assert.equal((await served.ask("/v1/declarations", { headers: { traceparent } })).status, 200);
    const request = named(await served.spans(), "GET /v1/declarations");
    assert.equal(request.parentSpanId, follows ? agentSpan : null);
    assert.equal(request.traceId === agentTrace, follows);
  });
}

test("an agent that does not sample has nothing told of it, and a sampler may decide for those who say nothing", async () => {
  await using served = await traced({ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" });
  await served.post("/v1/calls", call(), { traceparent: `00-${agentTrace}-${agentSpan}-00` });
  await served.post("/v1/calls", call());
  await served.post("/v1/calls", call(), sampled);
  const spans = await served.spans();
  assert.equal(spans.filter(({ name }) => name === "POST /v1/calls").length, 1);
  assert.deepEqual(
    served.journal.map(({ trace }) => trace),
    [undefined, undefined, agentTrace],
  );
});

test("probes are no requests that anybody traces", async () => {
  await using served = await traced();
  await served.ask("/healthz");
  await served.ask("/readyz");
  assert.deepEqual(await served.spans(), []);
});
