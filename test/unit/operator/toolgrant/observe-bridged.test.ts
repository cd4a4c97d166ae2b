import assert from "node:assert/strict";
import { test } from "node:test";
import { type Sha256Digest, sha256Of } from "../../../../src/api/digest.ts";
import { Transient } from "../../../../src/api/errors.ts";
import type { ComponentInterface } from "../../../../src/api/wit.ts";
import { definitionDigest, definitionText } from "../../../../src/grants/definition.ts";
import { toolListing } from "../../../../src/grants/listing.ts";
import type { ComponentStore } from "../../../../src/operator/component-store.ts";
import { workloadVersion } from "../../../../src/operator/judged.ts";
import type { ClusterToolGrant, Pod } from "../../../../src/operator/kinds.ts";
import { podAnnotations } from "../../../../src/operator/names.ts";
import { ToolListings } from "../../../../src/operator/tool-listings.ts";
import { observeTool } from "../../../../src/operator/toolgrant/observe.ts";
import { ManualClock } from "../../kube/manual-clock.ts";
import { component, workload } from "../workload-world.ts";

/** What is observed of the tool of an MCP server that is a component. */
const [bridge, now, before] = ["the bridge", "the server", "the server before"].map((text) => sha256Of(text)) as [
  Sha256Digest,
  Sha256Digest,
  Sha256Digest,
];
const served = workload({
  components: [component({ name: "issues-mcp", image: "server", localResources: { allowedHosts: ["api.example.com"] } })],
  mcpServers: [{ name: "issues", component: "issues-mcp", limits: component().limits }],
});
const bare: ComponentInterface = { imports: [], exports: [], functions: [], isAsynchronous: false, docs: { sources: [] } };
const listing = toolListing({ server: "issues" }, [{ name: "list_issues", inputSchema: '{"type":"object"}' }]);
const [tool] = listing.tools;
assert.ok(tool);

const components: ComponentStore = {
  fetch: async (_, { bridge: of, image }) => ({
    digest: of ? bridge : now,
    resolved: image,
    interface: of
      ? { ...bare, exports: [{ id: "ambit:tool/untyped@0.1.0", kind: "instance" }] }
      : { ...bare, imports: [{ id: "wasi:http/outgoing-handler@0.2.6", kind: "instance", functions: ["handle"], resources: [] }] },
    bytes: async () => new Uint8Array(),
  }),
};
const grantWith = (observed?: object): ClusterToolGrant =>
  ({
    metadata: { name: "g", namespace: "agents" },
    spec: { tool: { workload: "github", mcpServer: "issues", tool: "list_issues" }, declaration: { name: "list_issues" } },
    ...(observed ? { status: { phase: "Active", observed } } : {}),
  }) as unknown as ClusterToolGrant;
const podOf = (delivered: string, deletionTimestamp?: string): Pod => ({
  metadata: { name: "p", annotations: { [podAnnotations.delivered]: delivered }, ...(deletionTimestamp ? { deletionTimestamp } : {}) },
});
const observe = async (server: readonly Pod[], store = components, grant = grantWith()) => {
  const listings = new ToolListings();
  listings.set({ namespace: "agents", workload: "github", component: "issues" }, bridge, listing);
  const reader = { components: store, clock: new ManualClock(), listings, images: new Map() };
  return observeTool(reader, grant, served, { own: [], server }, new AbortController().signal);
};

test("its code and its reach are the server's, and calls go to the bridge", async () => {
  const { observed } = await observe([podOf(now)]);
  const reach = { hosts: ["api.example.com"], volumes: [], secrets: [], imports: ["wasi:http/outgoing-handler@0.2.6"] };
  assert.deepEqual(
    observed.codes.map(({ digest, code, reach, fn }) => ({ digest, code, reach, fn: fn && definitionDigest(fn) })),
    [{ digest: bridge, code: now, reach, fn: definitionDigest(tool) }],
  );
});

const served2: Record<string, { pods: readonly Pod[]; codes: readonly string[] }> = {
  "that pods of before have": { pods: [podOf(before), podOf(before), podOf(now)], codes: [now, before] },
  "of pods on their way out counts no more": { pods: [podOf(before, "2026-01-01T00:00:00Z")], codes: [now] },
  "of pods that were given nothing yet is none": { pods: [podOf("")], codes: [now] },
};
for (const [name, { pods, codes }] of Object.entries(served2)) {
  test(`code of the server ${name}`, async () => {
    const { observed } = await observe(pods);
    assert.deepEqual(
      observed.codes.map(({ code }) => code),
      codes,
    );
  });
}

test("what pods of the server were made to touch counts where it is more than the Workload says", async () => {
  const made = (...hosts: string[]): Pod => {
    const pod = podOf(now);
    const annotations = { ...pod.metadata.annotations, [podAnnotations.reach]: JSON.stringify({ hosts, volumes: [], secrets: [] }) };
    return { ...pod, metadata: { ...pod.metadata, annotations } };
  };
  const { observed } = await observe([made("api.example.com"), made(), made("api.example.com", "more.example.com")]);
  assert.deepEqual(
    observed.codes.map(({ code, reach }) => [code, reach.hosts]),
    [
      [now, ["api.example.com"]],
      [now, ["api.example.com", "more.example.com"]],
    ],
  );
});

test("while the server's registry is away, what was observed goes on, with the code that pods have", async () => {
  const facts = {
    digest: definitionDigest(tool),
    text: definitionText(tool),
    component: bridge,
    code: now,
    reach: { hosts: [], volumes: [], secrets: [], imports: [] },
    workload: workloadVersion(served),
  };
  const away: ComponentStore = {
    fetch: async (workload, one) => {
      if (one.bridge) return components.fetch(workload, one);
      throw new Transient("RegistryUnreachable", "the registry does not answer");
    },
  };
  const { observed, passing } = await observe([podOf(before)], away, grantWith(facts));
  assert.equal(passing?.code, "RegistryUnreachable");
  assert.deepEqual(
    observed.codes.map(({ digest, code }) => [digest, code]),
    [
      [bridge, now],
      [bridge, before],
    ],
  );
  assert.deepEqual((await observe([podOf(now)], away)).observed.codes, []);
});
