import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { isNotFound } from "../../src/kube/api-error.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { leases } from "../../src/kube/leader-election.ts";
import type { ClusterObject } from "../../src/kube/object.ts";
import { namespaces, secrets, workloads } from "../../src/kube/resource-types.ts";
import type { ClusterWorkload } from "../../src/operator/kinds.ts";
import { privateNetworks, runOperator } from "../../src/operator/main.ts";
import { ownObjects } from "../../src/operator/names.ts";
import { scrapedMetrics } from "../../src/telemetry/prometheus.ts";
import { type OwnApiServer, startOwnApiServer, whyNoOwnApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { isOurs, readByPrometheus, scrape, whyNoPrometheus } from "../support/scraped.ts";
import { clientAs } from "./client-as.ts";

type Lease = ClusterObject & { readonly spec?: { readonly holderIdentity?: string } };

const namespace = "ambit-system";
const withinMs = 30_000;
const noPrometheus = await whyNoPrometheus();

/** The whole operator, in this process, against an API server of its own: what its parts do is tested with them. */
describe("the operator", { skip: whyNoOwnApiServer() ?? false }, () => {
  const folder = mkdtempSync(join(tmpdir(), "ambit-operator-"));
  let server: OwnApiServer;
  let client: ClusterClient;
  const replicas: Replica[] = [];
  let scrapedText = "";

  interface Replica {
    readonly name: string;
    readonly said: string[];
    readonly telemetry: { port: number };
    /** Ends as it does on SIGTERM. */
    stop(): Promise<void>;
  }

  const start = async (name: string): Promise<Replica> => {
    const ending = new AbortController();
    const said: string[] = [];
    const metrics = scrapedMetrics();
    const telemetry = { port: 0 };
    const own = await clientAs(server.kubeconfig, undefined, metrics);
    const running = runOperator(
      {
        namespace,
        instance: name,
        host: { image: "ambit:test", pullPolicy: "Never", pullSecrets: [] },
        cacheFolder: join(folder, name),
        plainHttpRegistries: [],
        registryRanges: privateNetworks,
        canary: null,
        requireEnforcement: false,
      },
      {
        client: own,
        clock: systemClock,
        random: Math.random,
        log: ({ message, port }) => {
          said.push(message);
          if (message === "telemetry is served") telemetry.port = Number(port);
        },
        telemetry: { metrics, place: { address: "localhost", port: 0 } },
      },
      ending.signal,
    );
    const replica: Replica = {
      name,
      said,
      telemetry,
      stop: async () => {
        ending.abort();
        await running;
        await own.close();
      },
    };
    replicas.push(replica);
    return replica;
  };

  before(async () => {
    server = await startOwnApiServer();
    await installCrds(server.request);
    client = await clientAs(server.kubeconfig);
    for (const name of [namespace, "agents"]) await client.create(namespaces, { metadata: { name } });
  });

  after(async () => {
    for (const replica of replicas) await replica.stop();
    await client?.close();
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const leads = async (replica: Replica): Promise<boolean> => {
    const lease = await client.get<Lease>(leases, { namespace, name: ownObjects.lease }).catch(() => undefined);
    return lease?.spec?.holderIdentity?.startsWith(`${replica.name}_`) === true;
  };
  /** Nothing listens there: the API server is told so, whatever the image would be. */
  const put = (name: string): Promise<unknown> =>
    client.create(workloads, {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name, namespace: "agents" },
      spec: { components: [{ name: "tool", image: `127.0.0.1:9/tools/none@sha256:${"0".repeat(64)}` }] },
    } as ClusterObject);
  const faultOf = async (name: string): Promise<string | undefined> => {
    const found = await client.get<ClusterWorkload>(workloads, { namespace: "agents", name });
    return found.status?.components?.[0]?.fault?.reason;
  };
  const eventually = async (holds: () => Promise<boolean>, what: string): Promise<void> => assert.ok(await becomes(holds, withinMs), what);

  test("of two replicas one leads: it makes the keys, and writes what it finds", async () => {
    const first = await start("first");
    await eventually(() => leads(first), "the first leads");
    const second = await start("second");
    await put("early");
    await eventually(async () => (await faultOf("early")) === "RegistryAddressRefused", "its status says why it does not run");
    for (const name of [ownObjects.root, ownObjects.tickets]) await client.get(secrets, { namespace, name });
    assert.ok(await leads(first));
    assert.ok(!second.said.includes("this replica leads"));
  });

  test("each tells how it does, under names that are known, and who leads also what it sees", async () => {
    const [first, second] = replicas;
    assert.ok(first && second);
    for (const replica of [first, second]) {
      await eventually(async () => (await fetch(`http://localhost:${replica.telemetry.port}/readyz`)).status === 200, "it is ready");
    }
    const leader = await scrape(first.telemetry.port);
    const { scraped } = leader;
    const leading = { name: ownObjects.lease };
    assert.equal(scraped.value("leader_election_master_status", leading), 1);
    assert.ok((scraped.value("controller_runtime_reconcile_total", { controller: "workload", result: "requeue_after" }) ?? 0) > 0);
    assert.equal(scraped.value("controller_runtime_max_concurrent_reconciles", { controller: "workload" }), 4);
    assert.equal(scraped.value("workqueue_depth", { name: "workload" }), 0);
    assert.ok(scraped.sum("rest_client_requests_total", { method: "GET", code: "200" }) > 0);
    assert.ok((scraped.value("reflector_lists_total", { name: "workloads.ambit.dev" }) ?? 0) > 0);
    assert.equal(scraped.sum("ambit_workload_conditions", { namespace: "agents", type: "Ready", status: "False" }), 1);
    const follower = (await scrape(second.telemetry.port)).scraped;
    assert.equal(follower.value("leader_election_master_status", leading), 0);
    assert.equal(follower.sum("ambit_workload_conditions"), 0);
    scrapedText = leader.text;
  });

  test("Prometheus reads what is told, and its linter finds nothing to say of our names", { skip: noPrometheus ?? false }, async () => {
    const { families, problems } = await readByPrometheus(scrapedText);
    assert.equal(families.controller_runtime_reconcile_time_seconds?.type, "HISTOGRAM");
    assert.deepEqual(problems.filter(isOurs), []);
  });

  test("when it is stopped the other takes over at once, with the same keys", async () => {
    const [first, second] = replicas;
    assert.ok(first && second);
    const before = await client.get(secrets, { namespace, name: ownObjects.root });
    await first.stop();
    await eventually(() => leads(second), "the second leads");
    await put("late");
    await eventually(async () => (await faultOf("late")) === "RegistryAddressRefused", "the second writes");
    const now = await client.get(secrets, { namespace, name: ownObjects.root });
    assert.equal(now.metadata.resourceVersion, before.metadata.resourceVersion);
  });

  test("an API server that goes away and comes back is no reason to stop", async () => {
    await server.stop("SIGKILL");
    await server.start();
    await put("after");
    await eventually(async () => (await faultOf("after")) === "RegistryAddressRefused", "it goes on");
  });

  test("a Workload that is deleted goes, with its finalizer", async () => {
    await client.delete(workloads, { namespace: "agents", name: "early" });
    await eventually(
      () =>
        client.get(workloads, { namespace: "agents", name: "early" }).then(
          () => false,
          (thrown: unknown) => isNotFound(thrown),
        ),
      "it has gone",
    );
  });
});
