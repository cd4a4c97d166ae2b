import assert from "node:assert/strict";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ambit, type RunningUp, startUp } from "../support/ambit-command.ts";
import { type ReceivedSpan, startOtlpReceiver } from "../support/otlp-receiver.ts";
import { isOurs, readByPrometheus, scrape, whyNoPrometheus } from "../support/scraped.ts";

const noPrometheus = await whyNoPrometheus();

const traceId = "0af7651916cd43dd8448eb211c80319c";
const agentSpan = "b7ad6b7169203331";

const workload = `apiVersion: ambit.dev/v1alpha1
kind: Workload
metadata: {name: fetch, namespace: agents}
spec:
  components:
  - name: fetch
    image: file:fetch.wasm
    localResources:
      allowedHosts: ["http://*.example.test"]
`;

/** What is seen from outside of one call that reaches another host: an agent with a trace of its own, a real host in its process, a collector, and Prometheus's parser. */
describe("a call through ambit up, observed", () => {
  let place: string;
  let far: Server;
  let up: RunningUp;
  let scrapedText = "";
  let receiver: Awaited<ReturnType<typeof startOtlpReceiver>>;

  const call = async (url: string): Promise<string> => {
    const response = await fetch(`${up.url}/v1/calls`, {
      method: "POST",
      headers: { authorization: "Bearer secret", "content-type": "application/json", traceparent: `00-${traceId}-${agentSpan}-01` },
      body: JSON.stringify({ name: "fetch", arguments: { url } }),
    });
    return ((await response.json()) as { outcome: string }).outcome;
  };

  before(async () => {
    place = await mkdtemp(join(tmpdir(), "ambit-observed-"));
    const folder = join(place, "manifests");
    const cache = ["--cache", join(place, "cache")];
    await mkdir(folder);
    await cp(fileURLToPath(new URL("../../examples/fetch/fetch.wasm", import.meta.url)), join(folder, "fetch.wasm"));
    await writeFile(join(folder, "workload.yaml"), workload);
    const grants = join(folder, "grants");
    assert.equal((await ambit(["draft", folder, "--out", grants, ...cache])).code, 0);
    const approval = ["approve", "--yes", "--subject", "ServiceAccount:agents/triage", "--read-only", "--reviewer", "ana"];
    const files = (await readdir(grants)).map((file) => join(grants, file));
    const approved = await ambit([...approval, ...files, ...cache]);
    assert.equal(approved.code, 0, approved.err);
    far = createServer((_, response) => response.writeHead(200, { "content-type": "text/plain" }).end("hello"));
    far.listen(0, "127.0.0.1");
    await once(far, "listening");
    const resolve = `pages.example.test:80=127.0.0.1:${(far.address() as AddressInfo).port}`;
    receiver = await startOtlpReceiver();
    const args = ["--token", "secret", "--telemetry-port", "0", "--resolve", resolve, ...cache];
    up = await startUp(folder, args, { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url });
  });

  after(async () => {
    await up?.stop();
    await receiver?.[Symbol.asyncDispose]();
    far?.close();
    await rm(place, { recursive: true, force: true });
  });

  test("its figures are counted", async () => {
    assert.equal(await call("http://pages.example.test/secret-path"), "ok");
    assert.equal(await call("http://elsewhere.test/"), "tool-error");
    const metrics = up.events.find(({ event }) => event === "telemetry");
    const { text, scraped } = await scrape(Number(new URL(String(metrics?.url)).port));
    const of = { namespace: "agents", workload: "fetch" };
    assert.equal(scraped.value("ambit_calls_total", { outcome: "ok", gate: "", code: "" }), 1);
    assert.equal(scraped.value("ambit_host_run_seconds_count", of), 2);
    assert.ok((scraped.value("ambit_host_run_seconds_sum", of) ?? 0) > 0);
    assert.equal(scraped.value("ambit_tool_requests_total", { ...of, result: "sent" }), 1);
    assert.equal(scraped.value("ambit_tool_requests_total", { ...of, result: "denied" }), 1);
    assert.equal(scraped.value("ambit_tool_network_bytes_total", { ...of, direction: "received" }), "hello".length);
    assert.doesNotMatch(text, /secret-path|elsewhere/);
    scrapedText = text;
  });

  test("Prometheus reads them, and its linter finds nothing to say of our names", { skip: noPrometheus ?? false }, async () => {
    const { families, problems } = await readByPrometheus(scrapedText);
    assert.equal(families.ambit_host_run_seconds?.type, "HISTOGRAM");
    assert.deepEqual(problems.filter(isOurs), []);
  });

  test("its spans lead from the agent to the far side's answer, each within the one around it", async () => {
    await up.stop();
    const spans = receiver.spans.filter((span) => span.traceId === traceId);
    const requests = spans.filter(({ name }) => name === "POST /v1/calls");
    assert.deepEqual(
      requests.map(({ parentSpanId }) => parentSpanId),
      [agentSpan, agentSpan],
    );
    const exchange = spans.find(({ name }) => name === "GET http://*.example.test") ?? assert.fail();
    assert.equal(exchange.attributes["http.response.status_code"], 200);
    const path = pathTo(exchange, spans);
    assert.deepEqual(
      path.map(({ service, name }) => `${service}: ${name}`),
      [
        "ambit-catalogue: POST /v1/calls",
        "ambit-catalogue: execute_tool fetch",
        "ambit-catalogue: dispatch",
        "ambit-host: run",
        "ambit-host: GET http://*.example.test",
      ],
    );
    for (const [index, inner] of path.slice(1).entries()) {
      const outer = path[index] ?? assert.fail();
      // Figures are rounded to microseconds on their way.
      assert.ok(inner.startMs >= outer.startMs - 0.01 && inner.endMs <= outer.endMs + 0.01, `${inner.name} in ${outer.name}`);
    }
    assert.doesNotMatch(JSON.stringify(receiver.spans), /secret-path|elsewhere|pages\.example/);
  });
});

/** From the outermost span to this one. */
const pathTo = (span: ReceivedSpan, spans: readonly ReceivedSpan[]): ReceivedSpan[] => {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return parent === undefined ? [span] : [...pathTo(parent, spans), span];
};
