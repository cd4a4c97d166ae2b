import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, fixture, Ground, type Pod, whyNoGround } from "./ground.ts";
import { ambitNamespace } from "./installed.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";

/** What goes on being true of a tool that is offered while everything around it changes: replicas, pods, namespaces, what it may reach, and at last the Workload itself. */

const reason = await whyNoGround();

const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };

describe("a tool that is offered", { skip: reason ?? false }, () => {
  const elsewhere = `elsewhere-${randomBytes(4).toString("hex")}`;
  let ground: Ground;
  let reviewer: Person;
  let agent: Agent;
  let stranger: Agent;
  let grant: string;

  const isOffered = (to: Agent): Promise<boolean> => to.isOffered("list_issues");
  const answers = (to: Agent): Promise<void> =>
    eventually(
      "the call is answered",
      async () => (await to.outcome(call)) === "ok",
      () => to.outcome(call),
    );

  before(async () => {
    ground = await Ground.lay("tools");
    await ground.addNamespace(elsewhere);
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
    stranger = await startAgent(ground, "triage", elsewhere);
    const image = await ground.registry.push("tools/mission", fixture("mission"));
    await ground.applyWorkload("github", [{ name: "github", image }], { replicas: 2 });
    grant = await ground.drafted("github");
    await reviewer.ambit("approve", grant, "--yes", ...letsRead(ground.namespace), ...letsRead(elsewhere));
    await answers(agent);
  });

  after(() => ground?.[Symbol.asyncDispose]());

  test("is declared by every replica of the catalogue in the same bytes", async () => {
    const select = ["--selector=app.kubernetes.io/component=catalogue", "-o", "json"];
    const replicas: readonly Pod[] = JSON.parse(await ground.kubectl(["--namespace", ambitNamespace, "get", "pods", ...select])).items;
    assert.equal(replicas.length, 2);
    const script = `
      const host = "ambit-catalogue.${ambitNamespace}.svc";
      const ask = (address) => new Promise((done, failed) => require("node:https").get({ host: address, port: 8443, servername: host,
        path: "/v1/declarations?format=anthropic", headers: { host, authorization: "Bearer " + token } }, async (r) => {
          const chunks = []; for await (const chunk of r) chunks.push(chunk);
          done([r.statusCode, r.headers.etag, Buffer.concat(chunks).toString("base64")]);
        }).on("error", failed));
      Promise.all(${JSON.stringify(replicas.map(({ status }) => status.podIP))}.map(ask)).then((all) => console.log(JSON.stringify(all)));`;
    const [one, other] = JSON.parse(await agent.run(script));
    assert.equal(one[0], 200);
    assert.match(Buffer.from(one[2], "base64").toString(), /list_issues/);
    assert.deepEqual(one, other);
  });

  test("loses no call while every replica of the catalogue is replaced", async (t) => {
    const { good, bad } = await agent.callingWhile(call, '"outcome":"ok"', 4, async () => {
      await ground.kubectl(["--namespace", ambitNamespace, "rollout", "restart", "deployment/ambit-catalogue"]);
      await ground.kubectl(["--namespace", ambitNamespace, "rollout", "status", "deployment/ambit-catalogue", "--timeout=180s"]);
    });
    t.diagnostic(`${good} calls answered`);
    assert.deepEqual(bad, []);
    assert.ok(good > 10);
  });

  test("loses no call while its pods are replaced", async (t) => {
    const before = await ground.podsOf("github");
    const { good, bad } = await agent.callingWhile(call, '"outcome":"ok"', 4, async () => {
      await ground.patchWorkload("github", "/components/0/limits", { timeout: "20s" });
      await eventually("other pods are there", async () => {
        const now = await ground.podsOf("github");
        return now.length === 2 && now.every(({ metadata }) => before.every((old) => old.metadata.name !== metadata.name));
      });
    });
    t.diagnostic(`${good} calls answered`);
    assert.deepEqual(bad, []);
    assert.ok(good > 10);
  });

  test("is not offered in another namespace until that accepts it, though the grant names its account", async () => {
    assert.equal(await isOffered(stranger), false);
    await ground.kubectl(["annotate", "namespace", elsewhere, `ambit.dev/accepts-grants-from=${ground.namespace}`]);
    await eventually("it is offered", () => isOffered(stranger));
    await answers(stranger);
    await ground.kubectl(["annotate", "namespace", elsewhere, "ambit.dev/accepts-grants-from-"]);
    await eventually("it is withdrawn", async () => !(await isOffered(stranger)));
  });

  const widenings: Readonly<Record<string, { readonly widen: () => Promise<void>; readonly narrow: () => Promise<void> }>> = {
    "a host": {
      widen: () => ground.patchWorkload("github", "/components/0/localResources", { allowedHosts: ["evil.example.com"] }),
      narrow: () => ground.patchWorkload("github", "/components/0/localResources", {}),
    },
    "a folder": {
      widen: async () => {
        await ground.patchWorkload("github", "/volumes", [{ name: "scratch", ephemeral: {} }]);
        await ground.patchWorkload("github", "/components/0/localResources", { volumeMounts: [{ name: "scratch", mountPath: "/data" }] });
      },
      narrow: () => ground.patchWorkload("github", "/components/0/localResources", {}),
    },
  };

  for (const [what, { widen, narrow }] of Object.entries(widenings)) {
    test(`is withheld while it may reach ${what} that nobody reviewed, and comes back when it may not`, async () => {
      await widen();
      await eventually("it is withheld", async () => !(await isOffered(agent)));
      assert.equal(await agent.outcome(call), "refused");
      const { status } = await ground.grantIs(grant, "Drifted");
      assert.match(JSON.stringify(status?.conditions), /ReachWider/);
      await narrow();
      await answers(agent);
    });
  }

  test("goes with its Workload, pods and policies and all, and the review of it stays", async () => {
    await ground.kubectlHere(["delete", "workload", "github", "--timeout=180s"]);
    await eventually("it is withdrawn", async () => !(await isOffered(agent)));
    const left = () =>
      ground.kubectlHere([
        "get",
        "pods,services,deployments,networkpolicies",
        "--selector=app.kubernetes.io/managed-by=ambit",
        "-o",
        "name",
      ]);
    await eventually("all is gone", async () => (await left()).trim() === "", left);
    const grants = await ground.readAll<ToolGrant>("toolgrants");
    assert.equal(grants.filter(({ spec }) => spec.review !== undefined).length, 1);
  });
});
