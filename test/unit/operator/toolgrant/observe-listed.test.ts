import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256Of } from "../../../../src/api/digest.ts";
import type { UntypedTool } from "../../../../src/api/untyped.ts";
import type { ComponentInterface } from "../../../../src/api/wit.ts";
import { definitionDigest, definitionText } from "../../../../src/grants/definition.ts";
import { toolListing } from "../../../../src/grants/listing.ts";
import type { ComponentStore, StoredComponent } from "../../../../src/operator/component-store.ts";
import { workloadVersion } from "../../../../src/operator/judged.ts";
import type { ClusterToolGrant, ClusterWorkload, Pod } from "../../../../src/operator/kinds.ts";
import { podAnnotations } from "../../../../src/operator/names.ts";
import { offeringOf, ToolListings } from "../../../../src/operator/tool-listings.ts";
import { decideDrafts } from "../../../../src/operator/toolgrant/drafts.ts";
import { observeTool } from "../../../../src/operator/toolgrant/observe.ts";
import { untypedTool } from "../../grants/untyped-tool.ts";
import { ManualClock } from "../../kube/manual-clock.ts";

const key = { namespace: "agents", workload: "issues", component: "bridge" };
const [now, before] = [sha256Of("the code"), sha256Of("the code before")];

const workload = {
  metadata: { name: key.workload, namespace: key.namespace, uid: "w", generation: 2 },
  spec: { components: [{ name: key.component, image: "now" }], draftGrants: true, allowTags: false, suspend: false },
} as unknown as ClusterWorkload;

const listsTools: ComponentInterface = {
  imports: [],
  exports: [{ id: "ambit:tool/untyped@0.1.0", kind: "instance" }],
  functions: [],
  isAsynchronous: false,
  docs: { sources: [] },
};

const stored = (digest: `sha256:${string}`, described: ComponentInterface = listsTools): StoredComponent => ({
  digest,
  resolved: `registry.test/bridge@${digest}`,
  interface: described,
  bytes: async () => new Uint8Array(),
});

const components: ComponentStore = { fetch: async (_, { image }) => stored(image === "now" ? now : before) };

const tool = untypedTool();
const grant = (observed?: object): ClusterToolGrant =>
  ({
    metadata: { name: "g", namespace: key.namespace },
    spec: { tool: { workload: key.workload, component: key.component, tool: tool.name }, declaration: { name: tool.name } },
    ...(observed ? { status: { phase: "Active", observed } } : {}),
  }) as unknown as ClusterToolGrant;

const listing = (...tools: UntypedTool[]) =>
  toolListing(
    { server: "issues" },
    tools.map(({ name, title, description, inputSchema, annotations }) => ({
      name,
      title: title ?? undefined,
      description: description ?? undefined,
      inputSchema: JSON.stringify(inputSchema),
      annotations: annotations ? JSON.stringify(annotations) : undefined,
    })),
  );

const podOf = (delivered: string): Pod =>
  ({
    metadata: { name: "p", annotations: { [podAnnotations.delivered]: delivered } },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  }) as unknown as Pod;

const observe = (listings: ToolListings, seen: ClusterToolGrant = grant(), pods: readonly Pod[] = []) =>
  observeTool(
    { components, clock: new ManualClock(), listings, images: new Map([[before, "before"]]) },
    seen,
    workload,
    { own: pods, server: [] },
    new AbortController().signal,
  );

test("nothing is known of a listed tool before a host that runs the code has told", async () => {
  const { observed, passing } = await observe(new ToolListings());
  assert.deepEqual(observed.codes, []);
  assert.equal(observed.absent?.code, "NotListed");
  assert.equal(passing?.code, "NotListed");
});

test("what a host has told is what the code offers", async () => {
  const listings = new ToolListings();
  listings.set(key, now, listing(tool));
  const { observed, passing } = await observe(listings);
  assert.deepEqual(
    observed.codes.map(({ digest, fn }) => [digest, fn && definitionDigest(fn)]),
    [[now, definitionDigest(tool)]],
  );
  assert.equal(passing, undefined);
});

