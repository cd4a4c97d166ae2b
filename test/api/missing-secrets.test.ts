import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import { deployments, namespaces, pods, secrets, workloads } from "../../src/kube/resource-types.ts";
import { egressOf } from "../../src/operator/egress/egress.ts";
import { defaultEgressSettings } from "../../src/operator/egress/settings.ts";
import type { ClusterWorkload } from "../../src/operator/kinds.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { workloadController } from "../../src/operator/workload/controller.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { listIssues } from "../unit/grants/issues-tool.ts";
import { clientAs } from "./client-as.ts";
import { MadeUpComponents, runControllers } from "./operator-under-test.ts";

const withinMs = 20_000;
const coreEvents: ResourceType = { group: "", version: "v1", kind: "Event", plural: "events", namespaced: true };

const rbac = (kind: string): ResourceType => ({
  group: "rbac.authorization.k8s.io",
  version: "v1",
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced: false,
});

/** What the chart lets the operator do in all namespaces. */
const chartRules = (): object => {
  const template = readFileSync(new URL("../../charts/ambit/templates/operator-access.yaml", import.meta.url), "utf8");
  const role = template.split("---\n").find((one) => /^kind: ClusterRole$/m.test(one));
  assert.ok(role);
  return parse(role.slice(role.indexOf("\nrules:"))).rules;
};

describe("a Workload with a secret that is not there", { skip: whyNoApiServer() ?? false }, () => {
  const namespace = `ambit-missing-${randomBytes(4).toString("hex")}`;
  const user = `system:serviceaccount:${namespace}:operator`;
  const image = `registry.test/tool@sha256:${"0".repeat(64)}`;
  const components = new MadeUpComponents();
  let server: ApiServer;
  let admin: ClusterClient;
  /** With the rights that the chart gives it, and no others. */
  let operator: ClusterClient;
  let running: Awaited<ReturnType<typeof runControllers>>;

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    admin = await clientAs(server.kubeconfig);
    operator = await clientAs(server.kubeconfig, user);
    await admin.create(namespaces, { metadata: { name: namespace } });
    await admin.create<ClusterObject>(rbac("ClusterRole"), { metadata: { name: namespace }, rules: chartRules() } as ClusterObject);
    await admin.create<ClusterObject>(rbac("ClusterRoleBinding"), {
      metadata: { name: namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: namespace },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
    } as ClusterObject);
    components.put(image, [listIssues()]);
    const mayList = (): Promise<boolean> =>
      operator.listPage(workloads, {}).then(
        () => true,
        () => false,
      );
    assert.ok(await becomes(mayList, withinMs), "the operator has its rights");
    running = await runControllers(operator, components, (context) => {
      const ask = async () => [{ address: "8.8.8.8", ttl: 60 }];
      const egress = egressOf(context, { settings: defaultEgressSettings, ask });
      const settings = { image: "ambit:test", pullPolicy: "IfNotPresent", pullSecrets: [], rootKey: "cm9vdA==" } as const;
      return [egress, workloadController(context, settings, egress, new ToolListings())];
    });
    for (const [name, environment] of Object.entries({ needy: { secretFrom: [{ name: "token" }] }, other: {} })) {
      const spec = { components: [{ name: "tool", image, localResources: { environment } }] };
      await admin.create<ClusterObject & { readonly spec: object }>(workloads, { metadata: { name, namespace }, spec });
      assert.ok(await becomes(() => has(deployments, `${name}-tool`), withinMs), "it is rolled out");
    }
  });

  after(async () => {
    await running?.[Symbol.asyncDispose]();
    for (const type of [namespaces, rbac("ClusterRole"), rbac("ClusterRoleBinding")]) await admin?.delete(type, { name: namespace });
    await Promise.all([admin?.close(), operator?.close()]);
    await server?.[Symbol.asyncDispose]();
  });

  const has = (type: ResourceType, name: string): Promise<boolean> =>
    admin.get(type, { namespace, name }).then(
      () => true,
      () => false,
    );
  const condition = async (name: string, type: string): Promise<{ reason: string; message: string }> => {
    const { status } = await admin.get<ClusterWorkload>(workloads, { namespace, name });
    const { reason = "", message = "" } = status?.conditions?.find((one) => one.type === type) ?? {};
    return { reason, message };
  };
  const patchStatus = (name: string, status: object): Promise<unknown> =>
    admin.request({
      method: "PATCH",
      path: `${objectPath(pods, { name, namespace })}/status`,
      contentType: "application/merge-patch+json",
      body: { status },
    });
  /** A pod that a node has taken and whose volume it can't mount, as kubelet leaves it. */
  const waits = async (workload: string): Promise<ClusterObject> => {
    const labels = { "app.kubernetes.io/managed-by": "ambit", "ambit.dev/workload": workload, "ambit.dev/component": "tool" };
    const pod = await admin.create<ClusterObject>(pods, {
      metadata: { name: `${workload}-pod`, namespace, labels },
      spec: { containers: [{ name: "host", image: "ambit" }] },
    } as ClusterObject);
    const container = { name: "host", image: "ambit", imageID: "", ready: false, restartCount: 0 };
    await patchStatus(pod.metadata.name, {
      phase: "Pending",
      containerStatuses: [{ ...container, state: { waiting: { reason: "ContainerCreating" } } }],
    });
    return pod;
  };

  test("says which, where, and what to do, as soon as kubelet says so; another Workload is none the worse", async () => {
    const pod = await waits("needy");
    assert.equal((await condition("needy", "Ready")).reason, "RollingOut");
    const { name, uid } = pod.metadata;
    await admin.create<ClusterObject>(coreEvents, {
      metadata: { name: `${name}.1`, namespace },
      involvedObject: { apiVersion: "v1", kind: "Pod", name, namespace, uid },
      reason: "FailedMount",
      message: 'MountVolume.SetUp failed for volume "secret-token" : secret "token" not found',
      type: "Warning",
      source: { component: "kubelet" },
    } as ClusterObject);
    const isTold = async (): Promise<boolean> => (await condition("needy", "Stalled")).reason === "SecretMissing";
    assert.ok(await becomes(isTold, withinMs), JSON.stringify(await condition("needy", "Ready")));
    assert.match((await condition("needy", "Ready")).message, new RegExp(`no Secret ${namespace}/token: make it`));
    assert.equal((await condition("other", "Stalled")).reason, "NothingToDo");
  });

  test("says so no more when the pod starts", async () => {
    const startedAt = new Date().toISOString().replace(/\.\d+/, "");
    const container = { name: "host", image: "ambit", imageID: "", ready: false, restartCount: 0 };
    await patchStatus("needy-pod", { phase: "Running", containerStatuses: [{ ...container, state: { running: { startedAt } } }] });
    const isOver = async (): Promise<boolean> => (await condition("needy", "Stalled")).reason === "NothingToDo";
    assert.ok(await becomes(isOver, withinMs), "the condition goes");
  });

  test("needs no right to read it", async () => {
    await assert.rejects(operator.get(secrets, { namespace, name: "token" }), { code: "Forbidden" });
    assert.deepEqual(running.failures.map(String), []);
  });
});
