import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { bridgeDigest, bridgeImage } from "../../src/api/bridge-component.ts";
import { sha256Of } from "../../src/api/digest.ts";
import type { McpServer } from "../../src/api/generated/workload.ts";
import type { ClusterObject, ResourceType } from "../../src/kube/object.ts";
import { configMaps, deployments, networkPolicies, services, toolGrants } from "../../src/kube/resource-types.ts";
import type { ClusterToolGrant } from "../../src/operator/kinds.ts";
import { labels } from "../../src/operator/names.ts";
import { whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { listIssues } from "../unit/grants/issues-tool.ts";
import { componentIn, McpWorld, plain, reasonOf } from "./mcp-world.ts";

const withinMs = 20_000;
const skip = whyNoApiServer() ?? false;

const events: ResourceType = { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true };
type Event = ClusterObject & { readonly reason: string; readonly regarding: { readonly kind: string; readonly name: string } };
type Policy = ClusterObject & { readonly spec: { readonly ingress?: readonly object[]; readonly egress?: readonly object[] } };

type DeploymentObject = ClusterObject & {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly volumes: readonly { readonly secret?: { readonly secretName: string } }[];
        readonly containers: readonly { readonly ports: readonly { readonly name: string }[] }[];
      };
    };
  };
};

const imageOf = (name: string): string => `registry.test/${name}@sha256:${"0".repeat(64)}`;

/** What the host of a component is started with. */
const hostConfig = async ({ client, namespace, workload }: McpWorld, component: string): Promise<Record<string, unknown>> => {
  const labelSelector = `${labels.workload}=${workload},${labels.component}=${component}`;
  let found: readonly (ClusterObject & { data: Record<string, string> })[] = [];
  const isMade = async (): Promise<boolean> => {
    found = (await client.listPage<(typeof found)[number]>(configMaps, { namespace, labelSelector })).items;
    return found.length === 1;
  };
  assert.ok(await becomes(isMade, withinMs), `${component} has one configuration`);
  return JSON.parse(found[0]?.data["config.json"] ?? "");
};

