import assert from "node:assert/strict";
import { test } from "node:test";
import { Store } from "../../../src/kube/store.ts";
import { gaugeCluster } from "../../../src/operator/cluster-gauges.ts";
import type { ClusterToolGrant, ClusterWorkload } from "../../../src/operator/kinds.ts";
import { leadingGauge } from "../../../src/operator/leading-gauge.ts";
import { scrapedMetrics } from "../../../src/telemetry/prometheus.ts";
import { Scraped } from "../../support/scraped.ts";

const named = (name: string) => ({ metadata: { name, namespace: "agents", uid: name, resourceVersion: "1" } });

const workload = (name: string, reason: string, status = "False") =>
  ({ ...named(name), status: { conditions: [{ type: "Ready", status, reason }] } }) as unknown as ClusterWorkload;

const grant = (name: string, phase?: string) => ({ ...named(name), ...(phase && { status: { phase } }) }) as unknown as ClusterToolGrant;

test("Workloads are counted by condition and grants by phase, by who leads alone, and as they are now", async () => {
  const workloads = new Store<ClusterWorkload>();
  const toolGrants = new Store<ClusterToolGrant>();
  const metrics = scrapedMetrics();
  const leading = leadingGauge(metrics, "ambit-operator");
  gaugeCluster(metrics, { workloads, toolGrants }, () => leading.isLeading);
  const read = async () => new Scraped(await metrics.text());
  workloads.replace([workload("a", "Suspended"), workload("b", "Suspended"), workload("c", "Ready", "True")]);
  toolGrants.replace([grant("d", "Active"), grant("e", "Active"), grant("f")]);

  const following = await read();
  assert.equal(following.value("leader_election_master_status", { name: "ambit-operator" }), 0);
  assert.equal(following.sum("ambit_workload_conditions") + following.sum("ambit_toolgrants"), 0);

  leading.hear({ type: "leading" });
  const first = await read();
  assert.equal(first.value("leader_election_master_status", { name: "ambit-operator" }), 1);
  const suspended = { namespace: "agents", type: "Ready", status: "False", reason: "Suspended" };
  assert.equal(first.value("ambit_workload_conditions", suspended), 2);
  assert.equal(first.value("ambit_toolgrants", { namespace: "agents", phase: "Active" }), 2);
  assert.equal(first.value("ambit_toolgrants", { namespace: "agents", phase: "Unknown" }), 1);

  workloads.replace([workload("c", "Ready", "True")]);
  leading.hear({ type: "trouble", error: new Error("slow") });
  const later = await read();
  assert.equal(later.value("ambit_workload_conditions", suspended), undefined);
  assert.equal(later.sum("ambit_workload_conditions"), 1);

  leading.hear({ type: "lost", error: new Error("gone") });
  assert.equal((await read()).sum("ambit_toolgrants"), 0);
});
