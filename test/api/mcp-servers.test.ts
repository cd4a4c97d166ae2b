import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { after, before, describe, test } from "node:test";
import { bridgeDigest, bridgeImage } from "../../src/api/bridge-component.ts";
import { type Sha256Digest, sha256Of } from "../../src/api/digest.ts";
import type { McpServer } from "../../src/api/generated/workload.ts";
import { kubectlProgram } from "../../src/cli/kubectl-program.ts";
import { run } from "../../src/cli/program.ts";
import { draftObjectName } from "../../src/grants/draft.ts";
import { toolListing } from "../../src/grants/listing.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import {
  configMaps,
  deployments,
  namespaces,
  networkPolicies,
  pods,
  services,
  toolGrants,
  workloads,
} from "../../src/kube/resource-types.ts";
import { egressOf } from "../../src/operator/egress/egress.ts";
import { defaultEgressSettings } from "../../src/operator/egress/settings.ts";
import type { ClusterToolGrant, ClusterWorkload } from "../../src/operator/kinds.ts";
import { componentLabels, labels, podAnnotations } from "../../src/operator/names.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { toolGrantControllers } from "../../src/operator/toolgrant/controllers.ts";
import { workloadController } from "../../src/operator/workload/controller.ts";
import type { Deployment } from "../../src/operator/workload/kinds.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { listIssues } from "../unit/grants/issues-tool.ts";
import { clientAs } from "./client-as.ts";
import { MadeUpComponents, runControllers, withBridge } from "./operator-under-test.ts";

const withinMs = 20_000;

