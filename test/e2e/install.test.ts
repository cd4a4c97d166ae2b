import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, fixture, Ground, whyNoGround } from "./ground.ts";
import { ambitNamespace } from "./installed.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";

/**
 * What a user does first, on a real node: installs the chart, applies a Workload, has a reviewer approve what was drafted, and calls the tool from a pod with nothing but its own
 * ServiceAccount.
 */

const reason = await whyNoGround();

describe("Ambit installed from its chart", { skip: reason ?? false }, () => {
  let ground: Ground;
  let reviewer: Person;
  let agent: Agent;

  before(async () => {
    ground = await Ground.lay("agents");
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
  });

  after(() => ground?.[Symbol.asyncDispose]());

  test("an agent with a token of its own is known and offered nothing", async () => {
    assert.deepEqual(await agent.request("GET", "/v1/declarations"), { status: 200, answer: [] });
  });

  test("a Workload becomes a draft that nobody can call, and a call that is answered once a reviewer approved it", async (t) => {
    const image = await ground.registry.push("tools/mission", fixture("mission"));
    const started = performance.now();
    const stage = (name: string): void => t.diagnostic(`${name}: ${Math.round(performance.now() - started)} ms after apply`);
    const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };
    await ground.applyWorkload("github", [{ name: "github", image }]);
    const draft = await ground.drafted("github");
    stage("drafted");
    assert.equal(await agent.outcome(call), "refused");
    assert.match(await reviewer.ambit("review"), /Draft +list_issues/);

    await reviewer.ambit("approve", draft, "--yes", ...letsRead(ground.namespace));
    stage("approved");
    await eventually(
      "the call is answered",
      async () => (await agent.outcome(call)) === "ok",
      () => agent.outcome(call),
    );
    stage("answered");
    assert.match(JSON.stringify(await agent.request("POST", "/v1/calls", call)), /Spoon bends/);
    const { spec } = await ground.grant(draft);
    assert.equal(spec.review?.reviewer, reviewer.user);
  });

  test("a token that was made for the API server is nobody's", async () => {
    const token = (await ground.kubectlHere(["create", "token", "triage"])).trim();
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
      ground.kubectl(["auth", "can-i", ...args, as(who)]).then(
        () => true,
        () => false,
      );
    // Asked in this way a right that is there is found, so that one that is not is no mistake of the question.
    assert.ok(await may("ambit-catalogue", ["get", "secret/ambit-tickets", "--namespace", ambitNamespace]));
    for (const [what, { who, may: args }] of Object.entries(mayNot)) assert.equal(await may(who, args), false, what);
  });

  test("what Ambit runs, for itself and for tools, satisfies the restricted profile", async () => {
    const enforce = "pod-security.kubernetes.io/enforce=restricted";
    assert.doesNotMatch(
      await ground.kubectl(["label", "--dry-run=server", "--overwrite", "namespace", ambitNamespace, enforce]),
      /violate/,
    );
    const tools = await ground.readAll("pods", "--selector=app.kubernetes.io/managed-by=ambit");
    assert.equal(tools.length, 1, "the namespace enforces the profile, and the tool's pod is there");
  });
});
