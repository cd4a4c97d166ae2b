import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import { podAnnotations } from "../../src/operator/names.ts";
import { becomes } from "../cluster/becomes.ts";
import { startNode, whyNoCluster } from "../cluster/start-node.ts";
import { type Agent, startAgent } from "./agent.ts";
import { ambitNamespace, apply, installAmbit, type Kubectl, kubectlOf, restrictedNamespace } from "./installed.ts";
import { approveAsReviewer, draftOf, readAll } from "./reviewer.ts";
import { serveTools, type ToolsRegistry } from "./tools-registry.ts";

/** A host that comes back is another one: it is met, certified and delivered to anew. An operator that comes back is not, and disturbs nobody. */

const given = process.env.AMBIT_TEST_KUBECONFIG ? "the cluster of AMBIT_TEST_KUBECONFIG has no world in which a registry could be" : null;

const reason = given ?? (await whyNoCluster());

const component = readFileSync(new URL("../fixtures/components/mission.wasm", import.meta.url));

const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };

const withinMs = 60_000;

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly status: { readonly containerStatuses?: readonly { readonly restartCount: number; readonly ready: boolean }[] };
}

describe("a tool's pod", { skip: reason ?? false }, () => {
  const namespace = `restart-${randomBytes(4).toString("hex")}`;
  let kubectl: Kubectl;
  let registry: ToolsRegistry;
  let agent: Agent;

  const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    assert.ok(await becomes(holds, withinMs), `${what} within ${withinMs / 1000} s`);
  };
  const answers = async (): Promise<boolean> => JSON.stringify(await agent.request("POST", "/v1/calls", call)).includes('"outcome":"ok"');
  const thePod = async (): Promise<Pod> => {
    const [pod, another] = await readAll<Pod>(kubectl, namespace, "pods", "--selector=ambit.dev/component=github");
    assert.ok(pod && !another);
    return pod;
  };
  const noted = ({ metadata }: Pod): readonly (string | undefined)[] =>
    [podAnnotations.boot, podAnnotations.delivered, podAnnotations.hostCertificate].map((name) => metadata.annotations?.[name]);

  before(async () => {
    const cluster = await startNode();
    assert.ok(cluster.node);
    kubectl = kubectlOf(cluster);
    registry = await serveTools(cluster.node);
    await installAmbit(cluster);
    await apply(kubectl, restrictedNamespace(namespace));
    agent = await startAgent(kubectl, namespace, "triage");
    await apply(kubectl, {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: "github", namespace },
      spec: { components: [{ name: "github", image: await registry.push("tools/mission", component) }] },
    });
    let draft: ToolGrant | undefined;
    await eventually("there is a draft", async () => {
      draft = await draftOf(kubectl, namespace, "github");
      return draft !== undefined;
    });
    assert.ok(draft);
    await approveAsReviewer(kubectl, draft, [{ kind: "ServiceAccount", name: "triage", namespace }]);
    await eventually("the call is answered", answers);
  });

  after(async () => {
    await kubectl?.(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
    await registry?.[Symbol.asyncDispose]();
  });

  test("is delivered to anew when its container restarts, under another boot id and certificate, and answers again", async (t) => {
    const before = await thePod();
    const started = performance.now();
    const [bootBefore, code, certificateBefore] = noted(before);
    await kubectl(["--namespace", namespace, "exec", before.metadata.name, "--", "node", "-e", "process.kill(1, 'SIGTERM')"]);
    await eventually("it is delivered to", async () => {
      const now = await thePod();
      const [container] = now.status.containerStatuses ?? [];
      return container?.restartCount === 1 && container.ready && noted(now)[0] !== bootBefore;
    });
    await eventually("the call is answered", answers);
    t.diagnostic(`answered ${Math.round(performance.now() - started)} ms after the container was told to end`);
    const now = await thePod();
    assert.equal(now.metadata.uid, before.metadata.uid);
    assert.equal(noted(now)[1], code);
    assert.notEqual(noted(now)[2], certificateBefore);
  });

  test("keeps its certificate when the operator restarts, and every call is answered meanwhile", async (t) => {
    const before = noted(await thePod());
    const { good, bad } = await agent.callingWhile(call, '"outcome":"ok"', 2, async () => {
      await kubectl(["--namespace", ambitNamespace, "rollout", "restart", "deployment/ambit-operator"]);
      await kubectl(["--namespace", ambitNamespace, "rollout", "status", "deployment/ambit-operator", "--timeout=90s"]);
    });
    t.diagnostic(`${good} calls answered`);
    assert.deepEqual(bad, []);
    assert.ok(good > 10);
    assert.deepEqual(noted(await thePod()), before);
  });
});
