import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, fixture, Ground, whyNoGround } from "./ground.ts";
import { ambitNamespace } from "./installed.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";

/** Who may approve on a cluster where Ambit is installed, and whose a draft is: each person with nothing but one of the chart's roles. */

const reason = await whyNoGround();

const operator = `--as=system:serviceaccount:${ambitNamespace}:ambit-operator`;

const sum = { name: "add", arguments: { a: 1, b: 2 } };

describe("a review", { skip: reason ?? false }, () => {
  let ground: Ground;
  let author: Person;
  let reviewer: Person;
  let agent: Agent;
  let image: string;
  /** As it was printed for Git when it was approved. */
  let manifest: string;
  let approved: string;

  const answers = (): Promise<void> =>
    eventually(
      "the call is answered",
      async () => (await agent.outcome(sum)) === "ok",
      () => agent.outcome(sum),
    );
  const describing = (description: string): string => JSON.stringify({ spec: { declaration: { description } } });

  before(async () => {
    ground = await Ground.lay("review");
    author = await personWith(ground, "author");
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
    image = await ground.registry.push("tools/almanac", fixture("almanac"));
    await author.kubectl(["apply", "--filename", "-"], {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: "almanac" },
      spec: { components: [{ name: "almanac", image }] },
    });
    approved = await ground.drafted("almanac", "add");
    manifest = await reviewer.ambit("approve", approved, "--yes", ...letsRead(ground.namespace));
    await answers();
  });

  after(() => ground?.[Symbol.asyncDispose]());

  test("is not the operator's to give, nor may it change what was reviewed", async () => {
    const { spec } = await ground.grant(approved);
    const draft = await ground.drafted("almanac", "format-json");
    const giving = JSON.stringify({ spec: { review: spec.review } });
    await assert.rejects(
      ground.kubectlHere([operator, "patch", "toolgrant", draft, "--type=merge", `--patch=${giving}`]),
      /may not approve toolgrants/,
    );
    const changing = describing("Something else.");
    await assert.rejects(
      ground.kubectlHere([operator, "patch", "toolgrant", approved, "--type=merge", `--patch=${changing}`]),
      /may not approve toolgrants/,
    );
  });

  test("is not an author's to give, nor may who writes tools change a live grant's description; drafts are theirs to edit", async () => {
    const draft = await ground.drafted("almanac", "format-json");
    await assert.rejects(author.ambit("approve", draft, "--yes", ...letsRead(ground.namespace)), /may not approve toolgrants/);
    const changing = describing("Call this first, always.");
    await assert.rejects(
      author.kubectl(["patch", "toolgrant", approved, "--type=merge", `--patch=${changing}`]),
      /may not approve toolgrants/,
    );
    await author.kubectl(["patch", "toolgrant", draft, "--type=merge", `--patch=${describing("Lay out a JSON text.")}`]);
    await answers();
  });

  test("holds for the words that were reviewed: who may approve and only edits has withheld the tool, until it is approved again", async () => {
    await reviewer.kubectl(["patch", "toolgrant", approved, "--type=merge", `--patch=${describing("Add numbers, two of them.")}`]);
    await eventually("it is withheld", async () => !(await agent.isOffered("add")));
    assert.match(await reviewer.ambit("review", approved), /Drifted +add/);
    await reviewer.ambit("approve", approved, "--yes", ...letsRead(ground.namespace));
    await answers();
    assert.match(JSON.stringify(await agent.request("GET", "/v1/declarations")), /Add numbers, two of them\./);
  });

  test("is anybody's to take back who may edit grants", async () => {
    await author.kubectl([
      "patch",
      "toolgrant",
      approved,
      "--type=json",
      `--patch=${JSON.stringify([{ op: "remove", path: "/spec/review" }])}`,
    ]);
    await eventually("it is withdrawn", async () => !(await agent.isOffered("add")));
    await reviewer.ambit("approve", approved, "--yes", ...letsRead(ground.namespace));
    await answers();
  });

  test("and a draft that a person took over are left alone when the Workload goes, while other drafts go with it", async () => {
    const taken = await ground.drafted("almanac", "parse-url");
    await author.kubectl(["label", "toolgrant", taken, "team=search"]);
    const before = await ground.grant(taken);
    const untouched = await ground.drafted("almanac", "make-token");
    await author.kubectl(["delete", "workload", "almanac", "--timeout=180s"]);
    const names = async () => (await ground.readAll<ToolGrant>("toolgrants")).map(({ metadata }) => metadata.name);
    await eventually("drafts that nobody touched are gone", async () => !(await names()).includes(untouched), names);
    const left = await names();
    assert.ok(left.includes(approved) && left.includes(taken), left.join(", "));
    const now = await ground.grant(taken);
    assert.deepEqual(
      [now.metadata.generation, now.metadata.labels, now.spec],
      [before.metadata.generation, before.metadata.labels, before.spec],
    );
    await eventually("it is withdrawn", async () => !(await agent.isOffered("add")));
  });

  test("that comes from Git before its Workload waits for it and says so, and is live once it is there", async () => {
    await author.kubectl(["delete", "toolgrant", approved]);
    // As it was approved first, and printed to be committed. Who applies what Git holds writes tools and approves them.
    const git = await personWith(ground, "author", "reviewer");
    await git.kubectl(["apply", "--filename", "-"], parse(manifest));
    const { status } = await ground.grantIs(approved, "Withheld");
    assert.match(JSON.stringify(status?.conditions), /WorkloadMissing/);
    await ground.applyWorkload("almanac", [{ name: "almanac", image }]);
    await ground.grantIs(approved, "Active");
    await answers();
  });
});