/** Without the prototypes that parsed objects lack. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const events: ResourceType = { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true };
type Event = ClusterObject & { readonly reason: string; readonly regarding: { readonly kind: string; readonly name: string } };

/** No kubelet runs beside this API server: pods and their rollouts are made up, and what servers list is told by the tests. */
describe("a remote MCP server of a Workload", { skip: whyNoApiServer() ?? false }, () => {
  const namespace = `ambit-mcp-${randomBytes(4).toString("hex")}`;
  const [name, entry] = ["issues", "linear"];
  const key = { namespace, workload: name, component: entry };
  const image = `registry.test/tool@sha256:${"0".repeat(64)}`;
  const before1 = sha256Of("the bridge of another Ambit");
  const components = new MadeUpComponents();
  let server: ApiServer;
  let client: ClusterClient;
  let operator: Awaited<ReturnType<typeof runControllers>>;
  let listings: ToolListings;

  /** All controllers but delivery, as one operator that starts anew: it remembers no listing. */
  const startOperator = async (bridge: Sha256Digest): Promise<void> => {
    listings = new ToolListings();
    operator = await runControllers(client, withBridge(components, bridge), (context) => {
      const ask = async () => [{ address: "8.8.8.8", ttl: 60 }];
      const converge = { ...defaultEgressSettings.converge, settleMs: 10 };
      const egress = egressOf(context, { settings: { ...defaultEgressSettings, converge }, ask });
      const settings = { image: "ambit:test", pullPolicy: "IfNotPresent", pullSecrets: [], rootKey: "cm9vdA==" } as const;
      return [egress, workloadController(context, settings, egress, listings), ...toolGrantControllers(context, listings)];
    });
  };

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    client = await clientAs(server.kubeconfig);
    await client.create(namespaces, { metadata: { name: namespace } });
    components.put(image, [listIssues()]);
    await startOperator(before1);
  });

  after(async () => {
    await operator?.[Symbol.asyncDispose]();
    await client?.delete(namespaces, { name: namespace });
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  const put = async (mcpServers: readonly Partial<McpServer>[]): Promise<void> => {
    const metadata = { name, namespace };
    await client.request({
      method: "PATCH",
      path: objectPath(workloads, metadata),
      query: { fieldManager: "git" },
      contentType: "application/apply-patch+yaml",
      body: { apiVersion: "ambit.dev/v1alpha1", kind: "Workload", metadata, spec: { components: [{ name: "tool", image }], mcpServers } },
    });
  };
  const remote = (url: string): Partial<McpServer> => ({ name: entry, remote: { url, headersFrom: [{ name: "token" }] } });
  const get = <T extends ClusterObject>(type: ResourceType, of: string): Promise<T | null> =>
    client.get<T>(type, { namespace, name: of }).catch(() => null);
  const when = async <T extends ClusterObject>(type: ResourceType, of: string, holds: (object: T) => boolean): Promise<T> => {
    let last: T | null = null;
    const came = await becomes(async () => {
      last = await get<T>(type, of);
      return last !== null && holds(last);
    }, withinMs);
    assert.ok(came && last, `${of} becomes so, and is ${JSON.stringify(last)}`);
    return last;
  };
  const grantName = draftObjectName({ workload: name, component: entry, tool: "list_issues" });
  const grantIs = (phase: string, holds: (grant: ClusterToolGrant) => boolean = () => true, of = grantName): Promise<ClusterToolGrant> =>
    when<ClusterToolGrant>(
      toolGrants,
      of,
      (grant) => grant.status?.phase === phase && grant.status.observedGeneration === grant.metadata.generation && holds(grant),
    );
  const reasonOf = (grant: ClusterToolGrant): string | undefined => grant.status?.conditions?.find(({ type }) => type === "Ready")?.reason;
  const workloadIs = (holds: (workload: ClusterWorkload) => boolean) => when<ClusterWorkload>(workloads, name, holds);
  const componentIn = (workload: ClusterWorkload, of: string) => workload.status?.components?.find((one) => one.name === of);
  const tell = (code: Sha256Digest, description = "List the issues."): void =>
    listings.set(key, code, toolListing({ server: "Linear" }, [{ name: "list_issues", description, inputSchema: '{"type":"object"}' }]));
  const kubectlAmbit = async (...args: string[]): Promise<{ code: number; err: string }> => {
    let err = "";
    const terminal = {
      out: () => undefined,
      err: (text: string) => {
        err += text;
      },
      env: {},
      folder: tmpdir(),
      interactive: false,
      colours: false,
      now: Date.now,
    };
    return { code: await run([...args, "-n", namespace, "--kubeconfig", server.kubeconfig], terminal, kubectlProgram), err };
  };
  const patchStatus = (type: ResourceType, of: string, status: object): Promise<unknown> =>
    client.request({
      method: "PATCH",
      path: objectPath(type, { name: of, namespace }, "status"),
      contentType: "application/merge-patch+json",
      body: { status },
    });
  /** As if the Deployment's controller had done its work. */
  const rollOut = async (of: string): Promise<void> => {
    const { metadata } = await client.get<Deployment>(deployments, { namespace, name: of });
    const counts = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
    await patchStatus(deployments, of, { ...counts, observedGeneration: metadata.generation });
  };
  const runPod = async (of: string, code: Sha256Digest): Promise<void> => {
    await client.create<ClusterObject>(pods, {
      metadata: { name: of, namespace, labels: componentLabels(name, entry), annotations: { [podAnnotations.delivered]: code } },
      spec: { containers: [{ name: "host", image: "ambit" }] },
    } as ClusterObject);
    await patchStatus(pods, of, { phase: "Running", conditions: [{ type: "Ready", status: "True" }] });
  };

  test("gets a bridge of its own under its name, which may reach the origin of its URL alone", async () => {
    await put([remote("https://mcp.example.com:8443/v1/mcp?team=a")]);
    const has = { [labels.workload]: name, [labels.component]: entry };
    for (const type of [deployments, services, networkPolicies]) {
      const { metadata } = await when(type, `${name}-${entry}`, () => true);
      assert.deepEqual({ ...metadata.labels, ...has }, metadata.labels, type.kind);
    }
    const made = await client.listPage<ClusterObject & { data: Record<string, string> }>(configMaps, {
      namespace,
      labelSelector: `${labels.workload}=${name},${labels.component}=${entry}`,
    });
    const { component, allowedHosts, environment, hop, serve } = JSON.parse(made.items[0]?.data["config.json"] ?? "");
    assert.deepEqual(
      { count: made.items.length, component, allowedHosts, environment, hop, serve },
      {
        count: 1,
        component: before1,
        allowedHosts: ["https://mcp.example.com:8443"],
        environment: { MCP_URL: "https://mcp.example.com:8443/v1/mcp?team=a" },
        hop: undefined,
        serve: undefined,
      },
    );
    const policy = await when<ClusterObject & { spec: { egress?: unknown } }>(
      networkPolicies,
      `${name}-${entry}`,
      ({ spec }) => spec.egress !== undefined,
    );
    assert.deepEqual(plain(policy.spec.egress), [{ to: [{ ipBlock: { cidr: "8.8.8.8/32" } }], ports: [{ protocol: "TCP", port: 8443 }] }]);
    const workload = await workloadIs((one) => componentIn(one, entry)?.egress?.[0]?.enforcedBy !== undefined);
    const { digest, resolved, egress } = componentIn(workload, entry) ?? {};
    assert.deepEqual([digest, resolved, egress?.map(({ host }) => host)], [before1, bridgeImage, ["https://mcp.example.com:8443"]]);
  });

  test("has drafts of what it lists, which name it and not its bridge's code", async () => {
    tell(before1);
    const draft = await grantIs("Draft");
    assert.deepEqual(plain(draft.spec.tool), { workload: name, mcpServer: entry, tool: "list_issues" });
    const { component, code, reach } = draft.status?.observed ?? {};
    assert.deepEqual(plain([component, code]), [before1, "any"]);
    assert.deepEqual(plain(reach), { hosts: ["https://mcp.example.com:8443"], volumes: [], secrets: ["token"], imports: [] });
  });

  test("is live once approved, by whatever code its bridge is", async () => {
    const { code, err } = await kubectlAmbit(
      "approve",
      grantName,
      "--yes",
      "--read-only",
      "--subject",
      `ServiceAccount:${namespace}/triage`,
    );
    assert.equal(code, 0, err);
    const grant = await grantIs("Active");
    assert.deepEqual(plain([grant.spec.review?.component, grant.status?.components]), [["any"], [before1]]);
  });

  test("is not found as a component", async () => {
    const grant = await client.get<ClusterToolGrant>(toolGrants, { namespace, name: grantName });
    await client.create<ClusterObject>(toolGrants, {
      metadata: { name: "as-a-component", namespace },
      spec: { ...grant.spec, review: undefined, tool: { workload: name, component: entry, tool: "list_issues" } },
    } as ClusterObject);
    const judged = await grantIs("Draft", () => true, "as-a-component");
    assert.equal(judged.status?.observed, undefined);
    await client.delete(toolGrants, { namespace, name: "as-a-component" });
  });

  test("stays live through the rollout of another Ambit's bridge, from its first moment on", async () => {
    await runPod("before", before1);
    await grantIs("Active", (grant) => reasonOf(grant) === "Active");
    await operator[Symbol.asyncDispose]();
    await startOperator(bridgeDigest);
    await workloadIs((one) => componentIn(one, entry)?.digest === bridgeDigest);
    assert.deepEqual((await grantIs("Active")).status?.components, [before1]);
    // The operator is told by the bridge of before, and calls may go to this one as soon as its pods are ready.
    tell(before1);
    await grantIs("Active", (grant) => grant.status?.components?.join() === [bridgeDigest, before1].join());
    await runPod("now", bridgeDigest);
    await client.request({ method: "DELETE", path: objectPath(pods, { name: "before", namespace }), body: { gracePeriodSeconds: 0 } });
    const grant = await grantIs("Active", ({ status }) => status?.components?.join() === bridgeDigest);
    assert.equal(grant.status?.observed?.component, bridgeDigest);
    const { items } = await client.listPage<Event>(events, { namespace });
    const told = items.filter(({ regarding }) => regarding.name === grantName).map(({ reason }) => reason);
    assert.deepEqual([...new Set(told)], ["Active"]);
  });

  test("that can't be listed says why in the Workload's status, and harms no other component", async () => {
    tell(bridgeDigest);
    for (const component of ["tool", entry]) await rollOut(`${name}-${component}`);
    await workloadIs(({ status }) => status?.conditions?.find(({ type }) => type === "Ready")?.status === "True");
    listings.setFault(key, "the pod's uid", { code: "ListingFailed", message: "the server does not answer" });
    const workload = await workloadIs((one) => componentIn(one, entry)?.fault !== undefined);
    assert.deepEqual(plain(componentIn(workload, entry)?.fault), { reason: "ListingFailed", message: "the server does not answer" });
    assert.equal(componentIn(workload, "tool")?.fault, undefined);
    assert.equal((await grantIs("Active")).status?.phase, "Active");
    listings.setFault(key, "the pod's uid", null);
    await workloadIs((one) => componentIn(one, entry)?.fault === undefined);
  });

  test("at another host is withheld until that was reviewed, and back again is as before", async () => {
    await put([remote("https://elsewhere.example.com/v1/mcp")]);
    const drifted = await grantIs("Drifted");
    assert.deepEqual(plain(drifted.status?.changes), [{ path: "/reach/hosts", after: "https://elsewhere.example.com" }]);
    assert.equal(reasonOf(drifted), "ReachWider");
    await put([remote("https://mcp.example.com:8443/v1/mcp?team=a")]);
    await grantIs("Active");
  });

  test("that is taken out takes its objects with it, and its tools are withheld", async () => {
    await put([]);
    const grant = await grantIs("Withheld");
    assert.equal(reasonOf(grant), "ComponentMissing");
    const isGone = async (): Promise<boolean> =>
      (await Promise.all([deployments, services, networkPolicies].map((type) => get(type, `${name}-${entry}`)))).every(
        (one) => one === null,
      );
    assert.ok(await becomes(isGone, withinMs));
    assert.ok(await get(deployments, `${name}-tool`));
  });

  test("nothing failed meanwhile", () => {
    assert.deepEqual(operator.failures, []);
  });
});
