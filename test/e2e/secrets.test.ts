import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { becomes } from "../cluster/becomes.ts";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, fixture, Ground, whyNoGround } from "./ground.ts";
import { ambitNamespace, apply } from "./installed.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";

/** A secret that an author adds to a tool that is live: what is withheld until whom, who gets its value, and who never does. */

const reason = await whyNoGround();

const call = { name: "environment", arguments: {} };

/** Kubelet looks at a pod's volumes anew every minute or so, and a half more. */
const kubeletMs = 240_000;

describe("a secret of a tool", { skip: reason ?? false }, () => {
  const first = randomBytes(24).toString("hex");
  const rotated = randomBytes(24).toString("hex");
  let ground: Ground;
  let author: Person;
  let reviewer: Person;
  let agent: Agent;
  let grant: string;
  let image: string;

  const spec = (...secretFrom: readonly { readonly name: string }[]): object => {
    const inline = `package ambit:intruder@0.1.0;
      interface attempts {
        /// Tells the variables of its environment.
        environment: func() -> list<tuple<string, string>>;
      }`;
    const environment = { config: { MODE: "test" }, configFrom: [{ name: "settings" }], secretFrom };
    return { components: [{ name: "tool", image, wit: { inline }, localResources: { environment } }] };
  };
  const authorApplies = (name: string, what: object): Promise<string> =>
    author.kubectl(["apply", "--server-side", "--filename=-"], {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name, namespace: ground.namespace },
      spec: what,
    });
  const putSecret = (name: string, token: string): Promise<unknown> =>
    apply(ground.kubectl, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: ground.namespace },
      stringData: { TOKEN: token },
    });
  /** What the tool finds in its environment; null where the call was not answered. */
  const seen = async (): Promise<Record<string, string> | null> => {
    const { answer } = await agent.request("POST", "/v1/calls", call);
    const { outcome, content } = answer as { readonly outcome?: string; readonly content?: readonly { readonly text: string }[] };
    return outcome === "ok" ? Object.fromEntries(JSON.parse(content?.[0]?.text ?? "[]")) : null;
  };

  before(async () => {
    ground = await Ground.lay("secrets");
    author = await personWith(ground, "author");
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
    image = await ground.registry.push("tools/intruder", fixture("intruder"));
    await putSecret("github-token", first);
    await apply(ground.kubectl, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "settings", namespace: ground.namespace },
      data: { LEVEL: "high" },
    });
    await authorApplies("team", spec());
    grant = await ground.drafted("team", "environment");
    await reviewer.ambit("approve", grant, "--yes", ...letsRead(ground.namespace));
    await eventually("the call is answered", async () => (await seen()) !== null);
  });

  after(() => ground?.[Symbol.asyncDispose]());

  test("withholds the tool at once when an author adds it, and comes with an approval", async () => {
    assert.deepEqual(await seen(), { MODE: "test", LEVEL: "high" });
    await authorApplies("team", spec({ name: "github-token" }));
    await eventually("it is withheld", async () => !(await agent.isOffered("environment")));
    const { status } = await ground.grantIs(grant, "Drifted");
    assert.match(JSON.stringify(status), /github-token/);
    assert.equal(await seen(), null);
    await reviewer.ambit("approve", grant, "--yes", ...letsRead(ground.namespace));
    await eventually("a call sees it", async () => (await seen())?.TOKEN === first, seen);
  });

  test("is read by nobody but the sandbox: neither its author nor its reviewer nor the operator may", async () => {
    for (const person of [author, reviewer]) {
      await assert.rejects(person.kubectl(["get", "secret", "github-token"]), /forbidden/i);
    }
    const can = ["auth", "can-i", "get", "secret/github-token", `--namespace=${ground.namespace}`];
    const mayOperator = await ground.kubectl([...can, `--as=system:serviceaccount:${ambitNamespace}:ambit-operator`]).then(
      () => true,
      () => false,
    );
    assert.equal(mayOperator, false);
    assert.match(await ground.kubectl(can), /^yes/, "asked in this way a right that is there is found");
  });

  test("reaches the next call when it was rotated, in the pod that runs", async (t) => {
    const before = await ground.onlyPodOf("team");
    const started = performance.now();
    await putSecret("github-token", rotated);
    const hasCome = async (): Promise<boolean> => (await seen())?.TOKEN === rotated;
    assert.ok(await becomes(hasCome, kubeletMs), "the new value comes");
    t.diagnostic(`a call saw the new value ${Math.round((performance.now() - started) / 1000)} s after it was written`);
    const pod = await ground.onlyPodOf("team");
    assert.equal(pod.metadata.uid, before.metadata.uid);
    assert.equal(pod.status.containerStatuses?.[0]?.restartCount, 0);
  });

  test("that is not there is told in the Workload's condition, and stops no other Workload", async () => {
    await authorApplies("needy", spec({ name: "forgotten" }));
    const message = await ground.workloadIs("needy", "Stalled", "True", "SecretMissing");
    assert.match(message, new RegExp(`no Secret ${ground.namespace}/forgotten: make it`));
    assert.notEqual(await seen(), null);
    await putSecret("forgotten", first);
    const isReady = async (): Promise<boolean> =>
      (await ground.workload("needy")).status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
    assert.ok(await becomes(isReady, kubeletMs), "it serves once the secret is there");
  });

  test("has its value in no object and no log of Ambit's", async () => {
    const said = await Promise.all([
      ground.kubectlHere(["get", "workloads,toolgrants,events,pods,configmaps,deployments,networkpolicies", "-o", "yaml"]),
      ...["operator", "catalogue"].map((part) =>
        ground.kubectl(["--namespace", ambitNamespace, "logs", `--selector=app.kubernetes.io/component=${part}`, "--tail=-1"]),
      ),
      ground.kubectlHere(["logs", "--selector=ambit.dev/workload", "--tail=-1"]),
    ]);
    assert.ok(said.slice(0, 3).every((text) => text !== ""));
    const values = [first, rotated].flatMap((value) => [value, Buffer.from(value).toString("base64")]);
    assert.deepEqual(
      values.filter((value) => said.some((text) => text.includes(value))).map((value) => value.length),
      [],
    );
  });

  test("restores the tool when it is taken away again", async () => {
    await authorApplies("team", spec());
    await eventually("it does without", async () => {
      const environment = await seen();
      return environment !== null && !("TOKEN" in environment);
    });
  });
});
