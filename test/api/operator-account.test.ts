import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import { configMaps, namespaces, networkPolicies, pods, services, workloads } from "../../src/kube/resource-types.ts";
import { workloadFinalizer } from "../../src/operator/workload/decide.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { applyTemplate } from "./chart-objects.ts";
import { clientAs } from "./client-as.ts";

type WithSpec = ClusterObject & { readonly spec?: object };

const bindings: ResourceType = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  kind: "ClusterRoleBinding",
  plural: "clusterrolebindings",
  namespaced: false,
};

/** It is given all rights there are: what is refused is refused by the chart's policies alone. */
describe("the operator's account", { skip: whyNoApiServer() ?? false }, () => {
  const suffix = randomBytes(4).toString("hex");
  const namespace = `ambit-account-${suffix}`;
  const user = "system:serviceaccount:ambit-system:ambit-operator";
  let server: ApiServer;
  let admin: ClusterClient;
  let operator: ClusterClient;

  const ours = { "app.kubernetes.io/managed-by": "ambit" };
  const container = { name: "host", image: "a" };
  const merge = (client: ClusterClient, type: ResourceType, name: string, body: object): Promise<unknown> =>
    client.request({ method: "PATCH", path: objectPath(type, { name, namespace }), contentType: "application/merge-patch+json", body });
  const isRefused = (what: Promise<unknown>, why: RegExp): Promise<void> => assert.rejects(what, { code: "Forbidden", message: why });

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    await applyTemplate(server.request, "operator-policy.yaml");
    admin = await clientAs(server.kubeconfig);
    operator = await clientAs(server.kubeconfig, user);
    await admin.create(namespaces, { metadata: { name: namespace } });
    await admin.create<ClusterObject>(bindings, {
      metadata: { name: namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
    } as ClusterObject);
    const image = `registry.test/tool@sha256:${"0".repeat(64)}`;
    await admin.create<WithSpec>(workloads, { metadata: { name: "github", namespace }, spec: { components: [{ name: "tool", image }] } });
    await admin.create<WithSpec>(pods, { metadata: { name: "host", namespace }, spec: { containers: [container] } });
    await admin.create(configMaps, { metadata: { name: "theirs", namespace } });
    await admin.create(configMaps, { metadata: { name: "unlabelled", namespace } });
    const inEffect = () =>
      merge(operator, workloads, "github", { spec: { suspend: true } }).then(
        () => false,
        () => true,
      );
    assert.ok(await becomes(inEffect, 30_000), "the policies are in effect");
    await merge(admin, workloads, "github", { spec: { suspend: false } });
  });

  after(async () => {
    await admin?.delete(namespaces, { name: namespace });
    await admin?.delete(bindings, { name: namespace });
    await Promise.all([admin?.close(), operator?.close()]);
    await server?.[Symbol.asyncDispose]();
  });

  test("writes a Workload's finalizer, and none of its spec", async () => {
    await merge(operator, workloads, "github", { metadata: { finalizers: [workloadFinalizer] } });
    await merge(operator, workloads, "github", { metadata: { finalizers: [] } });
    await isRefused(merge(operator, workloads, "github", { spec: { suspend: true } }), /may not change the spec of the Workload github/);
    await merge(admin, workloads, "github", { spec: { suspend: true } });
  });

  test("writes notes on pods, and none of their specs", async () => {
    await merge(operator, pods, "host", { metadata: { annotations: { "ambit.dev/boot": "b" } } });
    const another = { spec: { containers: [{ ...container, image: "b" }] } };
    await isRefused(merge(operator, pods, "host", another), /may not change the spec of the Pod host/);
    await merge(admin, pods, "host", another);
  });

  test("makes, changes and deletes what has its label, and nothing else", async () => {
    await operator.create<WithSpec>(networkPolicies, { metadata: { name: "own", namespace, labels: ours }, spec: { podSelector: {} } });
    await merge(operator, networkPolicies, "own", { spec: { policyTypes: ["Egress"] } });
    await operator.delete(networkPolicies, { name: "own", namespace }, {});
    const why = /may only touch what it made/;
    await isRefused(operator.create<WithSpec>(services, { metadata: { name: "a", namespace }, spec: { ports: [{ port: 80 }] } }), why);
    await isRefused(merge(operator, configMaps, "theirs", { data: { a: "b" } }), why);
    await isRefused(merge(operator, configMaps, "theirs", { metadata: { labels: ours } }), why);
    await isRefused(operator.delete(configMaps, { name: "theirs", namespace }, {}), why);
  });

  test("makes right again what a Workload controls and lost its label", async () => {
    const { uid = "" } = (await admin.get(workloads, { name: "github", namespace })).metadata;
    const owner = { apiVersion: "ambit.dev/v1alpha1", kind: "Workload", name: "github", uid };
    await merge(admin, configMaps, "unlabelled", { metadata: { ownerReferences: [owner] } });
    await merge(operator, configMaps, "unlabelled", { metadata: { labels: ours } });
  });
});
