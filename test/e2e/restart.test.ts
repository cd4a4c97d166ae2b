import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { podAnnotations } from "../../src/operator/names.ts";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, fixture, Ground, type Pod, whyNoGround } from "./ground.ts";
import { ambitNamespace } from "./installed.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";

/**
 * A host that comes back is another one: it is met, certified and delivered to anew. An operator that comes back is not, and disturbs nobody. And while the API server is away, what was true goes on
 * being true.
 */

const reason = await whyNoGround();

const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };

describe("a tool's pod", { skip: reason ?? false }, () => {
  let ground: Ground;
  let reviewer: Person;
  let agent: Agent;
  let image: string;

  const answers = (): Promise<void> =>
    eventually(
      "the call is answered",
      async () => (await agent.outcome(call)) === "ok",
      () => agent.outcome(call),
    );
  const noted = ({ metadata }: Pod): readonly (string | undefined)[] =>
    [podAnnotations.boot, podAnnotations.delivered, podAnnotations.hostCertificate].map((name) => metadata.annotations?.[name]);

  before(async () => {
    ground = await Ground.lay("restart");
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
    image = await ground.registry.push("tools/mission", fixture("mission"));
    await ground.applyWorkload("github", [{ name: "github", image }]);
    await reviewer.ambit("approve", await ground.drafted("github"), "--yes", ...letsRead(ground.namespace));
    await answers();
  });

  after(() => ground?.[Symbol.asyncDispose]());

  test("is delivered to anew when its container restarts, under another boot id and certificate, and answers again", async (t) => {
    const before = await ground.onlyPodOf("github");
    const started = performance.now();
    const [bootBefore, code, certificateBefore] = noted(before);
    await ground.kubectlHere(["exec", before.metadata.name, "--", "node", "-e", "process.kill(1, 'SIGTERM')"]);
    await eventually("it is delivered to", async () => {
      const now = await ground.onlyPodOf("github");
      const [container] = now.status.containerStatuses ?? [];
      return container?.restartCount === 1 && container.ready && noted(now)[0] !== bootBefore;
    });
    await answers();
    t.diagnostic(`answered ${Math.round(performance.now() - started)} ms after the container was told to end`);
    const now = await ground.onlyPodOf("github");
    assert.equal(now.metadata.uid, before.metadata.uid);
    assert.equal(noted(now)[1], code);
    assert.notEqual(noted(now)[2], certificateBefore);
  });

  test("keeps its certificate when the operator restarts, and every call is answered meanwhile", async (t) => {
    const before = noted(await ground.onlyPodOf("github"));
    const { good, bad } = await agent.callingWhile(call, '"outcome":"ok"', 2, async () => {
      await ground.kubectl(["--namespace", ambitNamespace, "rollout", "restart", "deployment/ambit-operator"]);
      await ground.kubectl(["--namespace", ambitNamespace, "rollout", "status", "deployment/ambit-operator", "--timeout=180s"]);
    });
    t.diagnostic(`${good} calls answered`);
    assert.deepEqual(bad, []);
    assert.ok(good > 10);
    assert.deepEqual(noted(await ground.onlyPodOf("github")), before);
  });

  test("goes on answering every call while the API server is away, and nothing is missed once it is back", async (t) => {
    const before = noted(await ground.onlyPodOf("github"));
    // Calls from the pod's own loop: nobody can ask for one by way of an API server that is not there.
    const calls = await agent.startCalling(call, '"outcome":"ok"', 2);
    const countWhileAway = async (): Promise<number> => (await calls.soFar()).good;
    await ground.node.stopApiServer();
    const atStop = await countWhileAway();
    await eventually("calls are answered while it is away", async () => (await countWhileAway()) > atStop + 100, countWhileAway);
    const answeredAway = (await countWhileAway()) - atStop;
    await ground.node.startApiServer();
    const { good, bad } = await calls.end();
    t.diagnostic(`${good} calls answered, ${answeredAway} of them with the API server away`);
    assert.deepEqual(bad, []);
    assert.deepEqual(noted(await ground.onlyPodOf("github")), before);
  });

  test("and who watched it sees what happens from then on: another Workload is drafted, approved, offered, and withdrawn", async () => {
    await ground.applyWorkload("second", [{ name: "github", image }]);
    const draft = await ground.drafted("second");
    await ground.kubectlHere([
      "patch",
      "toolgrant",
      draft,
      "--type=json",
      `--patch=${JSON.stringify([{ op: "replace", path: "/spec/declaration/name", value: "list_again" }])}`,
    ]);
    await ground.grantIs(draft, "Draft");
    await reviewer.ambit("approve", draft, "--yes", ...letsRead(ground.namespace));
    await eventually("it answers", async () => (await agent.outcome({ ...call, name: "list_again" })) === "ok");
    await ground.kubectlHere(["delete", "workload", "second", "--timeout=120s"]);
    await eventually("it is withdrawn", async () => !(await agent.isOffered("list_again")));
    await answers();
  });
});
