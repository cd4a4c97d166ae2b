import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Refused, Transient } from "../../../src/api/errors.ts";
import { ApiError, isConflict, isExpired, isNotFound } from "../../../src/kube/api-error.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import type { ResourceType } from "../../../src/kube/object.ts";
import { ManualClock } from "./manual-clock.ts";
import { RecordedMetrics } from "./recorded-metrics.ts";
import { type Reply, ScriptedServer, type SeenRequest, until } from "./scripted-server.ts";

const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
const workloads: ResourceType = { group: "ambit.dev", version: "v1alpha1", kind: "Workload", plural: "workloads", namespaced: true };
const key = { namespace: "agents", name: "a" };
const stored = { metadata: { ...key, uid: "u", resourceVersion: "1" } };

const underTest = async (answer: (request: SeenRequest, index: number) => Reply, tokens = ["t1"]) => {
  const clock = new ManualClock();
  const metrics = new RecordedMetrics();
  const server = await ScriptedServer.start(answer);
  const asked: boolean[] = [];
  const client = server.client(clock, {
    metrics,
    access: {
      server: new URL("/prefix/", server.url),
      namespace: "default",
      credentials: async (fresh = false) => {
        asked.push(fresh);
        return { headers: { authorization: `Bearer ${tokens[fresh ? 1 : 0]}` }, tls: {} };
      },
    },
  });
  return {
    clock,
    metrics,
    server,
    client,
    asked,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
};

const refusal = (code: number, reason: string, more = {}): Reply => ({
  status: code,
  json: { kind: "Status", code, reason, message: `it is ${reason}`, ...more },
});

describe("a cluster client", () => {
  const requests: Record<string, { ask: (client: ClusterClient) => Promise<unknown>; line: string; body?: unknown }> = {
    "get of the core group": { ask: (client) => client.get(configMaps, key), line: "GET /prefix/api/v1/namespaces/agents/configmaps/a" },
    "get of another group": {
      ask: (client) => client.get(workloads, key),
      line: "GET /prefix/apis/ambit.dev/v1alpha1/namespaces/agents/workloads/a",
    },
    create: {
      ask: (client) => client.create(workloads, stored),
      line: "POST /prefix/apis/ambit.dev/v1alpha1/namespaces/agents/workloads",
      body: { apiVersion: "ambit.dev/v1alpha1", kind: "Workload", ...stored },
    },
    replace: {
      ask: (client) => client.replace(configMaps, stored),
      line: "PUT /prefix/api/v1/namespaces/agents/configmaps/a",
      body: { apiVersion: "v1", kind: "ConfigMap", ...stored },
    },
    delete: {
      ask: (client) => client.delete(configMaps, key, { uid: "u" }),
      line: "DELETE /prefix/api/v1/namespaces/agents/configmaps/a",
      body: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background", preconditions: { uid: "u" } },
    },
  };
  for (const [what, { ask, line, body }] of Object.entries(requests)) {
    test(`asks for ${what} as the API wants it`, async () => {
      await using it = await underTest(() => ({ json: stored }));
      await ask(it.client);
      const [request] = it.server.seen;
      assert.equal(`${request?.method} ${request?.path}`, line);
      assert.deepEqual(request?.body ? JSON.parse(request.body) : undefined, body);
      assert.equal(request?.headers.authorization, "Bearer t1");
      assert.equal(request?.headers["user-agent"], "test");
    });
  }

  const names: Record<string, { namespace?: string; name: string }> = {
    "no namespace": { name: "a" },
    "no name": { namespace: "agents", name: "" },
    "dots for a namespace": { namespace: "..", name: "a" },
    "a dot for a name": { namespace: "agents", name: "." },
    "a slash in its name": { namespace: "agents", name: "a/status" },
  };
  for (const [what, badKey] of Object.entries(names)) {
    test(`asks nothing for an object with ${what}`, async () => {
      await using it = await underTest(() => ({ json: stored }));
      await assert.rejects(it.client.get(configMaps, badKey), TypeError);
      assert.equal(it.server.seen.length, 0);
    });
  }

  test("fills in the kind that items of lists come without, and reads long integers exactly", async () => {
    await using it = await underTest(() => ({
      text: '{"metadata":{"resourceVersion":"9","continue":""},"items":[{"metadata":{"name":"a"},"spec":{"most":9223372036854775807}}]}',
    }));
    const page = await it.client.listPage<{ metadata: { name: string }; kind?: string; spec?: { most: unknown } }>(workloads, {});
    assert.equal(it.server.seen[0]?.path, "/prefix/apis/ambit.dev/v1alpha1/workloads");
    assert.equal(page.resourceVersion, "9");
    assert.equal(page.next, undefined);
    assert.equal(page.items[0]?.kind, "Workload");
    assert.equal(page.items[0]?.spec?.most, 9223372036854775807n);
  });

  const refusals: Record<string, { reply: Reply; code: string; is?: (thrown: unknown) => boolean }> = {
    "an object that is not there": { reply: refusal(404, "NotFound"), code: "NotFound", is: isNotFound },
    "a version that changed": { reply: refusal(409, "Conflict"), code: "Conflict", is: isConflict },
    "an object that is there already": { reply: refusal(409, "AlreadyExists"), code: "AlreadyExists", is: isConflict },
    "a version that is too old": { reply: refusal(410, "Expired"), code: "Expired", is: isExpired },
    "a field that is wrong": {
      reply: refusal(422, "Invalid", { details: { causes: [{ reason: "FieldValueInvalid", field: "spec.x", message: "no" }] } }),
      code: "Invalid",
    },
    "a proxy's plain answer": { reply: { status: 502, text: "<html>bad gateway</html>" }, code: "BadGateway" },
    "an answer without a word": { reply: { status: 403, text: "" }, code: "Forbidden" },
    "a redirection, which is not followed": { reply: { status: 307, headers: { location: "http://192.0.2.1/" } }, code: "Http307" },
  };
  for (const [what, { reply, code, is = () => true }] of Object.entries(refusals)) {
    test(`rejects with a typed error for ${what}`, async () => {
      await using it = await underTest(() => reply);
      await assert.rejects(it.client.get(configMaps, key), (thrown) => {
        assert.ok(thrown instanceof ApiError);
        assert.equal(thrown.code, code);
        assert.ok(is(thrown));
        assert.match(thrown.message, /^GET \/api\/v1\/namespaces\/agents\/configmaps\/a: /);
        return true;
      });
      assert.equal(it.server.seen.length, 1);
    });
  }

  test("tells whether there was something to delete", async () => {
    let there = true;
    await using it = await underTest(() => (there ? { json: {} } : refusal(404, "NotFound")));
    assert.equal(await it.client.delete(configMaps, key), true);
    there = false;
    assert.equal(await it.client.delete(configMaps, key), false);
  });

  test("waits as long as a busy server asks, and asks again", async () => {
    await using it = await underTest((_, index) =>
      index === 0 ? { status: 429, headers: { "retry-after": "3" }, text: "slow down" } : index === 1 ? { status: 429 } : { json: stored },
    );
    const answer = it.client.get(configMaps, key);
    for (const waitMs of [3000, 1000]) {
      await until(() => it.clock.nextIn === waitMs, "the pause");
      it.clock.pass(waitMs);
    }
    assert.equal((await answer).metadata.name, "a");
    assert.equal(it.metrics.value("rest_client_requests_total", { code: "429", method: "GET", host: it.server.url.host }), 2);
    assert.equal(it.metrics.value("rest_client_requests_total", { code: "200", method: "GET", host: it.server.url.host }), 1);
  });

  test("stops waiting for a busy server when it is told to, and after some attempts", async () => {
    await using it = await underTest(() => ({ status: 429, headers: { "retry-after": "1" } }));
    const stop = new AbortController();
    const stopped = assert.rejects(it.client.get(configMaps, key, stop.signal), /enough/);
    await until(() => it.clock.nextIn === 1000, "the pause");
    stop.abort(new Error("enough"));
    await stopped;
    const given = assert.rejects(it.client.get(configMaps, key), { code: "TooManyRequests", retryAfterMs: 1000 });
    for (const _ of [1, 2, 3]) {
      await until(() => it.clock.nextIn === 1000, "the pause");
      it.clock.pass(1000);
    }
    await given;
    assert.equal(it.server.seen.length, 5);
  });

  test("has its credentials made anew when they are not accepted, once", async () => {
    await using it = await underTest(
      ({ headers }) => (headers.authorization === "Bearer t2" ? { json: stored } : refusal(401, "Unauthorized")),
      ["t1", "t2"],
    );
    await it.client.get(configMaps, key);
    assert.deepEqual(it.asked, [false, true]);
    await using other = await underTest(() => refusal(401, "Unauthorized"), ["t1", "t2"]);
    await assert.rejects(other.client.get(configMaps, key), { code: "Unauthorized" });
    assert.equal(other.server.seen.length, 2);
  });

  test("gives up a server that does not answer in time", async () => {
    await using it = await underTest(() => ({ hang: true }));
    const asked = assert.rejects(it.client.get(configMaps, key), { code: "ApiTimeout" });
    await until(() => it.server.seen.length === 1, "the request");
    it.clock.pass(30_000);
    await asked;
  });

  const unreadable: Record<string, Reply> = {
    "is no JSON": { text: "{" },
    "has no name": { json: { metadata: {} } },
    "is null": { text: "null" },
  };
  for (const [what, reply] of Object.entries(unreadable)) {
    test(`rejects an answer that ${what}`, async () => {
      await using it = await underTest(() => reply);
      await assert.rejects(it.client.get(configMaps, key), { code: "ApiAnswerUnreadable" });
    });
  }

  test("reads no answer that is larger than any can be", async () => {
    const server = await ScriptedServer.start(() => ({ text: `"${"x".repeat(5000)}"` }));
    const client = server.client(new ManualClock(), { limits: { requestMs: 1000, connectMs: 1000, responseBytes: 4096, retries: 0 } });
    await assert.rejects(client.get(configMaps, key), { code: "ApiAnswerUnreadable" });
    await client.close();
    await server[Symbol.asyncDispose]();
  });

  test("says that a server can't be reached", async () => {
    const server = await ScriptedServer.start(() => ({}));
    const client = server.client(new ManualClock());
    await server[Symbol.asyncDispose]();
    await assert.rejects(client.get(configMaps, key), (thrown) => thrown instanceof Transient && thrown.code === "ApiUnreachable");
    await client.close();
  });

  test("sends no write that its guard forbids, not even the repetition of one", async () => {
    let held = true;
    await using it = await underTest(() => ({ status: 429, headers: { "retry-after": "1" } }));
    const guarded = it.client.guardedBy(() => {
      if (!held) throw new Refused("LeadershipLost", "no longer");
    });
    const write = assert.rejects(guarded.create(configMaps, stored), { code: "LeadershipLost" });
    await until(() => it.clock.nextIn === 1000, "the pause");
    held = false;
    it.clock.pass(1000);
    await write;
    assert.equal(it.server.seen.length, 1);
    it.server.answer = () => ({ json: stored });
    await assert.rejects(guarded.delete(configMaps, key), { code: "LeadershipLost" });
    await guarded.get(configMaps, key);
    await it.client.create(configMaps, stored);
    assert.deepEqual(
      it.server.seen.map(({ method }) => method),
      ["POST", "GET", "POST"],
    );
  });
});
