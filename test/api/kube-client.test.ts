import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { loadAccess } from "../../src/kube/access.ts";
import { ApplyConflict } from "../../src/kube/api-error.ts";
import { Applier, type Desired } from "../../src/kube/apply.ts";
import { ClusterClient } from "../../src/kube/client.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { EventRecorder } from "../../src/kube/events.ts";
import { Informer } from "../../src/kube/informer.ts";
import { leases, runAsLeader } from "../../src/kube/leader-election.ts";
import type { ClusterObject, ManagedFields, ResourceType } from "../../src/kube/object.ts";
import { applyOwned, controlledBy } from "../../src/kube/owned.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";

interface ConfigMap extends ClusterObject {
  readonly data?: Readonly<Record<string, string>>;
}

interface Deployment extends ClusterObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly message?: string }[] };
}

const namespaces: ResourceType = { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false };
const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
const deployments: ResourceType = { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true };
const events: ResourceType = { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true };

const reason = whyNoApiServer();

describe("the cluster core against a real API server", { skip: reason ?? false }, () => {
  /** Unlike any that a given cluster may have. */
  const namespace = `ambit-kube-${randomBytes(4).toString("hex")}`;
  let server: ApiServer;
  let client: ClusterClient;

  before(async () => {
    server = await startApiServer();
    client = new ClusterClient({
      access: await loadAccess({ file: server.kubeconfig }),
      clock: systemClock,
      random: Math.random,
      userAgent: "ambit-test",
    });
    await client.create(namespaces, { metadata: { name: namespace } });
  });

  after(async () => {
    await client?.delete(namespaces, { name: namespace });
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  const deployment = (name: string, image: string) => ({
    metadata: { name, namespace },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "host", image, ports: [{ containerPort: 8080 }] }] } },
    },
  });

  test("an apply is written once, and not again while it would change nothing", async () => {
    const want = deployment("steady", "host:1");
    const first = await new Applier({ client, fieldManager: "ambit" }).apply<Deployment>(deployments, want);
    assert.equal(first.changed, true);
    const second = await new Applier({ client, fieldManager: "ambit" }).apply(deployments, want, { live: first.object });
    assert.equal(second.changed, false, "an operator that starts anew changes nothing");
    assert.equal(second.object.metadata.resourceVersion, first.object.metadata.resourceVersion);
    const changed = await new Applier({ client, fieldManager: "ambit" }).apply(deployments, deployment("steady", "host:2"), {
      live: second.object,
    });
    assert.equal(changed.changed, true);
    assert.equal(changed.object.metadata.generation, 2);
  });

  test("a field that is no longer wanted goes, and a field that others set stays", async () => {
    const applier = new Applier({ client, fieldManager: "ambit" });
    const metadata = { name: "fields", namespace };
    const { object } = await applier.apply<ConfigMap>(configMaps, { metadata, data: { ours: "1", dropped: "2" } });
    const other = new Applier({ client, fieldManager: "person" });
    await other.apply<ConfigMap>(configMaps, { metadata, data: { theirs: "3" } });
    const after = await applier.apply<ConfigMap>(configMaps, { metadata, data: { ours: "1" } }, { live: object });
    assert.deepEqual(after.object.data, { ours: "1", theirs: "3" });
  });

  test("a field that another manager set otherwise is a conflict that names it, unless it is taken by force", async () => {
    const metadata = { name: "contested", namespace };
    const { object } = await new Applier({ client, fieldManager: "person" }).apply<ConfigMap>(configMaps, {
      metadata,
      data: { key: "theirs" },
    });
    const applier = new Applier({ client, fieldManager: "ambit" });
    await assert.rejects(applier.apply(configMaps, { metadata, data: { key: "ours" } }, { live: object }), (thrown) => {
      assert.ok(thrown instanceof ApplyConflict);
      assert.equal(thrown.conflicts[0]?.field, ".data.key");
      assert.match(thrown.conflicts[0]?.message ?? "", /person/);
      return true;
    });
    const forced = await applier.apply<ConfigMap>(configMaps, { metadata, data: { key: "ours" } }, { live: object, force: true });
    assert.deepEqual(forced.object.data, { key: "ours" });
  });

  test("an object that was deleted and made again is not taken for the one that was seen", async () => {
    const applier = new Applier({ client, fieldManager: "ambit" });
    const metadata = { name: "recreated", namespace };
    const { object } = await applier.apply<ConfigMap>(configMaps, { metadata, data: { a: "1" } });
    await client.delete(configMaps, metadata, { uid: object.metadata.uid ?? "" });
    await client.create<ConfigMap>(configMaps, { metadata, data: { b: "2" } });
    await assert.rejects(applier.apply(configMaps, { metadata, data: { a: "2" } }, { live: object }), { code: "Conflict" });
    await assert.rejects(client.delete(configMaps, metadata, { uid: object.metadata.uid ?? "" }), { code: "Conflict" });
    assert.deepEqual((await client.get<ConfigMap>(configMaps, metadata)).data, { b: "2" });
  });

  test("a field that the kind doesn't have is refused, with its name", async () => {
    const applier = new Applier({ client, fieldManager: "ambit" });
    const wrong = { ...deployment("wrong", "host:1"), spec: { ...deployment("wrong", "host:1").spec, replica: 2 } };
    await assert.rejects(applier.apply(deployments, wrong), /replica/);
  });

  test("a status is applied by itself, beside the conditions that others set", async () => {
    const { object } = await new Applier({ client, fieldManager: "ambit" }).apply<Deployment>(deployments, deployment("status", "host:1"));
    const metadata = { name: "status", namespace };
    const condition = (type: string, message: string) => ({ type, status: "True", reason: "Test", message });
    const other = new Applier({ client, fieldManager: "other" });
    await other.apply<Deployment>(
      deployments,
      { metadata, status: { conditions: [condition("Available", "theirs")] } },
      { subresource: "status" },
    );
    const ours = new Applier({ client, fieldManager: "ambit-status" });
    const want = { metadata, status: { conditions: [condition("Progressing", "ours")] } };
    const applied = await ours.apply<Deployment>(deployments, want, { live: object, subresource: "status", force: true });
    assert.deepEqual(
      applied.object.status?.conditions?.map(({ type, message }) => [type, message]),
      [
        ["Available", "theirs"],
        ["Progressing", "ours"],
      ],
    );
    assert.equal(applied.object.metadata.generation, 1);
    const managers = (applied.object.metadata.managedFields ?? []).map(({ manager, subresource }: ManagedFields) => [manager, subresource]);
    assert.deepEqual(
      managers
        .filter(([, subresource]) => subresource === "status")
        .map(([manager]) => manager)
        .sort(),
      ["ambit-status", "other"],
    );
  });

  test("an owned object is made, and a foreign one is left as it is", async () => {
    const applier = new Applier({ client, fieldManager: "ambit" });
    const parent = await client.create<ConfigMap>(configMaps, { metadata: { name: "parent", namespace } });
    const owner = controlledBy(parent);
    const { signal } = new AbortController();
    const made = await applyOwned<ConfigMap>(
      { applier, client },
      { type: configMaps, desired: { metadata: { name: "child", namespace }, data: { a: "1" } }, owner, live: undefined },
      signal,
    );
    assert.equal(made.object.metadata.ownerReferences?.[0]?.uid, parent.metadata.uid);
    const foreign = await client.create<ConfigMap>(configMaps, { metadata: { name: "foreign", namespace }, data: { a: "theirs" } });
    const want = { type: configMaps, desired: { metadata: { name: "foreign", namespace }, data: { b: "1" } }, owner, live: undefined };
    await assert.rejects(applyOwned({ applier, client }, want, signal), { code: "ForeignObject" });
    assert.equal((await client.get(configMaps, foreign.metadata)).metadata.resourceVersion, foreign.metadata.resourceVersion);
  });

  test("an object that must be new is made, and one that is there is never touched", async () => {
    const applier = new Applier({ client, fieldManager: "ambit" });
    const wants: readonly (readonly [ResourceType, Desired])[] = [
      [configMaps, { metadata: { name: "new", namespace }, data: { a: "1" } }],
      [deployments, deployment("new", "host:1")],
      [namespaces, { metadata: { name: `${namespace}-new` } }],
    ];
    for (const [type, want] of wants) {
      const { object } = await applier.apply(type, want, { mustBeNew: true });
      const again = new Applier({ client, fieldManager: "another" }).apply(type, want, { mustBeNew: true, force: true });
      await assert.rejects(again, { code: "Conflict" });
      assert.equal((await client.get(type, object.metadata)).metadata.resourceVersion, object.metadata.resourceVersion);
      await client.delete(type, object.metadata);
    }
  });

  test("a list comes in pages, all of one version", async () => {
    for (let number = 0; number < 7; number++) {
      await client.create<ConfigMap>(configMaps, { metadata: { name: `page-${number}`, namespace, labels: { list: "pages" } } });
    }
    const selection = { namespace, labelSelector: "list=pages" };
    const first = await client.listPage(configMaps, selection, { limit: 3 });
    assert.equal(first.items.length, 3);
    const second = await client.listPage(configMaps, selection, { limit: 3, next: first.next ?? "" });
    assert.equal(second.resourceVersion, first.resourceVersion);
    assert.deepEqual([first, second].flatMap(({ items }) => items.map(({ metadata }) => metadata.name)).length, 6);
  });

  test("an informer follows a selection, and an object that leaves it is gone", async () => {
    const end = new AbortController();
    const informer = new Informer<ConfigMap>({
      client,
      type: configMaps,
      selection: { namespace, labelSelector: "follow=yes" },
      indexes: { color: ({ data }) => (data?.color === undefined ? [] : [data.color]) },
      clock: systemClock,
      random: Math.random,
    });
    const ended = informer.run(end.signal);
    await informer.synced;
    const metadata = { name: "followed", namespace, labels: { follow: "yes" } };
    await client.create<ConfigMap>(configMaps, { metadata, data: { color: "red" } });
    assert.ok(await becomes(async () => informer.store.find("color", "red").length === 1, 10_000));
    const seen = informer.store.get(`${namespace}/followed`);
    assert.equal(seen?.kind, "ConfigMap");
    assert.equal(seen?.metadata.managedFields, undefined);
    await client.replace<ConfigMap>(configMaps, { metadata: { ...metadata, labels: { follow: "no" } }, data: { color: "red" } });
    assert.ok(await becomes(async () => informer.store.size === 0, 10_000));
    end.abort();
    await ended;
  });

  test("of two candidates one leads, and the other takes over at once when the first stops", async () => {
    const lease = { namespace, name: "operator" };
    const order: string[] = [];
    const stops = ["a", "b"].map(() => new AbortController());
    const candidate = (identity: string, signal: AbortSignal) =>
      runAsLeader(
        { client, lease, identity, clock: systemClock, random: Math.random, timing: { leaseMs: 4000, renewWithinMs: 3000, retryMs: 200 } },
        async (leadership) => {
          order.push(identity);
          leadership.assertHeld();
          await new Promise((resolve) => leadership.signal.addEventListener("abort", resolve));
        },
        signal,
      );
    const results = ["a", "b"].map((identity, index) => candidate(identity, (stops[index] as AbortController).signal));
    assert.ok(await becomes(async () => order.length === 1, 10_000));
    const [first] = order;
    stops[first === "a" ? 0 : 1]?.abort();
    assert.ok(await becomes(async () => order.length === 2, 10_000));
    const held = await client.get<ClusterObject & { spec: { leaseTransitions: number; holderIdentity: string } }>(leases, lease);
    assert.equal(held.spec.holderIdentity, order[1]);
    for (const stop of stops) stop.abort();
    assert.deepEqual(await Promise.all(results), ["ended", "ended"]);
    assert.notEqual(order[0], order[1]);
  });

  test("events are accepted, and their repetitions counted in one", async () => {
    const about = await client.create<ConfigMap>(configMaps, { metadata: { name: "eventful", namespace } });
    const end = new AbortController();
    const recorder = new EventRecorder({
      client,
      clock: systemClock,
      controller: "ambit.dev/operator",
      instance: "operator-0",
      uniqueName: randomUUID,
      limits: { waiting: 10, series: 10, seriesMs: 100, forgetMs: 60_000, burst: 10, perSecond: 1 },
    });
    const ended = recorder.run(end.signal);
    for (const _ of [1, 2, 3]) {
      recorder.record(about, { type: "Warning", reason: "Drifted", action: "Judge", note: "the definition changed" });
      await new Promise((resolve) => setImmediate(resolve));
    }
    const written = async () => (await client.listPage<ClusterObject & { series?: { count: number } }>(events, { namespace })).items;
    assert.ok(await becomes(async () => (await written())[0]?.series?.count === 3, 10_000));
    assert.equal((await written()).length, 1);
    end.abort();
    await ended;
  });
});
