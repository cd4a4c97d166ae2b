import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import { becomes } from "../cluster/becomes.ts";
import { startNode, whyNoCluster } from "../cluster/start-node.ts";
import { type Agent, type Answer, startAgent } from "./agent.ts";
import { ambitNamespace, apply, installAmbit, type Kubectl, kubectlOf, restrictedNamespace } from "./installed.ts";
import { approveAsReviewer, draftOf, readAll } from "./reviewer.ts";
import { serveTools, type ToolsRegistry } from "./tools-registry.ts";

/**
 * What a user does first, on a real node: installs the chart, applies a Workload, has a reviewer approve what was drafted, and calls the tool from a pod with nothing but its own
 * ServiceAccount.
 */

const given = process.env.AMBIT_TEST_KUBECONFIG ? "the cluster of AMBIT_TEST_KUBECONFIG has no world in which a registry could be" : null;

const reason = given ?? (await whyNoCluster());

const component = readFileSync(new URL("../fixtures/components/mission.wasm", import.meta.url));

const withinMs = 60_000;

describe("Ambit installed from its chart", { skip: reason ?? false }, () => {
  const namespace = `agents-${randomBytes(4).toString("hex")}`;
  let kubectl: Kubectl;
  let registry: ToolsRegistry;
  let agent: Agent;

  before(async () => {
    const cluster = await startNode();
    assert.ok(cluster.node);
    kubectl = kubectlOf(cluster);
    registry = await serveTools(cluster.node);
    await installAmbit(cluster);
    await apply(kubectl, restrictedNamespace(namespace));
    agent = await startAgent(kubectl, namespace, "triage");
  });

  after(async () => {
    await kubectl?.(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
    await registry?.[Symbol.asyncDispose]();
  });

  test("an agent with a token of its own is known and offered nothing", async () => {
    assert.deepEqual(await agent.request("GET", "/v1/declarations"), { status: 200, answer: [] });
  });

  test("a Workload becomes a draft that nobody can call, and a call that is answered once a reviewer approved it", async (t) => {
    const image = await registry.push("tools/mission", component);
    const started = performance.now();
    const stage = (name: string): void => t.diagnostic(`${name}: ${Math.round(performance.now() - started)} ms after apply`);
    const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };
    await apply(kubectl, {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: "github", namespace },
      spec: { components: [{ name: "github", image }] },
    });
    let draft: ToolGrant | undefined;
    const isDrafted = async (): Promise<boolean> => {
      draft = await draftOf(kubectl, namespace, "github");
      return draft !== undefined;
    };
    assert.ok(await becomes(isDrafted, withinMs), "there is a draft");
    stage("drafted");
    assert.equal(outcomeOf(await agent.request("POST", "/v1/calls", call)), "refused");

    assert.ok(draft);
    await approveAsReviewer(kubectl, draft, [{ kind: "ServiceAccount", name: "triage", namespace }]);
    stage("approved");
    let last: Answer = { status: 0, answer: null };
    const answered = await becomes(async () => {
      last = await agent.request("POST", "/v1/calls", call);
      return outcomeOf(last) === "ok";
    }, withinMs);
    assert.ok(answered, `the call is answered: ${JSON.stringify(last)}`);
    stage("answered");
    assert.match(JSON.stringify(last.answer), /Spoon bends/);
  });

  test("the operator's own account can't approve, nor change what was approved", async () => {
    const [grant] = await readAll<ToolGrant>(kubectl, namespace, "toolgrants");
    assert.ok(grant?.spec.review);
    const changed = { ...grant, spec: { ...grant.spec, declaration: { ...grant.spec.declaration, description: "Something else." } } };
    const as = `--as=system:serviceaccount:${ambitNamespace}:ambit-operator`;
    await assert.rejects(kubectl([as, "replace", "--filename", "-"], changed), /may not approve toolgrants/);
  });

  test("a token that was made for the API server is nobody's", async () => {
    const token = (await kubectl(["--namespace", namespace, "create", "token", "triage"])).trim();
    const url = `https://ambit-catalogue.${ambitNamespace}.svc/v1/declarations`;
    const script = `fetch("${url}", { headers: { authorization: "Bearer ${token}" } }).then((r) => console.log(r.status))`;
    assert.equal(await agent.run(script), "401");
  });

  const mayNot: Record<string, { readonly who: string; readonly may: readonly string[] }> = {
    "the operator approve": { who: "ambit-operator", may: ["approve", "toolgrants.ambit.dev", "--all-namespaces"] },
    "the operator list Secrets": { who: "ambit-operator", may: ["list", "secrets", "--all-namespaces"] },
    "the operator read another Secret": { who: "ambit-operator", may: ["get", "secret/other", "--namespace", ambitNamespace] },
    "the operator make a pod": { who: "ambit-operator", may: ["create", "pods", "--all-namespaces"] },
    "the operator delete a Workload": { who: "ambit-operator", may: ["delete", "workloads.ambit.dev", "--all-namespaces"] },
    "the catalogue read the root key": { who: "ambit-catalogue", may: ["get", "secret/ambit-root", "--namespace", ambitNamespace] },
    "the catalogue change a grant": { who: "ambit-catalogue", may: ["update", "toolgrants.ambit.dev", "--all-namespaces"] },
    "the catalogue change a pod": { who: "ambit-catalogue", may: ["patch", "pods", "--all-namespaces"] },
  };

  test("no account of Ambit's may do more than its part needs", async () => {
    const as = (who: string) => `--as=system:serviceaccount:${ambitNamespace}:${who}`;
    const may = (who: string, args: readonly string[]) =>
      kubectl(["auth", "can-i", ...args, as(who)]).then(
        () => true,
        () => false,
      );
    // Asked in this way a right that is there is found, so that one that is not is no mistake of the question.
    assert.ok(await may("ambit-catalogue", ["get", "secret/ambit-tickets", "--namespace", ambitNamespace]));
    for (const [what, { who, may: args }] of Object.entries(mayNot)) assert.equal(await may(who, args), false, what);
  });

  test("what Ambit runs, for itself and for tools, satisfies the restricted profile", async () => {
    const enforce = "pod-security.kubernetes.io/enforce=restricted";
    assert.doesNotMatch(await kubectl(["label", "--dry-run=server", "--overwrite", "namespace", ambitNamespace, enforce]), /violate/);
    const tools = await readAll(kubectl, namespace, "pods", "--selector=app.kubernetes.io/managed-by=ambit");
    assert.equal(tools.length, 1, "the namespace enforces the profile, and the tool's pod is there");
  });
});

const outcomeOf = ({ answer }: Answer): unknown =>
  typeof answer === "object" && answer !== null && "outcome" in answer ? answer.outcome : null;
