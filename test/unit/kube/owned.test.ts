import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Stalled } from "../../../src/api/errors.ts";
import { Applier } from "../../../src/kube/apply.ts";
import type { ClusterObject, OwnerReference, ResourceType } from "../../../src/kube/object.ts";
import { applyOwned, controlledBy } from "../../../src/kube/owned.ts";
import { ManualClock } from "./manual-clock.ts";
import { type Reply, ScriptedServer, type SeenRequest } from "./scripted-server.ts";

const services: ResourceType = { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true };
const owner = controlledBy({
  apiVersion: "ambit.dev/v1alpha1",
  kind: "Workload",
  metadata: { name: "github", namespace: "agents", uid: "w1" },
});
const desired = { metadata: { name: "github", namespace: "agents" }, spec: { clusterIP: "None" } };

const service = (ownerReferences?: OwnerReference[]): ClusterObject => ({
  metadata: { name: "github", namespace: "agents", uid: "s1", resourceVersion: "3", ...(ownerReferences ? { ownerReferences } : {}) },
});

const missing: Reply = { status: 404, json: { kind: "Status", reason: "NotFound" } };

const underTest = async (answer: (request: SeenRequest) => Reply) => {
  const server = await ScriptedServer.start(answer);
  const client = server.client(new ManualClock());
  const apply = (live?: ClusterObject) =>
    applyOwned(
      { client, applier: new Applier({ client, fieldManager: "ambit" }) },
      { type: services, desired, owner, live },
      new AbortController().signal,
    );
  return {
    server,
    apply,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
};

describe("an owned object", () => {
  test("is made with its owner's reference, without force, once it is seen that nothing has its name", async () => {
    await using it = await underTest(({ method }) => (method === "GET" ? missing : { json: service([owner]) }));
    await it.apply();
    const [looked, applied] = it.server.seen;
    assert.equal(looked?.method, "GET");
    assert.equal(applied?.query.get("force"), "false");
    assert.deepEqual(JSON.parse(applied?.body ?? "").metadata, { ...desired.metadata, ownerReferences: [owner], resourceVersion: "1" });
  });

  test("is brought back, with force, to that very object when it is ours", async () => {
    await using it = await underTest(() => ({ json: service([owner]) }));
    await it.apply(service([owner]));
    const [applied] = it.server.seen;
    assert.equal(applied?.method, "PATCH");
    assert.equal(applied?.query.get("force"), "true");
    assert.equal(JSON.parse(applied?.body ?? "").metadata.uid, "s1");
  });

  const others: Record<string, { references: OwnerReference[] | undefined; message: RegExp }> = {
    "of nobody": { references: undefined, message: /the Service agents\/github belongs to somebody else/ },
    "of another object": {
      references: [{ ...owner, kind: "Workload", name: "fetch", uid: "w2" }],
      message: /belongs to the Workload fetch/,
    },
    "of an owner of our name that is gone": { references: [{ ...owner, uid: "w0" }], message: /belongs to the Workload github/ },
    "that we own without controlling it": { references: [{ ...owner, controller: false }], message: /belongs to somebody else/ },
  };
  for (const [what, { references, message }] of Object.entries(others)) {
    for (const how of ["in the store", "only at the server"]) {
      test(`is never one ${what}, seen ${how}`, async () => {
        await using it = await underTest(() => ({ json: service(references) }));
        await assert.rejects(it.apply(how === "in the store" ? service(references) : undefined), (thrown) => {
          assert.ok(thrown instanceof Stalled);
          assert.equal(thrown.code, "ForeignObject");
          assert.match(thrown.message, message);
          return true;
        });
        assert.ok(it.server.seen.every(({ method }) => method === "GET"));
      });
    }
  }
});
