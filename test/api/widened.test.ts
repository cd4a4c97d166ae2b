import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { approve } from "../../src/grants/approve.ts";
import { toolOfDefinition } from "../../src/grants/definition-function.ts";
import { draftObjectName } from "../../src/grants/draft.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import { configMaps, deployments, namespaces, networkPolicies, toolGrants, workloads } from "../../src/kube/resource-types.ts";
import { egressOf } from "../../src/operator/egress/egress.ts";
import { defaultEgressSettings } from "../../src/operator/egress/settings.ts";
import type { ClusterToolGrant, ClusterWorkload } from "../../src/operator/kinds.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { toolGrantControllers } from "../../src/operator/toolgrant/controllers.ts";
import { workloadController } from "../../src/operator/workload/controller.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { listIssues } from "../unit/grants/issues-tool.ts";
import { clientAs } from "./client-as.ts";
import { MadeUpComponents, runControllers } from "./operator-under-test.ts";

const withinMs = 20_000;

/** The controllers that sandboxes come from run alone at times: what is judged, and when, is up to the tests. */
describe("a Workload that is to reach more", { skip: whyNoApiServer() ?? false }, () => {
  const namespace = `ambit-widened-${randomBytes(4).toString("hex")}`;
  const components = new MadeUpComponents();
  let server: ApiServer;
  let client: ClusterClient;

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    client = await clientAs(server.kubeconfig);
    await client.create(namespaces, { metadata: { name: namespace } });
    for (const name of ["one", "two"]) components.put(imageOf(name), [listIssues()]);
  });

  after(async () => {
    for (const one of running) await one[Symbol.asyncDispose]();
    await client?.delete(namespaces, { name: namespace });
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  const imageOf = (name: string): string => `registry.test/${name}@sha256:${"0".repeat(64)}`;
  const running: AsyncDisposable[] = [];
  const run = async (...wanted: Parameters<typeof runControllers>): ReturnType<typeof runControllers> => {
    const controllers = await runControllers(...wanted);
    running.push(controllers);
    return controllers;
  };
  const sandboxes = () =>
    run(client, components, (context) => {
      const ask = async () => [{ address: "8.8.8.8", ttl: 60 }];
      const converge = { ...defaultEgressSettings.converge, settleMs: 10 };
      const egress = egressOf(context, { settings: { ...defaultEgressSettings, converge }, ask });
      const settings = { image: "ambit:test", pullPolicy: "IfNotPresent", pullSecrets: [], rootKey: "cm9vdA==" } as const;
      return [egress, workloadController(context, settings, egress, new ToolListings())];
    });
  const judges = () => run(client, components, (context) => toolGrantControllers(context, new ToolListings()));

  let name = "";
  const put = async (image: string, allowedHosts: readonly string[], claim?: string, secret?: string): Promise<void> => {
    const mounts = claim === undefined ? {} : { volumeMounts: [{ name: "docs", mountPath: "/docs" }] };
    const given = secret === undefined ? {} : { environment: { secretFrom: [{ name: secret }] } };
    const body = {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name, namespace },
      spec: {
        components: [{ name: "tool", image: imageOf(image), localResources: { allowedHosts, ...mounts, ...given } }],
        ...(claim === undefined ? {} : { volumes: [{ name: "docs", persistentVolumeClaim: { claimName: claim } }] }),
      },
    };
    const path = objectPath(workloads, body.metadata);
    await client.request({ method: "PATCH", path, query: { fieldManager: "git" }, contentType: "application/apply-patch+yaml", body });
  };
  const get = <T extends ClusterObject>(type: ResourceType, name: string): Promise<T | null> =>
    client.get<T>(type, { namespace, name }).catch(() => null);
  const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => assert.ok(await becomes(holds, withinMs), what);
  const grantName = (): string =>
    draftObjectName({ workload: name, component: "tool", interface: "example:github/issues@0.1.0", function: "list-issues" });
  const isPhase = async (phase: string): Promise<boolean> => {
    const grant = await get<ClusterToolGrant>(toolGrants, grantName());
    return grant?.status?.phase === phase && grant.status.observedGeneration === grant.metadata.generation;
  };
  const approveIt = async (): Promise<void> => {
    await eventually(
      "a tool is observed",
      async () => (await get<ClusterToolGrant>(toolGrants, grantName()))?.status?.observed?.text !== undefined,
    );
    const seen = await client.get<ClusterToolGrant>(toolGrants, { namespace, name: grantName() });
    const { text = "", reach, component } = seen.status?.observed ?? {};
    assert.ok(reach && component);
    const declaration = { ...seen.spec.declaration, name: `${name.replaceAll("-", "_")}_issues` };
    const subjects = [{ kind: "ServiceAccount", name: "triage", namespace }] as const;
    const grant = { ...seen, spec: { ...seen.spec, declaration, subjects, mutates: false } };
    const fn = toolOfDefinition(text);
    const approved = approve({ grant, fn, reach, component: [component as `sha256:${string}`], now: new Date() });
    await client.replace<ClusterToolGrant>(toolGrants, approved as ClusterToolGrant);
  };
  /** What every sandbox is started with, and what is let out of it. */
  const runs = async (): Promise<string> => {
    const made = async (type: ResourceType) =>
      (await client.listPage<ClusterObject>(type, { namespace, labelSelector: `ambit.dev/workload=${name}` })).items;
    const [config, deployment, policies] = await Promise.all([configMaps, deployments, networkPolicies].map(made));
    return JSON.stringify([
      config?.flatMap((object) => (object as { data?: object }).data ?? []),
      [...(deployment ?? []), ...(policies ?? [])].map((object) => (object as { spec?: object }).spec),
    ]);
  };
  const isWaiting = async (): Promise<boolean> => {
    const found = await get<ClusterWorkload>(workloads, name);
    const reconciling = found?.status?.conditions?.find(({ type }) => type === "Reconciling");
    return reconciling?.reason === "JudgingGrants" && reconciling.observedGeneration === found?.metadata.generation;
  };

  const widenings: Record<string, () => Promise<void>> = {
    "further hosts": () => put("one", ["api.github.com", "evil.example"]),
    "other code": () => put("two", ["api.github.com"]),
    "a claim": () => put("one", ["api.github.com"], "docs"),
    "a secret": () => put("one", ["api.github.com"], undefined, "github-token"),
  };
  for (const [what, widen] of Object.entries(widenings)) {
    test(`gets ${what} only when no tool is live that was judged without`, async () => {
      name = what.replaceAll(" ", "-");
      await put("one", ["api.github.com"]);
      const first = await judges();
      await approveIt();
      await eventually("it is live", () => isPhase("Active"));
      let operator = await sandboxes();
      await eventually("a sandbox is there", async () => (await get(deployments, `${name}-tool`)) !== null);
      await eventually("something is let out", async () => (await runs()).includes("8.8.8.8"));
      await first[Symbol.asyncDispose]();

      const before = await runs();
      await widen();
      await eventually("it waits", isWaiting);
      assert.equal(await runs(), before);
      // One that starts anew waits as well.
      await operator[Symbol.asyncDispose]();
      operator = await sandboxes();
      await client.create(configMaps, {
        metadata: { name: `nudge-${name}`, namespace, labels: { "app.kubernetes.io/managed-by": "ambit", "ambit.dev/workload": name } },
      });
      await eventually("it still waits", isWaiting);
      assert.equal(await runs(), before);

      const second = await judges();
      await eventually("it is judged", async () => !(await isWaiting()));
      await eventually("it rolls out", async () => (await runs()) !== before);
      await Promise.all([operator, second].map((one) => one[Symbol.asyncDispose]()));
      assert.deepEqual([...operator.failures, ...second.failures].map(String), []);
    });
  }
});
