import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { Workload } from "../../src/api/generated/workload.ts";
import { becomes } from "../cluster/becomes.ts";
import { startNode, whyNoCluster } from "../cluster/start-node.ts";
import { apply, installAmbit, type Kubectl, kubectlOf, restrictedNamespace } from "./installed.ts";
import { readAll, readOne } from "./reviewer.ts";
import { serveTools, type ToolsRegistry, toolsRegistry } from "./tools-registry.ts";

const given = process.env.AMBIT_TEST_KUBECONFIG ? "the cluster of AMBIT_TEST_KUBECONFIG has no world in which a registry could be" : null;

const reason = given ?? (await whyNoCluster());

const fixture = (name: string): Buffer => readFileSync(new URL(`../fixtures/components/${name}.wasm`, import.meta.url));

const withinMs = 60_000;

/** What only a whole node finds wrong with a Workload: the condition says what to do, others go on, and mending it is enough. */
describe("a Workload that can't run", { skip: reason ?? false }, () => {
  const namespace = `bad-${randomBytes(4).toString("hex")}`;
  let kubectl: Kubectl;
  let registry: ToolsRegistry;
  let good: string;

  before(async () => {
    const cluster = await startNode();
    assert.ok(cluster.node);
    kubectl = kubectlOf(cluster);
    registry = await serveTools(cluster.node);
    await installAmbit(cluster);
    await apply(kubectl, restrictedNamespace(namespace));
    good = await registry.push("tools/mission", fixture("mission"));
    await put("beside", good);
    await when("beside", "True", "Serving");
  });

  after(async () => {
    await kubectl?.(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
    await registry?.[Symbol.asyncDispose]();
  });

  const put = (name: string, image: string, spec: object = {}): Promise<void> =>
    apply(kubectl, {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name, namespace },
      spec: { components: [{ name: "tool", image }], ...spec },
    });
  /** Waits until `Ready` is so, for the spec as it is now, and gives its message. */
  const when = async (name: string, status: string, why: string): Promise<string> => {
    let last: Workload | undefined;
    const ready = () => last?.status?.conditions?.find(({ type }) => type === "Ready");
    const came = await becomes(async () => {
      last = await readOne<Workload>(kubectl, namespace, "workloads", name);
      return ready()?.status === status && ready()?.reason === why && ready()?.observedGeneration === last.metadata.generation;
    }, withinMs);
    assert.ok(came, `${name} is ${status} for ${why}: ${JSON.stringify(last?.status)}`);
    return ready()?.message ?? "";
  };
  const podsOf = (name: string): Promise<readonly object[]> => readAll(kubectl, namespace, "pods", `--selector=ambit.dev/workload=${name}`);

  test("since its image is not there, and runs once it names another", async () => {
    await put("vanished", `${toolsRegistry}/tools/mission@sha256:${"0".repeat(64)}`);
    assert.match(await when("vanished", "False", "ImageNotFound"), /tools\/mission/);
    await put("vanished", good);
    await when("vanished", "True", "Serving");
  });

  test("since its component needs what no host has, and runs once it is another", async () => {
    await put("refused", await registry.push("tools/refused", fixture("wat/missing-import")));
    assert.match(await when("refused", "False", "ComponentRefused"), /example:nowhere\/door/);
    await put("refused", good);
    await when("refused", "True", "Serving");
  });

  test("since a quota keeps its pods from being made", async () => {
    await apply(kubectl, {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "full", namespace },
      spec: { hard: { pods: "0" } },
    });
    await put("crowded", good);
    assert.match(await when("crowded", "False", "PodsRefused"), /quota/);
    await kubectl(["--namespace", namespace, "delete", "resourcequota", "full"]);
    await kubectl(["--namespace", namespace, "delete", "workload", "crowded"]);
    assert.deepEqual(await podsOf("crowded"), []);
  });

  test("since it is suspended, which ends its pods and keeps the rest, until it is not", async () => {
    await put("paused", good);
    await when("paused", "True", "Serving");
    await put("paused", good, { suspend: true });
    await when("paused", "False", "Suspended");
    assert.deepEqual(await podsOf("paused"), []);
    assert.equal((await readAll(kubectl, namespace, "services", "--selector=ambit.dev/workload=paused")).length, 1);
    await put("paused", good);
    await when("paused", "True", "Serving");
  });

  test("is no harm to the one beside it", async () => {
    await when("beside", "True", "Serving");
    assert.equal((await podsOf("beside")).length, 1);
  });
});