test("a tool that is not listed any more is not offered", async () => {
  const listings = new ToolListings();
  listings.set(key, now, listing(untypedTool({ name: "other" })));
  assert.deepEqual(
    (await observe(listings)).observed.codes.map(({ fn }) => fn),
    [null],
  );
});

test("during a rollout code that has not told yet counts for nothing, and the code before goes on", async () => {
  const listings = new ToolListings();
  listings.set(key, before, listing(tool));
  const { observed } = await observe(listings, grant(), [podOf(before)]);
  assert.deepEqual(
    observed.codes.map(({ digest }) => digest),
    [before],
  );
});

test("an operator that starts anew believes what was observed until the host has told again", async () => {
  const facts = {
    digest: definitionDigest(tool),
    text: definitionText(tool),
    component: now,
    reach: { hosts: [], volumes: [], secrets: [], imports: [] },
    workload: workloadVersion(workload),
  };
  const { observed, passing } = await observe(new ToolListings(), grant(facts));
  assert.deepEqual(
    observed.codes.map(({ fn }) => fn && definitionDigest(fn)),
    [definitionDigest(tool)],
  );
  assert.equal(passing?.code, "NotListed");
});

test("a component that lists nothing itself has no such tool", async () => {
  const typed: ComponentStore = { fetch: async () => stored(now, { ...listsTools, exports: [] }) };
  const reader = { components: typed, clock: new ManualClock(), listings: new ToolListings(), images: new Map() };
  const { observed } = await observeTool(reader, grant(), workload, { own: [], server: [] }, new AbortController().signal);
  assert.deepEqual(
    observed.codes.map(({ fn }) => fn),
    [null],
  );
});

test("what the Workload excludes is not offered", () => {
  const listings = new ToolListings();
  listings.set(key, now, listing(tool, untypedTool({ name: "other" })));
  const { offered, notOffered } = offeringOf(
    stored(now),
    { name: "bridge", image: "now", tools: { exclude: ["other"] } } as never,
    key,
    listings,
  );
  assert.deepEqual(
    offered.map(({ name }) => name),
    [tool.name],
  );
  assert.deepEqual(notOffered, [{ interface: "ambit:tool/untyped", function: "other", reason: "the workload excludes it" }]);
});

test("a hundred of a component's tools are drafted, and the rest is said to be left", () => {
  const many = Array.from({ length: 130 }, (_, index) => untypedTool({ name: `tool_${index}` }));
  const seen = { namespace: key.namespace, workload: key.workload, exists: true, draftGrants: true, grants: [] };
  const plan = decideDrafts({ ...seen, components: [{ source: { name: key.component }, offered: many }] });
  assert.equal(plan.create.length, 100);
  assert.equal(plan.leftToPersons, 30);
});

test("drafts stay while it is not known what is listed, and go with their tools", () => {
  const seen = { namespace: key.namespace, workload: key.workload, exists: true, draftGrants: true };
  const { create } = decideDrafts({ ...seen, grants: [], components: [{ source: { name: key.component }, offered: [tool] }] });
  const grants = create as unknown as ClusterToolGrant[];
  assert.equal(grants.length, 1);
  assert.deepEqual(decideDrafts({ ...seen, grants, components: [{ source: { name: key.component }, offered: null }] }).sweep, []);
  assert.equal(decideDrafts({ ...seen, grants, components: [{ source: { name: key.component }, offered: [] }] }).sweep.length, 1);
});

test("listings of codes long gone are forgotten, and those of a Workload that is", () => {
  const listings = new ToolListings();
  const codes = ["a", "b", "c", "d"].map(sha256Of);
  for (const code of codes) listings.set(key, code, listing(tool));
  assert.deepEqual(
    codes.map((code) => listings.of(key, code) !== undefined),
    [false, true, true, true],
  );
  listings.set({ ...key, workload: "issues2" }, now, listing(tool));
  listings.forget(key);
  assert.equal(listings.of(key, codes[3] ?? now), undefined);
  assert.ok(listings.of({ ...key, workload: "issues2" }, now));
});
