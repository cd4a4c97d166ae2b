import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApplyConflict } from "../../../src/kube/api-error.ts";
import { Applier, type Desired } from "../../../src/kube/apply.ts";
import type { ResourceType } from "../../../src/kube/object.ts";
import { ManualClock } from "./manual-clock.ts";
import { type Reply, ScriptedServer, type SeenRequest } from "./scripted-server.ts";

const deployments: ResourceType = { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true };

const desired = (replicas: number): Desired => ({
  metadata: { name: "github", namespace: "agents", labels: { app: "x" } },
  spec: { replicas },
});

/** A Deployment as the server has it: with defaults, a status and its own bookkeeping. */
const live = (
  version: string,
  { replicas = 1, ready = 0, labels = { app: "x" } as Record<string, string>, uid = "u1", managedFields = [] as object[] } = {},
) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "github", namespace: "agents", uid, resourceVersion: version, generation: Number(version), labels, managedFields },
  spec: { replicas, strategy: { type: "RollingUpdate" } },
  status: { readyReplicas: ready },
});

const underTest = async (answer: (request: SeenRequest, index: number) => Reply) => {
  const server = await ScriptedServer.start(answer);
  const client = server.client(new ManualClock());
  return {
    server,
    applier: new Applier({ client, fieldManager: "ambit-workload" }),
    async [Symbol.asyncDispose]() {
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
};

describe("server-side apply", () => {
  test("sends only what is wanted, strictly, under its own name", async () => {
    await using it = await underTest(() => ({ status: 201, json: live("1") }));
    const { object, changed } = await it.applier.apply(deployments, desired(1));
    const [request] = it.server.seen;
    assert.equal(`${request?.method} ${request?.path}`, "PATCH /apis/apps/v1/namespaces/agents/deployments/github");
    assert.deepEqual(Object.fromEntries(request?.query ?? []), {
      fieldManager: "ambit-workload",
      force: "false",
      fieldValidation: "Strict",
    });
    assert.equal(request?.headers["content-type"], "application/apply-patch+yaml");
    assert.deepEqual(JSON.parse(request?.body ?? ""), {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "github", namespace: "agents", labels: { app: "x" } },
      spec: { replicas: 1 },
    });
    assert.equal(object.metadata.uid, "u1");
    assert.equal(changed, true);
  });

  const later: Record<string, { now: ReturnType<typeof live>; want?: Desired; sends: boolean }> = {
    "nothing for an object that is as it was": { now: live("1"), sends: false },
    "nothing when only the status changed": { now: live("2", { ready: 1 }), sends: false },
    "nothing when only the field managers changed": { now: live("2", { managedFields: [{ manager: "kubectl" }] }), sends: false },
    "again when somebody changed the spec": { now: live("2", { replicas: 5 }), sends: true },
    "again when somebody changed a label": { now: live("2", { labels: { app: "y" } }), sends: true },
    "again when another is wanted": { now: live("1"), want: desired(2), sends: true },
    "again when the object was made anew": { now: live("1", { uid: "u2" }), sends: true },
  };
  for (const [what, { now, want = desired(1), sends }] of Object.entries(later)) {
    test(`sends ${what}`, async () => {
      await using it = await underTest(() => ({ json: live("1") }));
      await it.applier.apply(deployments, desired(1));
      const { changed } = await it.applier.apply(deployments, want, { live: now });
      assert.equal(it.server.seen.length, sends ? 2 : 1);
      if (!sends) assert.equal(changed, false);
      else assert.equal(JSON.parse(it.server.seen[1]?.body ?? "").metadata.uid, now.metadata.uid, "only that very object");
    });
  }

  test("sends nothing more after an apply of which the server made nothing", async () => {
    await using it = await underTest(() => ({ json: live("7") }));
    const first = await it.applier.apply(deployments, desired(1), { live: live("7") });
    assert.equal(first.changed, false);
    await it.applier.apply(deployments, desired(1), { live: live("7") });
    assert.equal(it.server.seen.length, 1, "after a restart each object is sent once");
  });

  test("looks at the status alone when it applies the status", async () => {
    await using it = await underTest(() => ({ json: live("2", { ready: 1 }) }));
    const want: Desired = { metadata: { name: "github", namespace: "agents" }, status: { readyReplicas: 1 } };
    const now = live("1");
    await it.applier.apply(deployments, want, { live: now, subresource: "status", force: true });
    await it.applier.apply(deployments, want, { live: live("3", { ready: 1, replicas: 4 }), subresource: "status", force: true });
    assert.equal(it.server.seen.length, 1);
    assert.equal(it.server.seen[0]?.path, "/apis/apps/v1/namespaces/agents/deployments/github/status");
    assert.equal(it.server.seen[0]?.query.get("force"), "true");
    await it.applier.apply(deployments, want, { live: live("4", { ready: 0 }), subresource: "status", force: true });
    assert.equal(it.server.seen.length, 2);
  });

  test("forgets an object when it is told to", async () => {
    await using it = await underTest(() => ({ json: live("1") }));
    await it.applier.apply(deployments, desired(1));
    it.applier.forget(deployments, { namespace: "agents", name: "github" });
    await it.applier.apply(deployments, desired(1), { live: live("1") });
    assert.equal(it.server.seen.length, 2);
  });

  test("names the fields that another manager holds, and remembers nothing", async () => {
    const causes = [{ reason: "FieldManagerConflict", field: ".spec.replicas", message: 'conflict with "kubectl" using apps/v1' }];
    const refusal = { kind: "Status", code: 409, reason: "Conflict", message: "Apply failed with 1 conflict", details: { causes } };
    await using it = await underTest(() => ({ status: 409, json: refusal }));
    for (const _ of [1, 2]) {
      await assert.rejects(it.applier.apply(deployments, desired(1), { live: live("1") }), (thrown) => {
        assert.ok(thrown instanceof ApplyConflict);
        assert.equal(thrown.code, "ApplyConflict");
        assert.deepEqual(thrown.conflicts, [{ field: ".spec.replicas", message: 'conflict with "kubectl" using apps/v1' }]);
        return true;
      });
    }
    assert.equal(it.server.seen.length, 2);
  });

  test("calls an object of another uid a conflict, as the server itself does where there is none", async () => {
    const causes = [{ reason: "FieldValueInvalid", field: "metadata.uid", message: "field is immutable" }];
    await using it = await underTest(() => ({ status: 422, json: { kind: "Status", code: 422, reason: "Invalid", details: { causes } } }));
    await assert.rejects(it.applier.apply(deployments, desired(1), { live: live("1") }), { code: "Conflict", status: 409 });
  });

  test("writes integers beyond doubles exactly", async () => {
    await using it = await underTest(() => ({
      text: '{"metadata":{"name":"github","namespace":"agents","uid":"u1","resourceVersion":"1"},"spec":{"max":18446744073709551615}}',
    }));
    const { object } = await it.applier.apply(deployments, {
      metadata: { name: "github", namespace: "agents" },
      spec: { max: 18446744073709551615n },
    });
    assert.match(it.server.seen[0]?.body ?? "", /"max":18446744073709551615\b/);
    assert.deepEqual({ ...(object as unknown as { spec: object }).spec }, { max: 18446744073709551615n });
  });
});
