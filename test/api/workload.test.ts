import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { loadAccess } from "../../src/kube/access.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import {
  configMaps,
  deployments,
  disruptionBudgets,
  namespaces,
  networkPolicies,
  pods,
  services,
  toolGrants,
  workloads,
} from "../../src/kube/resource-types.ts";
import { egressOf } from "../../src/operator/egress/egress.ts";
import type { ClusterWorkload } from "../../src/operator/kinds.ts";
import { componentObjectName } from "../../src/operator/names.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { workloadController } from "../../src/operator/workload/controller.ts";
import { workloadFinalizer } from "../../src/operator/workload/decide.ts";
import { sandboxPolicyName } from "../../src/operator/workload/desired.ts";
import type { Deployment } from "../../src/operator/workload/kinds.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { listIssues } from "../unit/grants/issues-tool.ts";
import { RecordedMetrics } from "../unit/kube/recorded-metrics.ts";
import { clientAs } from "./client-as.ts";
import { MadeUpComponents, runControllers } from "./operator-under-test.ts";

const withinMs = 20_000;
const reason = whyNoApiServer();

/** No controllers run beside this API server: what a Deployment would do is done by the tests, and nothing is collected as garbage. */
describe("the reconciler of Workloads", { skip: reason ?? false }, () => {
  const suffix = randomBytes(4).toString("hex");
  const made: string[] = [];
  const components = new MadeUpComponents();
  let server: ApiServer;
  let client: ClusterClient;
  let operators: ClusterClient;
  let operator: Awaited<ReturnType<typeof runControllers>>;
  const asked = new RecordedMetrics();

  const settings = { image: "ambit:test", pullPolicy: "IfNotPresent", pullSecrets: [], rootKey: "cm9vdA==" } as const;
  /** An image whose digest is that of its name. */
  const imageOf = (name: string): string => `registry.test/${name}@sha256:${"0".repeat(64)}`;

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    client = await clientAs(server.kubeconfig);
    for (const name of ["one", "two"]) components.put(imageOf(name), [listIssues()]);
    components.put(imageOf("library"), []);
    // The operator's own, so that what it asked for is not mixed with what the tests did.
    operators = await clientAs(server.kubeconfig, undefined, asked);
    operator = await runControllers(operators, components, (context) => {
      const egress = egressOf(context);
      return [egress, workloadController(context, settings, egress, new ToolListings())];
    });
  });

  after(async () => {
    await operator?.[Symbol.asyncDispose]();
    for (const name of made) await client?.delete(namespaces, { name });
    await operators?.close();
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  const newNamespace = async (labels: Record<string, string> = {}): Promise<string> => {
    const name = `ambit-workloads-${suffix}-${made.length}`;
    await client.create(namespaces, { metadata: { name, labels } });
    made.push(name);
    return name;
  };
  const apply = async (type: ResourceType, object: ClusterObject, subresource?: string): Promise<void> => {
    const body = { ...object, apiVersion: type.group ? `${type.group}/${type.version}` : type.version, kind: type.kind };
    await client.request({
      method: "PATCH",
      path: objectPath(type, object.metadata, subresource),
      query: { fieldManager: "git", force: true },
      contentType: "application/apply-patch+yaml",
      body,
    });
  };
  const put = (namespace: string, name: string, images: Record<string, string>, spec: object = {}): Promise<void> =>
    apply(workloads, {
      metadata: { name, namespace },
      spec: { ...spec, components: Object.entries(images).map(([of, image]) => ({ name: of, image: imageOf(image) })) },
    } as ClusterObject);
  const get = <T extends ClusterObject>(type: ResourceType, namespace: string, name: string): Promise<T | null> =>
    client.get<T>(type, { namespace, name }).catch(() => null);
  const list = async (type: ResourceType, namespace: string): Promise<readonly ClusterObject[]> =>
    (await client.listPage<ClusterObject>(type, { namespace, labelSelector: "app.kubernetes.io/managed-by=ambit" })).items;
  /** The Workload as soon as it is so. */
  const when = async (namespace: string, name: string, holds: (workload: ClusterWorkload) => boolean): Promise<ClusterWorkload> => {
    let last: ClusterWorkload | null = null;
    const came = await becomes(async () => {
      last = await get<ClusterWorkload>(workloads, namespace, name);
      return last !== null && holds(last);
    }, withinMs);
    assert.ok(came && last, `${name} becomes so, and is ${JSON.stringify((last as ClusterWorkload | null)?.status)}`);
    return last;
  };
  const eventually = async (holds: () => Promise<boolean>, what: string): Promise<void> => {
    assert.ok(await becomes(holds, withinMs), what);
  };
  const condition = (workload: ClusterWorkload, type: string) => workload.status?.conditions?.find((one) => one.type === type);
  const isReason = (type: string, is: string) => (workload: ClusterWorkload) => condition(workload, type)?.reason === is;
  /** As if the Deployment's controller had done its work. */
  const rollOut = async (namespace: string, name: string): Promise<void> => {
    const deployment = await client.get<Deployment>(deployments, { namespace, name });
    const replicas = deployment.spec?.replicas ?? 0;
    const counts = { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas };
    await client.request({
      method: "PATCH",
      path: objectPath(deployments, { namespace, name }, "status"),
      contentType: "application/merge-patch+json",
      body: { status: { observedGeneration: deployment.metadata.generation, ...counts } },
    });
  };
  const grant = async (namespace: string, name: string, workload: string): Promise<void> => {
    await apply(toolGrants, {
      metadata: { name, namespace },
      spec: {
        tool: { workload, component: "tool", interface: "example:github/issues@0.1.0", function: "list-issues" },
        declaration: { name: "list_issues", description: "List the issues.", parameters: { type: "object" } },
      },
    } as ClusterObject);
    await setPhase(namespace, name, "Active");
  };
  const setPhase = (namespace: string, name: string, phase: string): Promise<void> =>
    apply(toolGrants, { metadata: { name, namespace }, status: { phase } } as ClusterObject, "status");

  test("a Workload gets its objects behind the policy that denies all, and is ready when its pods are", async () => {
    const namespace = await newNamespace();
    await put(namespace, "github", { tool: "one" });
    const told = await when(namespace, "github", isReason("Ready", "RollingOut"));
    assert.equal(condition(told, "Reconciling")?.status, "True");
    assert.equal(condition(told, "Stalled")?.status, "False");
    assert.deepEqual(told.metadata.finalizers, [workloadFinalizer]);
    const [component] = told.status?.components ?? [];
    assert.equal(component?.digest, components.digestOf(imageOf("one")));
    assert.deepEqual(
      component?.tools?.map(({ function: name }) => name),
      ["list-issues"],
    );
    assert.deepEqual(component?.imports, ["wasi:http/outgoing-handler@0.2.6"]);

    const policy = await get<ClusterObject & { spec: object }>(networkPolicies, namespace, sandboxPolicyName);
    assert.deepEqual(policy?.spec && { ...policy.spec, ingress: [] }, {
      podSelector: {
        matchLabels: { "app.kubernetes.io/managed-by": "ambit" },
        matchExpressions: [{ key: "ambit.dev/component", operator: "Exists" }],
      },
      policyTypes: ["Ingress", "Egress"],
      ingress: [],
    });
    const deployment = await get(deployments, namespace, "github-tool");
    assert.ok(Date.parse(policy?.metadata.creationTimestamp ?? "") <= Date.parse(deployment?.metadata.creationTimestamp ?? ""));
    for (const type of [deployments, services]) {
      const object = await get(type, namespace, "github-tool");
      assert.deepEqual(
        object?.metadata.ownerReferences?.map(({ kind, name, controller }) => ({ kind, name, controller })),
        [{ kind: "Workload", name: "github", controller: true }],
      );
    }

    await rollOut(namespace, "github-tool");
    const ready = await when(namespace, "github", isReason("Ready", "Serving"));
    assert.equal(condition(ready, "Ready")?.status, "True");
    assert.equal(condition(ready, "Ready")?.observedGeneration, ready.metadata.generation);
    assert.equal(ready.status?.replicas, 1);
  });

  test("its pods satisfy the restricted Pod Security Standard", async () => {
    const namespace = await newNamespace({ "pod-security.kubernetes.io/enforce": "restricted" });
    await put(namespace, "strict", { tool: "one" }, { volumes: [{ name: "scratch", ephemeral: {} }] });
    await when(namespace, "strict", isReason("Ready", "RollingOut"));
    const { spec } = await client.get<ClusterObject & { spec: { template: { metadata: object; spec: object } } }>(deployments, {
      namespace,
      name: "strict-tool",
    });
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { ...spec.template.metadata, name: "probe" }, spec: spec.template.spec };
    const path = `/api/v1/namespaces/${namespace}/pods`;
    await client.request({ method: "POST", path, query: { dryRun: "All" }, body: pod });
    const privileged = { ...pod, spec: { ...spec.template.spec, hostNetwork: true } };
    await assert.rejects(client.request({ method: "POST", path, query: { dryRun: "All" }, body: privileged }), { code: "Forbidden" });
  });

  test("one component that can't be read keeps no other from running, and what it ran goes on", async () => {
    const namespace = await newNamespace();
    await put(namespace, "mixed", { good: "one", bad: "two" });
    await when(namespace, "mixed", isReason("Ready", "RollingOut"));
    await put(namespace, "mixed", { good: "two", bad: "vanished" });
    const told = await when(namespace, "mixed", (workload) => workload.status?.components?.[1]?.fault?.reason === "RegistryUnreachable");
    assert.equal(condition(told, "Ready")?.status, "False");
    assert.equal(told.status?.components?.[0]?.digest, components.digestOf(imageOf("two")));
    assert.ok(await get(deployments, namespace, "mixed-bad"), "what ran before is left");
  });

  test("a component without tools does not run", async () => {
    const namespace = await newNamespace();
    await put(namespace, "library", { tool: "library" });
    await when(namespace, "library", isReason("Ready", "NothingServes"));
    assert.equal(await get(deployments, namespace, "library-tool"), null);
  });

  test("an object of somebody else under the wanted name is left alone, and other Workloads go on", async () => {
    const namespace = await newNamespace();
    await client.create(services, { metadata: { name: "theirs-tool", namespace }, spec: { ports: [{ port: 80 }] } } as ClusterObject);
    const before = await get(services, namespace, "theirs-tool");
    await put(namespace, "theirs", { tool: "one" });
    await put(namespace, "ours", { tool: "one" });
    const told = await when(namespace, "theirs", isReason("Stalled", "ForeignObject"));
    assert.match(condition(told, "Stalled")?.message ?? "", /theirs-tool belongs to somebody else/);
    assert.equal((await get(services, namespace, "theirs-tool"))?.metadata.resourceVersion, before?.metadata.resourceVersion);
    assert.equal(await get(deployments, namespace, "theirs-tool"), null);
    await when(namespace, "ours", isReason("Ready", "RollingOut"));
  });

  test("two Workloads whose names come to one object: the second is told whose it is", async () => {
    const namespace = await newNamespace();
    await put(namespace, "a-b", { c: "one" });
    await when(namespace, "a-b", isReason("Ready", "RollingOut"));
    await put(namespace, "a", { "b-c": "one" });
    const told = await when(namespace, "a", isReason("Stalled", "ForeignObject"));
    assert.match(condition(told, "Stalled")?.message ?? "", /the Workload a-b/);
  });

  test("no sandbox runs where another has the name of the policy that denies all", async () => {
    const namespace = await newNamespace();
    await client.create(networkPolicies, { metadata: { name: sandboxPolicyName, namespace }, spec: { podSelector: {} } } as ClusterObject);
    await put(namespace, "unguarded", { tool: "one" });
    await when(namespace, "unguarded", isReason("Stalled", "ForeignObject"));
    assert.equal(await get(deployments, namespace, "unguarded-tool"), null);
  });

  test("what others change on our objects, and the policy that they delete, comes back", async () => {
    const namespace = await newNamespace();
    await put(namespace, "kept", { tool: "one" });
    await when(namespace, "kept", isReason("Ready", "RollingOut"));
    await client.delete(networkPolicies, { namespace, name: sandboxPolicyName });
    await eventually(async () => (await get(networkPolicies, namespace, sandboxPolicyName)) !== null, "the policy comes back");
    const path = objectPath(deployments, { namespace, name: "kept-tool" });
    await client.request({
      method: "PATCH",
      path,
      contentType: "application/merge-patch+json",
      body: { spec: { template: { spec: { automountServiceAccountToken: true } } } },
    });
    await eventually(async () => {
      const found = (await client.request({ method: "GET", path })) as {
        spec: { template: { spec: { automountServiceAccountToken?: boolean } } };
      };
      return found.spec.template.spec.automountServiceAccountToken === false;
    }, "the pods have no token");
  });

  test("a name of 63 characters gets objects with shorter names", async () => {
    const namespace = await newNamespace();
    const name = `w${"x".repeat(61)}z`;
    await put(namespace, name, { tool: "one" });
    await when(namespace, name, isReason("Ready", "RollingOut"));
    assert.ok(await get(services, namespace, componentObjectName(name, "tool")));
    await assert.rejects(put(namespace, `${name}y`, { tool: "one" }), /metadata.name/);
  });

  test("the scale subresource sets the pods, and above one there is a disruption budget", async () => {
    const namespace = await newNamespace();
    await put(namespace, "scaled", { tool: "one" });
    await when(namespace, "scaled", isReason("Ready", "RollingOut"));
    const scale = (replicas: number) =>
      client.request({
        method: "PATCH",
        path: objectPath(workloads, { namespace, name: "scaled" }, "scale"),
        contentType: "application/merge-patch+json",
        body: { spec: { replicas } },
      });
    const replicasOf = async () => (await get<Deployment>(deployments, namespace, "scaled-tool"))?.spec?.replicas;
    await scale(3);
    await eventually(
      async () => (await replicasOf()) === 3 && (await get(disruptionBudgets, namespace, "scaled-tool")) !== null,
      "three pods",
    );
    await scale(1);
    await eventually(
      async () => (await replicasOf()) === 1 && (await get(disruptionBudgets, namespace, "scaled-tool")) === null,
      "one pod",
    );
  });

  test("another image gets another configuration, and the old one goes when no pod needs it", async () => {
    const namespace = await newNamespace();
    await put(namespace, "rolled", { tool: "one" });
    await when(namespace, "rolled", isReason("Ready", "RollingOut"));
    await rollOut(namespace, "rolled-tool");
    await when(namespace, "rolled", isReason("Ready", "Serving"));
    const [first] = await list(configMaps, namespace);
    await put(namespace, "rolled", { tool: "two" });
    await when(namespace, "rolled", isReason("Ready", "RollingOut"));
    assert.equal((await list(configMaps, namespace)).length, 2);
    await rollOut(namespace, "rolled-tool");
    await when(namespace, "rolled", isReason("Ready", "Serving"));
    await eventually(async () => (await list(configMaps, namespace)).length === 1, "one configuration");
    const [second] = await list(configMaps, namespace);
    assert.notEqual(second?.metadata.name, first?.metadata.name);
  });

  test("a component that is taken out of the spec loses its objects", async () => {
    const namespace = await newNamespace();
    await put(namespace, "shrunk", { tool: "one", more: "two" });
    await when(namespace, "shrunk", isReason("Ready", "RollingOut"));
    await put(namespace, "shrunk", { tool: "one" });
    await eventually(async () => (await list(deployments, namespace)).length === 1, "one Deployment");
    await eventually(async () => (await list(services, namespace)).length === 1, "one Service");
  });

  test("suspending withdraws the tools before it stops the pods, and leaves the rest", async () => {
    const namespace = await newNamespace();
    await put(namespace, "paused", { tool: "one" });
    await when(namespace, "paused", isReason("Ready", "RollingOut"));
    await grant(namespace, "offered", "paused");
    await put(namespace, "paused", { tool: "one" }, { suspend: true });
    await when(namespace, "paused", isReason("Ready", "Withdrawing"));
    const replicas = async () => (await get<Deployment>(deployments, namespace, "paused-tool"))?.spec?.replicas;
    assert.equal(await replicas(), 1);
    await setPhase(namespace, "offered", "Withheld");
    await eventually(async () => (await replicas()) === 0, "no pods");
    await rollOut(namespace, "paused-tool");
    await when(namespace, "paused", isReason("Ready", "Suspended"));
    assert.ok(await get(services, namespace, "paused-tool"));
    await put(namespace, "paused", { tool: "one" });
    await eventually(async () => (await replicas()) === 1, "a pod again");
  });

  test("deleting withdraws the tools, ends the sandboxes, and takes the policy away with the last Workload", async () => {
    const namespace = await newNamespace();
    await put(namespace, "leaving", { tool: "one" });
    await put(namespace, "staying", { tool: "one" });
    for (const name of ["leaving", "staying"]) await when(namespace, name, isReason("Ready", "RollingOut"));
    await grant(namespace, "offered", "leaving");
    await eventually(async () => {
      const stored = await get<ClusterObject & { status?: { phase?: string } }>(toolGrants, namespace, "offered");
      return stored?.status?.phase === "Active";
    }, "the tool is offered");
    // Stands for a pod that takes its time.
    const labels = (await get(deployments, namespace, "leaving-tool"))?.metadata.labels ?? {};
    const pod = { metadata: { name: "slow", namespace, labels }, spec: { containers: [{ name: "host", image: "ambit:test" }] } };
    await client.create(pods, pod as ClusterObject);
    await client.delete(workloads, { namespace, name: "leaving" });
    await when(namespace, "leaving", isReason("Ready", "Withdrawing"));
    assert.ok(await get(deployments, namespace, "leaving-tool"), "its sandboxes serve while a tool is offered");
    await setPhase(namespace, "offered", "Withheld");
    await when(namespace, "leaving", isReason("Ready", "Ending"));
    await eventually(async () => (await get(deployments, namespace, "leaving-tool")) === null, "its Deployment goes");
    assert.ok(await get(services, namespace, "leaving-tool"), "what is around the sandboxes waits for them");
    await client.delete(pods, { namespace, name: "slow" });
    await eventually(async () => (await get(workloads, namespace, "leaving")) === null, "it goes");
    assert.ok(await get(networkPolicies, namespace, sandboxPolicyName), "another Workload is behind the policy");
    assert.ok(await get(deployments, namespace, "staying-tool"));
    await client.delete(workloads, { namespace, name: "staying" });
    await eventually(async () => (await get(workloads, namespace, "staying")) === null, "the last one goes");
    assert.equal(await get(networkPolicies, namespace, sandboxPolicyName), null);
  });

  test("nothing is made again that goes with its namespace, nor asked for in vain", async () => {
    const namespace = await newNamespace();
    await put(namespace, "going", { tool: "one" });
    await when(namespace, "going", isReason("Ready", "RollingOut"));
    const { host } = (await loadAccess({ file: server.kubeconfig })).server;
    const refused = () => asked.value("rest_client_requests_total", { code: "403", method: "PATCH", host }) ?? 0;
    const before = refused();
    // Nobody brings it to its end here: it stays, and takes nothing new, as while what is in it is being deleted.
    await client.delete(namespaces, { name: namespace });
    for (const { metadata } of await list(configMaps, namespace)) await client.delete(configMaps, metadata);
    await client.delete(services, { namespace, name: "going-tool" });
    await client.delete(workloads, { namespace, name: "going" });
    await eventually(async () => (await get(workloads, namespace, "going")) === null, "it goes");
    assert.equal(refused(), before);
    assert.equal(await get(services, namespace, "going-tool"), null);
  });

  test("nothing failed that a reconcile did not expect", () => {
    assert.deepEqual(operator.failures, []);
  });
});
