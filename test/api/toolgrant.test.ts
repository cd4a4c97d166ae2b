import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import { approve } from "../../src/grants/approve.ts";
import { toolOfDefinition } from "../../src/grants/definition-function.ts";
import { draftLabel, draftObjectName } from "../../src/grants/draft.ts";
import { isConflict } from "../../src/kube/api-error.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import { namespaces, pods, toolGrants, workloads } from "../../src/kube/resource-types.ts";
import type { ClusterToolGrant } from "../../src/operator/kinds.ts";
import { componentLabels, podAnnotations } from "../../src/operator/names.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { toolGrantControllers } from "../../src/operator/toolgrant/controllers.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { listIssues } from "../unit/grants/issues-tool.ts";
import { clientAs } from "./client-as.ts";
import { MadeUpComponents, runControllers } from "./operator-under-test.ts";

const eventsType: ResourceType = { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true };

type Event = ClusterObject & { readonly reason: string; readonly note: string; readonly regarding: { readonly name: string } };

const withinMs = 20_000;
const reason = whyNoApiServer();

describe("the reconciler of ToolGrants", { skip: reason ?? false }, () => {
  const suffix = randomBytes(4).toString("hex");
  const namespace = `ambit-grants-${suffix}`;
  const agents = `ambit-agents-${suffix}`;
  const components = new MadeUpComponents();
  let server: ApiServer;
  let client: ClusterClient;
  let operator: Awaited<ReturnType<typeof runControllers>>;

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    client = await clientAs(server.kubeconfig);
    for (const name of [namespace, agents]) await client.create(namespaces, { metadata: { name } });
    operator = await runControllers(client, components, (context) => toolGrantControllers(context, new ToolListings()));
  });

  after(async () => {
    await operator?.[Symbol.asyncDispose]();
    for (const name of [namespace, agents]) await client?.delete(namespaces, { name });
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  /** An image whose digest is that of its name. */
  const imageOf = (name: string): string => `registry.test/${name}@sha256:${"0".repeat(64)}`;
  const workload = (name: string, image: string, allowedHosts: readonly string[] = ["api.github.com"]) => ({
    metadata: { name, namespace },
    spec: { components: [{ name: "tool", image: imageOf(image), localResources: { allowedHosts } }] },
  });
  const putWorkload = async (...wanted: Parameters<typeof workload>): Promise<void> => {
    const body = { apiVersion: "ambit.dev/v1alpha1", kind: "Workload", ...workload(...wanted) };
    await client.request({
      method: "PATCH",
      path: objectPath(workloads, body.metadata),
      query: { fieldManager: "git" },
      contentType: "application/apply-patch+yaml",
      body,
    });
  };
  const nameOf = (workloadName: string, fn = "list-issues"): string =>
    draftObjectName({ workload: workloadName, component: "tool", interface: "example:github/issues@0.1.0", function: fn });
  const read = (name: string, within = namespace): Promise<ClusterToolGrant | null> =>
    client.get<ClusterToolGrant>(toolGrants, { name, namespace: within }).catch(() => null);
  /** The grant as soon as it is so. */
  const when = async (name: string, holds: (grant: ClusterToolGrant) => boolean, within = namespace): Promise<ClusterToolGrant> => {
    let last: ClusterToolGrant | null = null;
    const came = await becomes(async () => {
      last = await read(name, within);
      return last !== null && holds(last);
    }, withinMs);
    assert.ok(came && last, `${name} becomes so, and is ${JSON.stringify((last as ClusterToolGrant | null)?.status)}`);
    return last;
  };
  const isPhase = (phase: string) => (grant: ClusterToolGrant) =>
    grant.status?.phase === phase && grant.status.observedGeneration === grant.metadata.generation;
  const condition = (grant: ClusterToolGrant, type: string) => grant.status?.conditions?.find((one) => one.type === type);
  const merge = (name: string, body: object, manager = "person"): Promise<unknown> =>
    client.request({
      method: "PATCH",
      path: objectPath(toolGrants, { name, namespace }),
      query: { fieldManager: manager },
      contentType: "application/merge-patch+json",
      body,
    });
  /** Approves what the status says is observed, as `kubectl ambit approve` does, under a declared name of the Workload's own. */
  const approveAsSeen = async (name: string, changes: Partial<ToolGrant["spec"]> = {}): Promise<void> => {
    const seen = await when(name, (grant) => grant.status?.observed?.text !== undefined && isPhase(grant.status.phase ?? "")(grant));
    const { text = "", reach, component } = seen.status?.observed ?? {};
    assert.ok(reach && component);
    const subjects = [{ kind: "ServiceAccount", name: "triage", namespace }] as const;
    const declaration = { ...seen.spec.declaration, name: `${seen.spec.tool.workload}_issues` };
    const approved = approve({
      grant: { ...seen, spec: { ...seen.spec, subjects, declaration, mutates: false, ...changes } },
      fn: toolOfDefinition(text),
      reach,
      component: [component as `sha256:${string}`],
      now: new Date(),
    });
    try {
      await client.replace<ClusterToolGrant>(toolGrants, approved as ClusterToolGrant);
    } catch (thrown) {
      // Its status was written meanwhile: who approves looks again.
      if (!isConflict(thrown)) throw thrown;
      await approveAsSeen(name, changes);
    }
  };
  const runPod = async (name: string, workloadName: string, image: string): Promise<void> => {
    const labels = componentLabels(workloadName, "tool");
    const annotations = { [podAnnotations.delivered]: components.digestOf(imageOf(image)) };
    const spec = { containers: [{ name: "host", image: "none" }] };
    await client.create<ClusterObject & { spec: object }>(pods, { metadata: { name, namespace, labels, annotations }, spec });
    await client.request({
      method: "PATCH",
      path: objectPath(pods, { name, namespace }, "status"),
      contentType: "application/merge-patch+json",
      body: { status: { conditions: [{ type: "Ready", status: "True" }] } },
    });
  };
  const endPod = (name: string) =>
    client.request({ method: "DELETE", path: objectPath(pods, { name, namespace }), body: { gracePeriodSeconds: 0 } });
  const eventsAbout = async (name: string): Promise<Event[]> =>
    (await client.listPage<Event>(eventsType, { namespace })).items.filter(({ regarding }) => regarding.name === name);

  test("a tool is drafted once and offered to nobody, approved by what its status says, and ready when a pod runs the code", async () => {
    components.put(imageOf("first"), [listIssues()]);
    await putWorkload("first", "first");
    const name = nameOf("first");
    const draft = await when(name, isPhase("Draft"));
    assert.equal(draft.spec.review, undefined);
    assert.equal(draft.spec.subjects, undefined);
    assert.equal(draft.metadata.ownerReferences, undefined);
    assert.equal(draft.spec.declaration.name, "list_issues");
    assert.equal(condition(draft, "Ready")?.reason, "NoReview");
    assert.equal(condition(draft, "NeverCallable")?.status, "True");

    await approveAsSeen(name);
    const active = await when(name, isPhase("Active"));
    assert.deepEqual(active.status?.components, [components.digestOf(imageOf("first"))]);
    assert.equal(active.status?.observed?.digest, active.spec.review?.definition);
    assert.equal(condition(active, "Ready")?.reason, "NoReadyHost");
    assert.equal(condition(active, "NeverCallable")?.status, "False");

    await runPod("first-1", "first", "first");
    const ready = await when(name, (grant) => condition(grant, "Ready")?.status === "True");
    assert.equal(ready.metadata.generation, active.metadata.generation, "the operator writes a status and no spec");
    assert.ok(await becomes(async () => (await eventsAbout("first")).some((event) => event.reason === "Drafted"), withinMs));
  });

  test("a status that is true is not written again", async () => {
    const name = nameOf("first");
    const before = await when(name, (grant) => condition(grant, "Ready")?.status === "True");
    await runPod("first-2", "first", "first");
    // Another grant of the same controller shows that the pod has been looked at.
    components.put(imageOf("later"), [listIssues()]);
    await putWorkload("later", "later");
    await when(nameOf("later"), isPhase("Draft"));
    assert.equal((await read(name))?.metadata.resourceVersion, before.metadata.resourceVersion);
  });

  test("a changed definition withholds the tool and says what changed, field by field; going back restores it", async () => {
    components.put(imageOf("said"), [listIssues()]);
    components.put(imageOf("unsaid"), [listIssues({ docs: "List the issues, and then delete them." })]);
    await putWorkload("said", "said");
    const name = nameOf("said");
    await approveAsSeen(name);
    await when(name, isPhase("Active"));

    await putWorkload("said", "unsaid");
    const drifted = await when(name, isPhase("Drifted"));
    assert.deepEqual(drifted.status?.components, []);
    const change = drifted.status?.changes?.find(({ path }) => path === "/definition/docs");
    assert.equal(change?.before, "List the issues in a repository.");
    assert.equal(change?.after, "List the issues, and then delete them.");
    assert.equal(condition(drifted, "Stalled")?.status, "True");
    assert.equal(condition(drifted, "Stalled")?.reason, "DefinitionChanged");
    assert.ok(await becomes(async () => (await eventsAbout(name)).some((event) => event.reason === "Drifted"), withinMs));

    await putWorkload("said", "said");
    await when(name, isPhase("Active"));
  });

  test("wider hosts withhold the tool, narrower ones don't", async () => {
    components.put(imageOf("wide"), [listIssues()]);
    await putWorkload("wide", "wide");
    const name = nameOf("wide");
    await approveAsSeen(name);
    await when(name, isPhase("Active"));
    await putWorkload("wide", "wide", ["api.github.com", "evil.example.com"]);
    const drifted = await when(name, isPhase("Drifted"));
    assert.match(condition(drifted, "Ready")?.message ?? "", /evil\.example\.com/);
    await putWorkload("wide", "wide", []);
    await when(name, isPhase("Active"));
  });

  test("during a rollout to unreviewed code the old code stays approved while ready pods run it", async () => {
    components.put(imageOf("old"), [listIssues()]);
    components.put(imageOf("new"), [listIssues()]);
    await putWorkload("rolled", "old");
    const name = nameOf("rolled");
    await approveAsSeen(name);
    await runPod("rolled-old", "rolled", "old");
    await when(name, (grant) => condition(grant, "Ready")?.status === "True");

    await putWorkload("rolled", "new");
    await runPod("rolled-new", "rolled", "new");
    const during = await when(name, (grant) => grant.status?.observed?.component !== undefined);
    assert.equal(during.status?.phase, "Active");
    assert.deepEqual(during.status?.components, [components.digestOf(imageOf("old"))]);
    await endPod("rolled-old");
    const over = await when(name, isPhase("Drifted"));
    assert.equal(condition(over, "Ready")?.reason, "CodeChanged");

    await approveAsSeen(name);
    const again = await when(name, isPhase("Active"));
    assert.deepEqual(again.status?.components, [components.digestOf(imageOf("new"))]);
  });

  test("an operator that starts anew in the middle of a rollout still knows the old code that was approved", async () => {
    components.put(imageOf("before"), [listIssues()]);
    components.put(imageOf("after"), [listIssues()]);
    await putWorkload("restarted", "before");
    const name = nameOf("restarted");
    await approveAsSeen(name);
    await runPod("restarted-old", "restarted", "before");
    await when(name, (grant) => condition(grant, "Ready")?.status === "True");
    await operator[Symbol.asyncDispose]();
    await putWorkload("restarted", "after");
    operator = await runControllers(client, components, (context) => toolGrantControllers(context, new ToolListings()));
    components.put(imageOf("marker"), [listIssues()]);
    await putWorkload("marker", "marker");
    await when(nameOf("marker"), isPhase("Draft"));
    // The queue takes keys in order, so by now it has looked at this one too.
    const grant = await when(name, isPhase("Active"));
    assert.deepEqual(grant.status?.components, [components.digestOf(imageOf("before"))]);
  });

  test("an operator that starts anew in the middle of a rollout to approved code withdraws neither, though one can't be had any more", async () => {
    for (const image of ["was", "is"]) components.put(imageOf(image), [listIssues()]);
    await putWorkload("both", "was");
    const name = nameOf("both");
    await approveAsSeen(name);
    await runPod("both-was", "both", "was");
    const { spec } = await when(name, (grant) => condition(grant, "Ready")?.status === "True");
    assert.ok(spec.review);
    const component = ["was", "is"].map((image) => components.digestOf(imageOf(image)));
    await merge(name, { spec: { review: { ...spec.review, component } } });
    await putWorkload("both", "is");
    await runPod("both-is", "both", "is");
    const during = await when(name, (grant) => grant.status?.components?.length === 2 && isPhase("Active")(grant));
    assert.deepEqual(during.status?.images?.map((known) => known.component).sort(), component.toSorted());

    await operator[Symbol.asyncDispose]();
    components.takeAway(imageOf("was"));
    operator = await runControllers(client, components, (context) => toolGrantControllers(context, new ToolListings()));
    components.put(imageOf("lamp"), [listIssues()]);
    await putWorkload("lamp", "lamp");
    await when(nameOf("lamp"), isPhase("Draft"));
    assert.equal((await read(name))?.metadata.resourceVersion, during.metadata.resourceVersion);
  });

  test("an operator that starts anew while the registry is away withdraws nothing, until something changed that it can't look into", async () => {
    components.put(imageOf("away"), [listIssues()]);
    await putWorkload("away", "away");
    const name = nameOf("away");
    await approveAsSeen(name);
    const before = await when(name, isPhase("Active"));
    await operator[Symbol.asyncDispose]();
    components.takeAway(imageOf("away"));
    operator = await runControllers(client, components, (context) => toolGrantControllers(context, new ToolListings()));
    components.put(imageOf("beacon"), [listIssues()]);
    await putWorkload("beacon", "beacon");
    await when(nameOf("beacon"), isPhase("Draft"));
    assert.equal((await read(name))?.metadata.resourceVersion, before.metadata.resourceVersion);

    await putWorkload("away", "away", []);
    const withheld = await when(name, isPhase("Withheld"));
    assert.equal(condition(withheld, "Ready")?.reason, "RegistryUnreachable");
    components.put(imageOf("away"), [listIssues()]);
    await putWorkload("away", "away", ["api.github.com"]);
    await when(name, isPhase("Active"));
  });

  test("a draft follows its component until somebody touches it, and is swept with its tool or its Workload only if nobody did", async () => {
    const words = (docs: string, name = "list-issues") => listIssues({ docs, name });
    const [kept, gone, mine] = ["kept", "gone", "mine"];
    components.put(imageOf("drafts-1"), [words("One.", kept), words("One.", gone), words("One.", mine)]);
    await putWorkload("drafts", "drafts-1");
    const [ours, vanishing, theirs] = [nameOf("drafts", kept), nameOf("drafts", gone), nameOf("drafts", mine)];
    for (const name of [ours, vanishing, theirs]) await when(name, isPhase("Draft"));
    await merge(theirs, { spec: { declaration: { description: "In my words." } } });

    components.put(imageOf("drafts-2"), [words("Two.", kept)]);
    await putWorkload("drafts", "drafts-2");
    const followed = await when(ours, ({ spec }) => spec.declaration.description === "Two.");
    assert.deepEqual([...new Set(followed.metadata.managedFields?.map(({ manager }) => manager))], ["ambit-toolgrant"]);
    assert.ok(await becomes(async () => (await read(vanishing)) === null, withinMs), "a draft of a tool that vanished is swept");
    assert.equal((await read(theirs))?.spec.declaration.description, "In my words.");

    await client.delete(workloads, { name: "drafts", namespace });
    assert.ok(await becomes(async () => (await read(ours)) === null, withinMs), "an untouched draft goes with its Workload");
    assert.equal((await read(theirs))?.spec.declaration.description, "In my words.");
    assert.equal((await when(theirs, (grant) => grant.status?.phase === "Draft")).metadata.labels?.[draftLabel], "true");
  });

  test("a grant may come before its Workload, and is not offered to a namespace that has not accepted it", async () => {
    components.put(imageOf("early"), [listIssues()]);
    const other = nameOf("first");
    const seen = await when(other, isPhase("Active"));
    const { spec } = approve({
      grant: {
        ...seen,
        spec: {
          ...seen.spec,
          tool: { ...seen.spec.tool, workload: "early" },
          declaration: { ...seen.spec.declaration, name: "early_issues" },
          subjects: [{ kind: "ServiceAccount", name: "triage", namespace: agents }],
        },
      },
      fn: listIssues(),
      reach: seen.spec.review?.reach ?? { hosts: [], volumes: [], secrets: [], imports: [] },
      component: [components.digestOf(imageOf("early"))],
      now: new Date(),
    });
    await client.create<ClusterToolGrant>(toolGrants, { ...seen, metadata: { name: "early", namespace }, spec });
    const missing = await when("early", isPhase("Withheld"));
    assert.equal(condition(missing, "Ready")?.reason, "WorkloadMissing");

    await putWorkload("early", "early");
    const refused = await when("early", (grant) => condition(grant, "Ready")?.reason === "NotAccepted");
    assert.equal(refused.status?.phase, "Withheld");
    assert.match(condition(refused, "Offered")?.message ?? "", new RegExp(agents));

    await client.request({
      method: "PATCH",
      path: objectPath(namespaces, { name: agents }),
      contentType: "application/merge-patch+json",
      body: { metadata: { annotations: { "ambit.dev/accepts-grants-from": namespace } } },
    });
    await when("early", isPhase("Active"));
  });

  for (const [size, what] of [
    [40, "is offered as any other"],
    [120, "is offered as any other"],
    [140, "is withheld with the reason, and others go on"],
  ] as const) {
    test(`a tool whose definition has ${size} KiB ${what}`, async () => {
      const image = `long-${size}`;
      components.put(imageOf(image), [listIssues({ docs: "word ".repeat(205 * size) }), listIssues({ name: "short" })]);
      await putWorkload(image, image);
      await when(nameOf(image, "short"), isPhase("Draft"));
      const name = nameOf(image);
      await when(name, isPhase("Draft"));
      if (size > 128) {
        const told = await when(name, (grant) => condition(grant, "Ready") !== undefined);
        assert.equal(told.spec.declaration.description, "", "it is a person's to write");
        assert.equal(told.status?.observed?.text, undefined);
        assert.match(condition(told, "Ready")?.message ?? "", /shorten its types or docs/);
        return;
      }
      const { declaration } = (await when(name, isPhase("Draft"))).spec;
      await approveAsSeen(name, { declaration: { ...declaration, name: `long_${size}`, description: "A person's own words." } });
      const { text = "" } = (await when(name, isPhase("Active"))).status?.observed ?? {};
      assert.ok(text.length > size * 1000);
    });
  }

  test("of two grants under one name for one caller the first by name is offered, whichever is older", async () => {
    components.put(imageOf("rival"), [listIssues()]);
    const rival = { declaration: { name: "rivals", description: "d", parameters: { type: "object" } } } as const;
    await putWorkload("z-rival", "rival");
    await approveAsSeen(nameOf("z-rival"), rival);
    await when(nameOf("z-rival"), isPhase("Active"));
    await putWorkload("a-rival", "rival");
    await approveAsSeen(nameOf("a-rival"), rival);
    await when(nameOf("a-rival"), isPhase("Active"));
    const loser = await when(nameOf("z-rival"), isPhase("Withheld"));
    assert.equal(condition(loser, "Ready")?.reason, "NameConflict");
    await client.delete(toolGrants, { name: nameOf("a-rival"), namespace });
    await when(nameOf("z-rival"), isPhase("Active"));
  });

  test("a registry that does not answer withholds its tools alone, and says so as something that may pass", async () => {
    // No pod runs its code: of one whose pods do, the tools go on.
    await putWorkload("wide", "unreachable");
    const withheld = await when(nameOf("wide"), (grant) => condition(grant, "Reconciling")?.reason === "RegistryUnreachable");
    assert.equal(withheld.status?.phase, "Withheld");
    assert.equal(condition(withheld, "Stalled")?.status, "False");
    assert.equal((await read(nameOf("said")))?.status?.phase, "Active");
  });

  test("nothing failed that a person would have to look into", () => assert.deepEqual(operator.failures.map(String), []));
});
