import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { defaultRecorderLimits, EventRecorder, type Happening } from "../../../src/kube/events.ts";
import type { ClusterObject } from "../../../src/kube/object.ts";
import { ManualClock } from "./manual-clock.ts";
import { RecordedMetrics } from "./recorded-metrics.ts";
import { type Reply, ScriptedServer, type SeenRequest, until } from "./scripted-server.ts";

const workload: ClusterObject = {
  apiVersion: "ambit.dev/v1alpha1",
  kind: "Workload",
  metadata: { name: "github", namespace: "agents", uid: "u1", resourceVersion: "5" },
};

const drifted: Happening = { type: "Warning", reason: "Drifted", action: "Judge", note: "the definition changed" };

const underTest = async (
  answer: (request: SeenRequest, index: number) => Reply = () => ({ status: 201 }),
  limits = defaultRecorderLimits,
) => {
  const clock = new ManualClock();
  const metrics = new RecordedMetrics();
  const server = await ScriptedServer.start(answer);
  const client = server.client(clock, { limits: { requestMs: 30_000, connectMs: 10_000, responseBytes: 1024, retries: 0 } });
  let names = 0;
  const recorder = new EventRecorder({
    client,
    clock,
    controller: "ambit.dev/operator",
    instance: "operator-0",
    uniqueName: () => `n${++names}`,
    isEnding: (namespace) => namespace === "ending",
    metrics,
    limits,
  });
  const end = new AbortController();
  const ended = recorder.run(end.signal);
  return {
    clock,
    server,
    recorder,
    dropped: (why: string) => metrics.value("events_dropped_total", { why }) ?? 0,
    seen: (count: number) => until(() => server.seen.length >= count, `request ${count}`),
    /** Everything sent was answered, and the recorder sleeps. */
    quiet: async () => {
      await until(() => clock.nextIn === undefined || clock.nextIn > 30_000 || clock.nextIn <= 4000, "the answer");
    },
    async [Symbol.asyncDispose]() {
      end.abort();
      await ended;
      assert.equal(clock.timers, 0);
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
};

const bodyOf = (request: SeenRequest | undefined) => JSON.parse(request?.body ?? "null");

describe("an event recorder", () => {
  test("writes an event about the object, as the API wants it", async () => {
    await using it = await underTest();
    it.recorder.record(workload, drifted);
    await it.seen(1);
    const [request] = it.server.seen;
    assert.equal(`${request?.method} ${request?.path}`, "POST /apis/events.k8s.io/v1/namespaces/agents/events");
    assert.deepEqual(bodyOf(request), {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: "github.n1", namespace: "agents" },
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "ambit.dev/operator",
      reportingInstance: "operator-0",
      type: "Warning",
      reason: "Drifted",
      action: "Judge",
      note: "the definition changed",
      regarding: { apiVersion: "ambit.dev/v1alpha1", kind: "Workload", namespace: "agents", name: "github", uid: "u1" },
    });
  });

  test("counts repetitions in one event, and writes the count once in a while", async () => {
    await using it = await underTest();
    it.recorder.record(workload, drifted);
    await it.seen(1);
    await it.quiet();
    it.clock.pass(1000);
    for (let time = 0; time < 50; time++) it.recorder.record(workload, drifted);
    it.clock.pass(58_000);
    assert.equal(it.server.seen.length, 1);
    it.clock.pass(2000);
    await it.seen(2);
    const [, request] = it.server.seen;
    assert.equal(`${request?.method} ${request?.path}`, "PATCH /apis/events.k8s.io/v1/namespaces/agents/events/github.n1");
    assert.equal(request?.headers["content-type"], "application/merge-patch+json");
    assert.deepEqual(bodyOf(request), { series: { count: 51, lastObservedTime: "2026-01-01T00:00:01.000000Z" } });
  });

  const others: Record<string, { about?: ClusterObject; happening?: Happening }> = {
    "another object": { about: { ...workload, metadata: { ...workload.metadata, uid: "u2" } } },
    "another note": { happening: { ...drifted, note: "the reach grew" } },
    "another reason": { happening: { ...drifted, reason: "Withheld" } },
  };
  for (const [what, { about = workload, happening = drifted }] of Object.entries(others)) {
    test(`writes an event of its own for ${what}`, async () => {
      await using it = await underTest();
      it.recorder.record(workload, drifted);
      it.recorder.record(about, happening);
      await it.seen(2);
      assert.deepEqual(
        it.server.seen.map(({ method }) => method),
        ["POST", "POST"],
      );
    });
  }

  test("takes a repetition after a long time for news", async () => {
    await using it = await underTest();
    it.recorder.record(workload, drifted);
    await it.seen(1);
    await it.quiet();
    it.clock.pass(360_000);
    it.recorder.record(workload, drifted);
    await it.seen(2);
    assert.equal(bodyOf(it.server.seen[1]).metadata.name, "github.n2");
  });

  test("lets no object flood the others", async () => {
    await using it = await underTest();
    for (let number = 0; number < 40; number++) it.recorder.record(workload, { ...drifted, note: `change ${number}` });
    it.recorder.record({ ...workload, metadata: { ...workload.metadata, uid: "u2", name: "fetch" } }, drifted);
    await it.seen(26);
    assert.equal(it.dropped("object"), 15);
    assert.equal(bodyOf(it.server.seen[25]).regarding.name, "fetch");
  });

  test("drops and counts what it can't keep up with", async () => {
    await using it = await underTest(() => ({ hang: true }), { ...defaultRecorderLimits, waiting: 10 });
    for (let number = 0; number < 20; number++) it.recorder.record(workload, { ...drifted, note: `change ${number}` });
    assert.equal(it.dropped("queue"), 10);
  });

  test("tries again when the server is troubled, then gives up", async () => {
    await using it = await underTest(() => ({ status: 500 }));
    it.recorder.record(workload, drifted);
    for (const waitMs of [1000, 2000, 4000]) {
      await until(() => it.clock.nextIn === waitMs, "the pause");
      it.clock.pass(waitMs);
    }
    await until(() => it.dropped("refused") === 1, "giving up");
    assert.equal(it.server.seen.length, 3);
  });

  test("asks for none in a namespace that ends, which takes nothing new", async () => {
    await using it = await underTest();
    it.recorder.record({ ...workload, metadata: { ...workload.metadata, namespace: "ending", uid: "u2" } }, drifted);
    it.recorder.record(workload, drifted);
    await it.seen(1);
    assert.equal(it.server.seen[0]?.path, "/apis/events.k8s.io/v1/namespaces/agents/events");
    assert.equal(it.dropped("namespace"), 1);
  });

  test("begins a new event when the server refuses the old one's repetition", async () => {
    await using it = await underTest(({ method }) => (method === "PATCH" ? { status: 404 } : { status: 201 }));
    it.recorder.record(workload, drifted);
    await it.seen(1);
    await it.quiet();
    it.recorder.record(workload, drifted);
    await until(() => it.clock.nextIn === 60_000, "the plan to write the count");
    it.clock.pass(60_000);
    await until(() => it.dropped("refused") === 1, "the refusal");
    it.recorder.record(workload, drifted);
    await it.seen(3);
    assert.equal(it.server.seen[2]?.method, "POST");
  });

  test("cuts a note at 1,024 bytes, between characters", async () => {
    await using it = await underTest();
    it.recorder.record(workload, { ...drifted, note: "grün€𝄞".repeat(300) });
    await it.seen(1);
    const { note } = bodyOf(it.server.seen[0]);
    assert.ok(Buffer.byteLength(note) <= 1024 && Buffer.byteLength(note) > 1000);
    assert.match(note, /^(grün€𝄞)+(g|gr|grü|grün|grün€)?…$/u);
  });
});