describe("a remote MCP server of a Workload", { skip }, () => {
  const entry = "linear";
  const older = sha256Of("the bridge of another Ambit");
  let world: McpWorld;

  before(async () => {
    world = await McpWorld.start(entry);
    world.components.put(imageOf("tool"), [listIssues()]);
    await world.startOperator(older);
  });

  after(() => world?.[Symbol.asyncDispose]());

  const put = (...mcpServers: readonly Partial<McpServer>[]): Promise<void> =>
    world.put({ components: [{ name: "tool", image: imageOf("tool") }], mcpServers });
  const remote = (url: string): Partial<McpServer> => ({ name: entry, remote: { url, headersFrom: [{ name: "token" }] } });

  test("gets a bridge of its own under its name, which may reach the origin of its URL alone", async () => {
    await put(remote("https://mcp.example.com:8443/v1/mcp?team=a"));
    const has = { [labels.workload]: world.workload, [labels.component]: entry };
    for (const type of [deployments, services, networkPolicies]) {
      const { metadata } = await world.when(type, `issues-${entry}`);
      assert.deepEqual({ ...metadata.labels, ...has }, metadata.labels, type.kind);
    }
    const { component, allowedHosts, environment, hop, serve } = await hostConfig(world, entry);
    assert.deepEqual(
      { component, allowedHosts, environment, hop, serve },
      {
        component: older,
        allowedHosts: ["https://mcp.example.com:8443"],
        environment: { MCP_URL: "https://mcp.example.com:8443/v1/mcp?team=a" },
        hop: undefined,
        serve: undefined,
      },
    );
    const { spec } = await world.when<Policy>(networkPolicies, `issues-${entry}`, (one) => one.spec.egress !== undefined);
    assert.deepEqual(plain(spec.egress), [{ to: [{ ipBlock: { cidr: "8.8.8.8/32" } }], ports: [{ protocol: "TCP", port: 8443 }] }]);
    const workload = await world.workloadIs((one) => componentIn(one, entry)?.egress?.[0]?.enforcedBy !== undefined);
    const { digest, resolved, egress } = componentIn(workload, entry) ?? {};
    assert.deepEqual([digest, resolved, egress?.map(({ host }) => host)], [older, bridgeImage, ["https://mcp.example.com:8443"]]);
  });

  test("has its headers' secret in the bridge's pods alone", async () => {
    const secretsOf = async (of: string): Promise<unknown[]> => {
      const { spec } = await world.when<DeploymentObject>(deployments, `issues-${of}`);
      return spec.template.spec.volumes.flatMap(({ secret }) => (secret ? [secret.secretName] : []));
    };
    assert.deepEqual([await secretsOf(entry), await secretsOf("tool")], [["token"], []]);
    const { secretFolders } = await hostConfig(world, entry);
    assert.deepEqual(secretFolders, [{ as: "headers", folder: "/var/lib/ambit/given/secrets/token", name: "the Secret token" }]);
    assert.equal((await hostConfig(world, "tool")).secretFolders, undefined);
  });

  test("has drafts of what it lists, which name it and not its bridge's code", async () => {
    world.tell(older);
    const draft = await world.grantIs("Draft");
    assert.deepEqual(plain(draft.spec.tool), { workload: "issues", mcpServer: entry, tool: "list_issues" });
    const { component, code, reach } = draft.status?.observed ?? {};
    assert.deepEqual(plain([component, code]), [older, "any"]);
    assert.deepEqual(plain(reach), { hosts: ["https://mcp.example.com:8443"], volumes: [], secrets: ["token"], imports: [] });
  });

  test("is live once approved, by whatever code its bridge is", async () => {
    await world.approve();
    const grant = await world.grantIs("Active");
    assert.deepEqual(plain([grant.spec.review?.component, grant.status?.components]), [["any"], [older]]);
  });

  test("is not found as a component", async () => {
    const grant = await world.when<ClusterToolGrant>(toolGrants, world.grantName);
    const { namespace } = world;
    await world.client.create<ClusterObject>(toolGrants, {
      metadata: { name: "as-a-component", namespace },
      spec: { ...grant.spec, tool: { workload: "issues", component: entry, tool: "list_issues" } },
    } as ClusterObject);
    // It was not approved for this tool, and there is none.
    const judged = await world.grantIs("Drifted", () => true, "as-a-component");
    assert.match(judged.status?.conditions?.find(({ type }) => type === "Ready")?.message ?? "", /has no component linear/);
    await world.client.delete(toolGrants, { namespace, name: "as-a-component" });
  });

  test("stays live through the rollout of another Ambit's bridge, from its first moment on", async () => {
    await world.runPod("before", entry, older);
    await world.grantIs("Active", (grant) => reasonOf(grant) === "Active");
    await world.startOperator(bridgeDigest);
    await world.workloadIs((one) => componentIn(one, entry)?.digest === bridgeDigest);
    assert.deepEqual((await world.grantIs("Active")).status?.components, [older]);
    // The operator is told by the bridge of before, and calls may go to this one as soon as its pods are ready.
    world.tell(older);
    await world.grantIs("Active", (grant) => grant.status?.components?.join() === [bridgeDigest, older].join());
    await world.runPod("now", entry, bridgeDigest);
    await world.endPod("before");
    const grant = await world.grantIs("Active", ({ status }) => status?.components?.join() === bridgeDigest);
    assert.equal(grant.status?.observed?.component, bridgeDigest);
    const { items } = await world.client.listPage<Event>(events, { namespace: world.namespace });
    const told = items.filter(({ regarding }) => regarding.name === world.grantName).map(({ reason }) => reason);
    assert.deepEqual([...new Set(told)], ["Active"]);
  });

  test("that can't be listed says why in the Workload's status, and harms no other component", async () => {
    world.tell(bridgeDigest);
    for (const component of ["tool", entry]) await world.rollOut(component);
    await world.workloadIs((workload) => reasonOf(workload) === "Serving");
    world.listings.setFault(world.listed, "the pod's uid", { code: "ListingFailed", message: "the server does not answer" });
    const workload = await world.workloadIs((one) => componentIn(one, entry)?.fault !== undefined);
    assert.deepEqual(plain(componentIn(workload, entry)?.fault), { reason: "ListingFailed", message: "the server does not answer" });
    assert.equal(componentIn(workload, "tool")?.fault, undefined);
    await world.grantIs("Active");
    world.listings.setFault(world.listed, "the pod's uid", null);
    await world.workloadIs((one) => componentIn(one, entry)?.fault === undefined);
  });

  test("at another host is withheld until that was reviewed, and back again is as before", async () => {
    await put(remote("https://elsewhere.example.com/v1/mcp"));
    const drifted = await world.grantIs("Drifted");
    assert.deepEqual(plain(drifted.status?.changes), [{ path: "/reach/hosts", after: "https://elsewhere.example.com" }]);
    assert.equal(reasonOf(drifted), "ReachWider");
    await put(remote("https://mcp.example.com:8443/v1/mcp?team=a"));
    await world.grantIs("Active");
  });

  test("that is taken out takes its objects with it, and its tools are withheld", async () => {
    await put();
    assert.equal(reasonOf(await world.grantIs("Withheld")), "ComponentMissing");
    const isGone = async (): Promise<boolean> =>
      (await Promise.all([deployments, services, networkPolicies].map((type) => world.get(type, `issues-${entry}`)))).every((one) => !one);
    assert.ok(await becomes(isGone, withinMs));
    assert.ok(await world.get(deployments, "issues-tool"));
  });

  test("nothing failed meanwhile", () => {
    assert.deepEqual(world.failures, []);
  });
});

