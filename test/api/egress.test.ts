import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { defaultNameTiming } from "../../src/egress/name-addresses.ts";
import type { NetworkPolicySpec } from "../../src/egress/network-policy.ts";
import { loadAccess } from "../../src/kube/access.ts";
import { ClusterClient } from "../../src/kube/client.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { EventRecorder } from "../../src/kube/events.ts";
import { noMetrics } from "../../src/kube/metrics.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import { namespaces, networkPolicies, services, workloads } from "../../src/kube/resource-types.ts";
import type { OperatorContext } from "../../src/operator/context.ts";
import { type Egress, egressOf } from "../../src/operator/egress/egress.ts";
import { defaultEgressSettings, type EgressSettings } from "../../src/operator/egress/settings.ts";
import { operatorInformers } from "../../src/operator/informers.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { type DnsServer, startDnsServer, type Zone } from "../support/dns-server.ts";

const quotas: ResourceType = { group: "", version: "v1", kind: "ResourceQuota", plural: "resourcequotas", namespaced: true };

type WithSpec = ClusterObject & { readonly spec: object };
type Policy = ClusterObject & { readonly spec: NetworkPolicySpec };

const reason = whyNoApiServer();
const withinMs = 15_000;

describe("egress of Workloads against a real API server", { skip: reason ?? false }, () => {
  let server: ApiServer;
  let client: ClusterClient;
  let names: DnsServer;
  let namespace: string;
  let running: { readonly egress: Egress; stop(): Promise<void> };
  const zone: Zone = {};

  /** Short times, so that a test sees all steps; nothing depends on how long they are. */
  const settings = (): EgressSettings => ({
    ...defaultEgressSettings,
    nameServers: [names.address],
    names: { ...defaultNameTiming, ttlFloorMs: 100, retryMs: 100, drainMs: 1_000 },
    converge: { settleMs: 200, narrowAfterMs: 300 },
  });

  const startOperator = async (): Promise<typeof running> => {
    const end = new AbortController();
    const log = (): void => {};
    const common = { client, clock: systemClock, random: Math.random, log, metrics: noMetrics };
    const informers = operatorInformers(common);
    const watching = informers.run(end.signal);
    await informers.synced;
    const context: OperatorContext = {
      ...common,
      stores: informers.stores,
      components: { fetch: () => assert.fail("egress needs no components") },
      events: new EventRecorder({ client, clock: systemClock, controller: "ambit.dev/test", instance: "test", uniqueName: () => "x" }),
      namespace: "ambit-system",
    };
    const egress = egressOf(context, { settings: settings() });
    const working = egress.run(end.signal);
    return {
      egress,
      stop: async () => {
        end.abort();
        await Promise.all([watching, working]);
      },
    };
  };

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    names = await startDnsServer(zone);
    client = new ClusterClient({
      access: await loadAccess({ file: server.kubeconfig }),
      clock: systemClock,
      random: Math.random,
      userAgent: "ambit-test",
    });
  });

  after(async () => {
    await client?.close();
    await names?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  beforeEach(async () => {
    for (const name of Object.keys(zone)) delete zone[name];
    namespace = `ambit-egress-${randomBytes(4).toString("hex")}`;
    await client.create(namespaces, { metadata: { name: namespace } });
    running = await startOperator();
  });

  afterEach(async () => {
    await running.stop();
    // Nobody empties a namespace without a controller manager, and the next operator would look at what is left.
    for (const { metadata } of (await client.listPage(workloads, { namespace })).items) await client.delete(workloads, metadata);
    await client.delete(namespaces, { name: namespace });
  });

  const image = `registry.test/tool@sha256:${"0".repeat(64)}`;

  const workload = (name: string, allowedHosts: Readonly<Record<string, readonly string[]>>): WithSpec => ({
    metadata: { name, namespace },
    spec: {
      components: Object.entries(allowedHosts).map(([component, hosts]) => ({
        name: component,
        image,
        localResources: { allowedHosts: [...hosts] },
      })),
    },
  });

  const create = (name: string, allowedHosts: Readonly<Record<string, readonly string[]>>): Promise<ClusterObject> =>
    client.create(workloads, workload(name, allowedHosts));

  const change = async (name: string, allowedHosts: Readonly<Record<string, readonly string[]>>): Promise<void> => {
    const live = await client.get<WithSpec>(workloads, { namespace, name });
    await client.replace<WithSpec>(workloads, { ...live, spec: workload(name, allowedHosts).spec });
  };

  const policy = (name: string): Promise<Policy | null> =>
    client.get<Policy>(networkPolicies, { namespace, name }).catch((thrown: { code?: string }) => {
      if (thrown.code === "NotFound") return null;
      throw thrown;
    });

  /** Ranges that the policy lets out, with their ports. */
  const lets = (of: Policy | null): string[] =>
    (of?.spec.egress ?? []).flatMap(({ to, ports }) => to.map(({ ipBlock }) => `${ipBlock?.cidr} ${ports[0]?.port}`)).sort();

  const table = (workload: string, component = "api") => running.egress.tableFor({ namespace, workload, component })?.table;

  const eventually = async (what: string, holds: () => Promise<boolean> | boolean, seen: () => unknown): Promise<void> => {
    if (!(await becomes(async () => holds(), withinMs))) assert.fail(`${what}; last seen: ${JSON.stringify(await seen())}`);
  };

  const eventuallyLets = (name: string, ranges: readonly string[]): Promise<void> =>
    eventually(
      `the policy ${name} lets out ${ranges}`,
      async () => {
        const found = await policy(name);
        return found !== null && lets(found).join() === ranges.join();
      },
      () => policy(name),
    );

  test("an allowed host becomes a policy that the API server takes, and then a table and a status", async () => {
    zone["a.test"] = { addresses: ["8.8.8.8", "2606:4700::1111"], ttl: 1 };
    const made = await create("tool", { api: ["https://a.test", "*.b.test"] });
    await eventuallyLets("tool-api", ["2606:4700::1111/128 443", "8.8.8.8/32 443"]);
    const found = await policy("tool-api");
    assert.equal(found?.metadata.ownerReferences?.[0]?.uid, made.metadata.uid);
    assert.deepEqual(found?.spec.policyTypes, ["Ingress", "Egress"]);
    assert.deepEqual(found?.spec.podSelector.matchLabels, { "ambit.dev/workload": "tool", "ambit.dev/component": "api" });
    await eventually(
      "there is a table",
      () => table("tool") !== undefined,
      () => null,
    );
    assert.deepEqual(table("tool"), { "a.test:443": ["8.8.8.8", "2606:4700::1111"] });
    const [open, closed] = running.egress.statusOf({ namespace, workload: "tool", component: "api" }, []);
    assert.deepEqual([open?.host, open?.addressCount, open?.enforcedBy], ["https://a.test", 2, "networkpolicy"]);
    assert.equal(closed?.notEnforcedBecause?.reason, "BackendCannotExpress");
  });

  test("nothing allowed is a policy of nothing, with an empty table", async () => {
    await create("tool", { api: [] });
    await eventually(
      "there is a policy",
      async () => (await policy("tool-api")) !== null,
      () => null,
    );
    const found = await policy("tool-api");
    assert.deepEqual(found?.spec.policyTypes, ["Ingress", "Egress"], "without egress rules it lets nothing out");
    assert.equal(found?.spec.egress, undefined);
    await eventually(
      "there is a table",
      () => table("tool") !== undefined,
      () => null,
    );
    assert.deepEqual(table("tool"), {});
  });

  test("an address that changes is let out before it is dialled, and the old one leaves after draining", async () => {
    zone["a.test"] = { addresses: ["8.8.8.1"], ttl: 0 };
    await create("tool", { api: ["a.test:443"] });
    await eventually(
      "the first table",
      () => table("tool")?.["a.test:443"]?.join() === "8.8.8.1",
      () => table("tool"),
    );
    const seen: string[] = [];
    const stopListening = running.egress.subscribe(() => seen.push(table("tool")?.["a.test:443"]?.join() ?? ""));
    zone["a.test"] = { addresses: ["8.8.8.2"], ttl: 0 };
    await eventuallyLets("tool-api", ["8.8.8.1/32 443", "8.8.8.2/32 443"]);
    await eventually(
      "the new table",
      () => table("tool")?.["a.test:443"]?.join() === "8.8.8.2",
      () => table("tool"),
    );
    await eventuallyLets("tool-api", ["8.8.8.2/32 443"]);
    stopListening();
    assert.deepEqual(
      seen.filter((addresses, index) => addresses !== seen[index - 1]),
      ["8.8.8.1", "8.8.8.2,8.8.8.1", "8.8.8.2"].slice(seen[0] === "8.8.8.1" ? 0 : 1),
      "the old one is dialled until the new one is let out, and beside it while it drains",
    );
  });

  test("hosts that a Workload loses leave the table and then the policy", async () => {
    zone["a.test"] = { addresses: ["8.8.8.1"], ttl: 60 };
    zone["b.test"] = { addresses: ["8.8.8.2"], ttl: 60 };
    await create("tool", { api: ["a.test:443", "b.test:443"] });
    await eventually(
      "both in the table",
      () => Object.keys(table("tool") ?? {}).length === 2,
      () => table("tool"),
    );
    await change("tool", { api: ["b.test:443"] });
    await eventually(
      "one in the table",
      () => Object.keys(table("tool") ?? {}).join() === "b.test:443",
      () => table("tool"),
    );
    await eventuallyLets("tool-api", ["8.8.8.2/32 443"]);
  });

  test("a policy that somebody widened or removed is put back", async () => {
    zone["a.test"] = { addresses: ["8.8.8.1"], ttl: 60 };
    await create("tool", { api: ["a.test:443"] });
    await eventuallyLets("tool-api", ["8.8.8.1/32 443"]);
    const live = await policy("tool-api");
    assert.ok(live);
    const egress = [...live.spec.egress, { to: [{ ipBlock: { cidr: "0.0.0.0/0" } }], ports: [{ protocol: "TCP", port: 443 }] }];
    await client.replace<Policy>(networkPolicies, { ...live, spec: { ...live.spec, egress } });
    await eventuallyLets("tool-api", ["8.8.8.1/32 443"]);
    await client.delete(networkPolicies, { namespace, name: "tool-api" });
    await eventuallyLets("tool-api", ["8.8.8.1/32 443"]);
  });

  test("a foreign policy under the wanted name is left alone, and other components have theirs", async () => {
    const spec = { podSelector: {}, policyTypes: ["Ingress"] };
    const foreign = await client.create<WithSpec>(networkPolicies, {
      metadata: { name: "tool-api", namespace },
      spec,
    });
    zone["a.test"] = { addresses: ["8.8.8.1"], ttl: 60 };
    await create("tool", { api: ["a.test:443"], other: ["a.test:443"] });
    await eventuallyLets("tool-other", ["8.8.8.1/32 443"]);
    const of = { namespace, workload: "tool", component: "api" };
    assert.equal(running.egress.faultOf(of)?.reason, "ForeignObject");
    assert.equal(running.egress.tableFor(of), undefined);
    assert.equal((await policy("tool-api"))?.metadata.resourceVersion, foreign.metadata.resourceVersion);
  });

  test("a policy that the API server refuses is told as a fault, and other components have theirs", async () => {
    await create("tool", { other: [] });
    await eventually(
      "there is a policy",
      async () => (await policy("tool-other")) !== null,
      () => null,
    );
    const quota = { "count/networkpolicies.networking.k8s.io": "1" };
    const name = "no-more-policies";
    await client.create<WithSpec>(quotas, { metadata: { name, namespace }, spec: { hard: quota } });
    // No controller counts here.
    await client.request({
      method: "PATCH",
      path: objectPath(quotas, { name, namespace }, "status"),
      contentType: "application/merge-patch+json",
      body: { status: { hard: quota, used: quota } },
    });
    const another = { metadata: { name: "another", namespace }, spec: { podSelector: {} } };
    const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
    const tryOne = () => client.request({ method: "POST", path, query: { dryRun: "All" }, body: another });
    await eventually(
      "the API server takes no more policies",
      () =>
        tryOne().then(
          () => false,
          () => true,
        ),
      () => null,
    );
    await change("tool", { api: [], other: [] });
    const of = { namespace, workload: "tool", component: "api" };
    await eventually(
      "there is a fault",
      () => running.egress.faultOf(of)?.reason === "PolicyRefused",
      () => running.egress.faultOf(of),
    );
    assert.match(running.egress.faultOf(of)?.message ?? "", /quota/);
    assert.equal(running.egress.faultOf({ ...of, component: "other" }), undefined);
  });

  test("a Service is let out to its pods and dialled at its address, and followed", async () => {
    const service = (app: string): WithSpec => ({
      metadata: { name: "tickets", namespace },
      spec: { selector: { app }, ports: [{ port: 8080, targetPort: "http" }] },
    });
    const entry = `tickets.${namespace}.svc:8080`;
    await create("tool", { api: [entry] });
    await eventually(
      "a table without it",
      () => table("tool") !== undefined,
      () => null,
    );
    assert.deepEqual(table("tool"), {});
    const made = await client.create(services, service("tickets"));
    const { clusterIP } = made.spec as { readonly clusterIP?: string };
    await eventually(
      "its address",
      () => table("tool")?.[entry]?.join() === clusterIP,
      () => table("tool"),
    );
    const selected = async () => {
      const [rule] = (await policy("tool-api"))?.spec.egress ?? [];
      return JSON.stringify([rule?.to[0]?.podSelector?.matchLabels, rule?.ports[0]?.port, rule?.to.length]);
    };
    assert.equal(await selected(), JSON.stringify([{ app: "tickets" }, "http", 1]));
    await client.replace<WithSpec>(services, { ...made, spec: { ...made.spec, selector: { app: "queue" } } });
    await eventually("the policy follows", async () => (await selected()) === JSON.stringify([{ app: "queue" }, "http", 1]), selected);
    await client.delete(services, { namespace, name: "tickets" });
    await eventually(
      "it is gone",
      () => table("tool")?.[entry] === undefined,
      () => table("tool"),
    );
  });

  test("the policy of a component that is gone goes", async () => {
    await create("tool", { api: [], other: [] });
    await eventually(
      "both",
      async () => (await policy("tool-api")) !== null && (await policy("tool-other")) !== null,
      () => null,
    );
    await change("tool", { api: [] });
    await eventually(
      "one",
      async () => (await policy("tool-other")) === null,
      () => policy("tool-other"),
    );
    assert.notEqual(await policy("tool-api"), null);
  });

  test("an operator that starts anew takes nothing away that hosts still dial, and writes nothing that is right", async () => {
    zone["a.test"] = { addresses: ["8.8.8.1"], ttl: 60 };
    zone["b.test"] = { addresses: ["8.8.8.2"], ttl: 60 };
    await create("same", { api: ["a.test:443"] });
    await create("away", { api: ["b.test:443"] });
    await eventuallyLets("same-api", ["8.8.8.1/32 443"]);
    await eventually(
      "the table",
      () => table("away") !== undefined && table("same") !== undefined,
      () => null,
    );
    const version = running.egress.tableFor({ namespace, workload: "same", component: "api" })?.version ?? 0;
    const untouched = (await policy("same-api"))?.metadata.resourceVersion;
    await running.stop();

    zone["b.test"] = "silent";
    running = await startOperator();
    await eventually(
      "the same table",
      () => table("same")?.["a.test:443"]?.join() === "8.8.8.1",
      () => table("same"),
    );
    assert.ok((running.egress.tableFor({ namespace, workload: "same", component: "api" })?.version ?? 0) > version);
    assert.equal((await policy("same-api"))?.metadata.resourceVersion, untouched);
    assert.deepEqual(lets(await policy("away-api")), ["8.8.8.2/32 443"]);
  });
});
