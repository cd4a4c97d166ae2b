import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { Workload } from "../../src/api/generated/workload.ts";
import { becomes } from "../cluster/becomes.ts";
import { startNode, whyNoCluster } from "../cluster/start-node.ts";
import { apply, installAmbit, type Kubectl, kubectlOf, restrictedNamespace } from "./installed.ts";
import { readOne } from "./reviewer.ts";
import { serveTools, type ToolsRegistry, toolsRegistry } from "./tools-registry.ts";

/** Workloads that can't hold, all in one namespace and at one time: each says why and what to do, and one that is fine runs beside them. */

const given = process.env.AMBIT_TEST_KUBECONFIG ? "the cluster of AMBIT_TEST_KUBECONFIG has no world in which a registry could be" : null;

const reason = given ?? (await whyNoCluster());

const component = readFileSync(new URL("../fixtures/components/mission.wasm", import.meta.url));

const withinMs = 60_000;

const longestName = "w".repeat(63);

describe("bad input on a node", { skip: reason ?? false }, () => {
  const namespace = `bad-${randomBytes(4).toString("hex")}`;
  let kubectl: Kubectl;
  let registry: ToolsRegistry;
  let image: string;

  const workload = (name: string, ...components: object[]): object => ({
    apiVersion: "ambit.dev/v1alpha1",
    kind: "Workload",
    metadata: { name, namespace },
    spec: { components },
  });
  const readiness = async (name: string): Promise<{ status: string; reason: string; message: string }> => {
    const { status, metadata } = await readOne<Workload>(kubectl, namespace, "workloads", name);
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    return ready?.observedGeneration === metadata.generation && ready ? ready : { status: "", reason: "", message: "" };
  };
  const becomesReady = async (name: string): Promise<void> => {
    let last = {};
    const ready = await becomes(async () => {
      last = await readiness(name);
      return (await readiness(name)).status === "True";
    }, withinMs);
    assert.ok(ready, `${name} is ready: ${JSON.stringify(last)}`);
  };

  before(async () => {
    const cluster = await startNode();
    assert.ok(cluster.node);
    kubectl = kubectlOf(cluster);
    registry = await serveTools(cluster.node);
    await installAmbit(cluster);
    image = await registry.push("tools/mission", component);
    await apply(kubectl, restrictedNamespace(namespace));
  });

  after(async () => {
    await kubectl?.(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
    await registry?.[Symbol.asyncDispose]();
  });

  const broken: Record<
    string,
    { readonly name: string; readonly make: () => Promise<object>; readonly reason: string; readonly tells: RegExp }
  > = {
    "an image that is not there": {
      name: "vanished",
      make: async () => workload("vanished", { name: "github", image: `${toolsRegistry}/tools/gone@sha256:${"0".repeat(64)}` }),
      reason: "ImageNotFound",
      tells: /tools\/gone/,
    },
    "an image that is no component": {
      name: "no-component",
      make: async () => workload("no-component", { name: "github", image: await registry.push("tools/text", Buffer.from("just a text")) }),
      reason: "NotWasm",
      tells: /./,
    },
    "a pull secret that the operator may not read": {
      name: "no-secret",
      make: async () => workload("no-secret", { name: "github", image, imagePullSecret: { name: "nowhere" } }),
      reason: "PullSecretForbidden",
      tells: /nowhere.*pullSecrets/s,
    },
    "somebody else's Service under the name that it needs": {
      name: "taken",
      make: async () => {
        await apply(kubectl, {
          apiVersion: "v1",
          kind: "Service",
          metadata: { name: "taken-github", namespace },
          spec: { selector: { app: "somebody-else" }, ports: [{ port: 80 }] },
        });
        return workload("taken", { name: "github", image });
      },
      reason: "ForeignObject",
      tells: /taken-github/,
    },
  };

  for (const [what, { name, make, reason: expected, tells }] of Object.entries(broken)) {
    test(`a Workload with ${what} says so`, async () => {
      await apply(kubectl, await make());
      let last = { status: "", reason: "", message: "" };
      const said = await becomes(async () => {
        last = await readiness(name);
        return last.status === "False" && last.reason === expected;
      }, withinMs);
      assert.ok(said, `Ready=False, reason ${expected}: ${JSON.stringify(last)}`);
      assert.match(last.message, tells);
    });
  }

  test("somebody else's object was left as it was", async () => {
    const service = await readOne<{ spec: { selector: object }; metadata: object }>(kubectl, namespace, "services", "taken-github");
    assert.deepEqual(service.spec.selector, { app: "somebody-else" });
  });

  test("two components of one name are refused before they are anything", async () => {
    await assert.rejects(apply(kubectl, workload("twins", { name: "github", image }, { name: "github", image })), /spec\.components/);
  });

  test("a Workload that is fine runs beside them, under the longest name that there is", async () => {
    await apply(kubectl, workload(longestName, { name: "github", image }));
    await becomesReady(longestName);
  });

  test("a Workload that is mended is ready", async () => {
    await apply(kubectl, workload("vanished", { name: "github", image }));
    await becomesReady("vanished");
  });
});