describe("a component of a Workload that is an MCP server", { skip }, () => {
  const [entry, component] = ["issues", "issues-mcp"];
  const handler = "wasi:http/incoming-handler@0.2.6";
  const other = "registry.test/server@sha256:1111111111111111111111111111111111111111111111111111111111111111";
  let world: McpWorld;

  before(async () => {
    world = await McpWorld.start(entry);
    world.components.put(imageOf("tool"), [{ ...listIssues(), name: "close-issue" }]);
    for (const image of [imageOf("server"), other]) world.components.put(image, [listIssues()], handler);
    await world.startOperator();
  });

  after(() => world?.[Symbol.asyncDispose]());

  const put = (image: string, allowedHosts: readonly string[] = ["https://api.example.com"]): Promise<void> =>
    world.put({
      components: [
        { name: component, image, localResources: { allowedHosts } },
        { name: "tool", image: imageOf("tool") },
      ],
      mcpServers: [{ name: entry, component }],
    });
  const pods = (of: string) => ({ podSelector: { matchLabels: { [labels.workload]: "issues", [labels.component]: of } } });
  const ambits = (more: object) => ({
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ambit-system" } },
    podSelector: more,
  });
  const hopPort = [{ protocol: "TCP", port: 8444 }];
  const hostPort = [{ protocol: "TCP", port: 8443 }];
  const policyOf = (of: string) => world.when<Policy>(networkPolicies, `issues-${of}`, ({ spec }) => (spec.egress ?? []).length > 0);

  test("gets a sandbox that reaches its own hosts, and takes its bridge's requests alone", async () => {
    await put(imageOf("server"));
    const { spec } = await policyOf(component);
    assert.deepEqual(plain(spec.ingress), [
      {
        from: [ambits({ matchLabels: { "app.kubernetes.io/component": "operator", "app.kubernetes.io/name": "ambit" } })],
        ports: hostPort,
      },
      { from: [pods(entry)], ports: hopPort },
    ]);
    assert.deepEqual(plain(spec.egress), [
      { to: [{ ipBlock: { cidr: "8.8.8.8/32" } }], ports: hostPort.map((port) => ({ ...port, port: 443 })) },
    ]);
    const config = await hostConfig(world, component);
    assert.deepEqual(
      [config.serve, config.hop, config.allowedHosts],
      [{ address: "", port: 8444 }, undefined, ["https://api.example.com"]],
    );
    const deployment = await world.when<DeploymentObject>(deployments, `issues-${component}`);
    const ports = deployment.spec.template.spec.containers.flatMap(({ ports }) => ports.map(({ name }) => name));
    assert.deepEqual(ports, ["calls", "hop"]);
  });

  test("gets a bridge that reaches its pods and nothing else", async () => {
    const { spec } = await policyOf(entry);
    assert.deepEqual(plain(spec.egress), [{ to: [pods(component)], ports: hopPort }]);
    assert.deepEqual(spec.ingress?.length, 1);
    const config = await hostConfig(world, entry);
    assert.deepEqual(
      [config.serve, config.hop, config.allowedHosts, config.environment],
      [undefined, { authority: component }, [], { MCP_URL: "http://issues-mcp/mcp" }],
    );
    const workload = await world.workloadIs((one) => componentIn(one, entry)?.egress !== undefined);
    const hop = componentIn(workload, entry)?.egress?.map(({ host, enforcedBy }) => [host, enforcedBy]);
    assert.deepEqual(hop, [["issues-mcp (this workload's component)", "networkpolicy"]]);
  });

  test("offers no functions, and its tools' code and reach are its own", async () => {
    world.tell(bridgeDigest);
    const draft = await world.grantIs("Draft");
    const { component: bridge, code, reach } = draft.status?.observed ?? {};
    assert.deepEqual(plain([bridge, code]), [bridgeDigest, world.components.digestOf(imageOf("server"))]);
    assert.deepEqual(plain(reach), {
      hosts: ["https://api.example.com"],
      volumes: [],
      secrets: [],
      imports: ["wasi:http/outgoing-handler@0.2.6"],
    });
    const workload = await world.workloadIs((one) => (componentIn(one, component)?.notOffered ?? []).length > 0);
    const { toolCount, notOffered } = componentIn(workload, component) ?? {};
    assert.deepEqual(
      [toolCount, notOffered?.map(({ reason }) => reason)],
      [0, ["the component exports wasi:http/incoming-handler@0.2.6, so it is a server and not a tool"]],
    );
    const { items } = await world.client.listPage<ClusterToolGrant>(toolGrants, { namespace: world.namespace });
    assert.deepEqual(
      items.filter(({ spec }) => spec.tool.component === component),
      [],
    );
    await world.approve();
    const { spec } = await world.grantIs("Active");
    assert.deepEqual(spec.review?.component, [world.components.digestOf(imageOf("server"))]);
  });

  test("with code that was not reviewed is withheld, and as long as a pod may answer that has it", async () => {
    const reviewed = world.components.digestOf(imageOf("server"));
    await world.runPod("bridge", entry, bridgeDigest);
    const waits = await world.grantIs(
      "Active",
      (grant) => grant.status?.conditions?.some(({ message }) => /issues-mcp/.test(message)) === true,
    );
    assert.equal(reasonOf(waits), "NoReadyHost");
    await world.runPod("server", component, reviewed);
    await world.grantIs("Active", (grant) => reasonOf(grant) === "Active");
    await put(other);
    const drifted = await world.grantIs("Drifted");
    assert.deepEqual(plain(drifted.status?.changes), [{ path: "/component", before: reviewed, after: world.components.digestOf(other) }]);
    await world.runPod("other", component, world.components.digestOf(other));
    await put(imageOf("server"));
    const still = await world.grantIs("Drifted", ({ status }) => status?.observed?.code === reviewed);
    assert.equal(reasonOf(still), "CodeChanged");
    await world.endPod("other");
    await world.grantIs("Active");
  });

  test("that may reach more has its tools withheld", async () => {
    await put(imageOf("server"), ["https://api.example.com", "https://more.example.com"]);
    const drifted = await world.grantIs("Drifted");
    assert.deepEqual(plain(drifted.status?.changes), [{ path: "/reach/hosts", after: "https://more.example.com" }]);
    await put(imageOf("server"));
    await world.grantIs("Active");
  });

  test("that serves no HTTP says so, and harms no other component", async () => {
    await put(imageOf("tool"));
    const workload = await world.workloadIs((one) => componentIn(one, component)?.fault !== undefined);
    assert.equal(componentIn(workload, component)?.fault?.reason, "ServesNoHttp");
    assert.equal(componentIn(workload, "tool")?.fault, undefined);
    assert.ok(await world.get(deployments, "issues-tool"));
  });

  test("nothing failed meanwhile", () => {
    assert.deepEqual(world.failures, []);
  });
});
