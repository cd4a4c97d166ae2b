import assert from "node:assert/strict";
import { test } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { startTraces, wantsTraces } from "../../../src/telemetry/traces.ts";
import { becomes } from "../../cluster/becomes.ts";
import { startOtlpReceiver } from "../../support/otlp-receiver.ts";

const start = (env: Readonly<Record<string, string>>, report: (fault: unknown) => void = (fault) => assert.fail(String(fault))) =>
  startTraces({ env, instance: "one", report });

const wanted: Record<string, { env: Readonly<Record<string, string>>; wants: boolean }> = {
  "no collector": { env: {}, wants: false },
  "an empty collector": { env: { OTEL_EXPORTER_OTLP_ENDPOINT: "" }, wants: false },
  "a collector of all signals": { env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318" }, wants: true },
  "a collector of traces": { env: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c:4318/v1/traces" }, wants: true },
  "all of OpenTelemetry switched off": { env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_SDK_DISABLED: "true" }, wants: false },
  "no traces wanted": { env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_TRACES_EXPORTER: "none" }, wants: false },
};

for (const [name, { env, wants }] of Object.entries(wanted)) {
  test(`traces with ${name}: ${wants ? "kept" : "none"}`, async () => {
    assert.equal(wantsTraces(env), wants);
    if (!wants) assert.equal(await start(env), null);
  });
}

const collector = "http://127.0.0.1:9";

const wrong: Record<string, { env: Readonly<Record<string, string>>; says: RegExp }> = {
  "a collector that is no URL": {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" },
    says: /"collector:4318\/v1\/traces" is no URL of http/,
  },
  "an exporter that there is not": { env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_TRACES_EXPORTER: "zipkin" }, says: /zipkin/ },
  "a sampler that there is not": {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_TRACES_SAMPLER: "jaeger_remote" },
    says: /jaeger_remote/,
  },
  "a ratio above one": {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "10" },
    says: /a number from 0 to 1, not "10"/,
  },
};

for (const [name, { env, says }] of Object.entries(wrong)) {
  test(`${name} is told at the start`, async () => {
    await assert.rejects(
      start(env),
      (thrown) => thrown instanceof Invalid && thrown.code === "TracesSettingInvalid" && says.test(thrown.message),
    );
  });
}

test("spans go to the path that was named, with what the environment says of the process", async () => {
  await using receiver = await startOtlpReceiver();
  const traces = await start({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/tenant/v1/traces`,
    OTEL_SERVICE_NAME: "our-catalogue",
  });
  traces?.catalogue.startSpan("a").end();
  traces?.host.startSpan("b").end();
  await traces?.close();
  assert.deepEqual([...new Set(receiver.requests.map(({ path }) => path))], ["/tenant/v1/traces"]);
  assert.deepEqual(receiver.spans.map(({ name, service }) => `${service} ${name}`).sort(), ["ambit-host b", "our-catalogue a"]);
  assert.equal(receiver.spans[0]?.resource["service.namespace"], "ambit");
});

test("a collector that takes nothing is told of, and keeps nobody from ending", async () => {
  await using receiver = await startOtlpReceiver(400);
  const faults: unknown[] = [];
  const traces = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }, (fault) => faults.push(fault));
  traces?.catalogue.startSpan("a").end();
  await traces?.close();
  assert.ok(faults.length > 0, "it is told");
  assert.match(String(faults[0]), /400|Bad Request/);
});

test("what a collector that is slow has no room for is dropped, not kept", async () => {
  const faults: string[] = [];
  await using receiver = await startOtlpReceiver();
  const traces = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }, (fault) => faults.push(String(fault)));
  for (let index = 0; index < 20_000; index++) traces?.catalogue.startSpan("a").end();
  // Told when there is room again.
  assert.ok(await becomes(async () => receiver.spans.length >= 512, 20_000), "a batch was sent");
  traces?.catalogue.startSpan("a").end();
  await traces?.close();
  // A queue of 4,096, the batch that was being sent, and the last.
  assert.ok(receiver.spans.length <= 4096 + 512 + 1, `${receiver.spans.length} were kept`);
  assert.ok(
    faults.some((fault) => /Dropped 1[0-9]{4} spans/.test(fault)),
    faults.join("; "),
  );
});
