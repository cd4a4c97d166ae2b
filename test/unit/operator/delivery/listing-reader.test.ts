import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256Of } from "../../../../src/api/digest.ts";
import type { WorkloadSpec } from "../../../../src/api/generated/workload.ts";
import { toolListing } from "../../../../src/grants/listing.ts";
import { Store } from "../../../../src/kube/store.ts";
import type { OperatorContext } from "../../../../src/operator/context.ts";
import { listingReader } from "../../../../src/operator/delivery/listing-reader.ts";
import type { Keyring } from "../../../../src/operator/delivery/own-keys.ts";
import type { ClusterWorkload, Pod } from "../../../../src/operator/kinds.ts";
import { ToolListings } from "../../../../src/operator/tool-listings.ts";
import { component, workload } from "../workload-world.ts";

const { limits } = component();
const remote = (url: string) => ({ name: "linear", limits, remote: { url } });
const served = (of: string) => ({ name: "served", limits, component: of });
const servers = [component({ name: "one" }), component({ name: "two" }), component({ name: "lister" })];
const before: Partial<WorkloadSpec> = { components: servers, mcpServers: [remote("https://a.example/mcp"), served("one")] };

/** What is forgotten of what was listed, when the Workload becomes another. */
const forgotten = async (now: Partial<WorkloadSpec>): Promise<string[]> => {
  const stores = { pods: new Store<Pod>(), workloads: new Store<ClusterWorkload>() };
  const listings = new ToolListings();
  const ending = new AbortController();
  stores.workloads.apply(workload(before));
  const context = { stores } as unknown as OperatorContext;
  const reading = listingReader(context, { keyring: {} as Keyring, listings, placeOf: () => ({ address: "", port: 1 }) }).run(
    ending.signal,
  );
  const keys = ["linear", "served", "lister"].map((name) => ({ namespace: "agents", workload: "github", component: name }));
  for (const key of keys) listings.set(key, sha256Of("code"), toolListing({}, []));
  const next = workload(now);
  stores.workloads.apply({ ...next, metadata: { ...next.metadata, generation: 4, resourceVersion: "8" } });
  ending.abort();
  await reading;
  return keys.filter((key) => listings.latest(key) === undefined).map((key) => key.component);
};

const changes: Record<string, { now: Partial<WorkloadSpec>; gone: string[] }> = {
  "replicas or limits alone change": {
    now: {
      ...before,
      replicas: 3,
      mcpServers: [{ ...remote("https://a.example/mcp"), limits: { ...limits, concurrency: 1 } }, served("one")],
    },
    gone: [],
  },
  "a server is at another path": { now: { ...before, mcpServers: [remote("https://a.example/other"), served("one")] }, gone: ["linear"] },
  "a server is another component": {
    now: { ...before, mcpServers: [remote("https://a.example/mcp"), served("two")] },
    gone: ["served"],
  },
  "a server goes": { now: { ...before, mcpServers: [served("one")] }, gone: ["linear"] },
  "a server's name becomes a component's": {
    now: { components: [...servers, component({ name: "linear" })], mcpServers: [served("one")] },
    gone: ["linear"],
  },
  "a component's name becomes a server's": {
    now: {
      components: servers.slice(0, 2),
      mcpServers: [...(before.mcpServers ?? []), { ...remote("https://a.example/mcp"), name: "lister" }],
    },
    gone: ["lister"],
  },
  "a component goes": { now: { ...before, components: servers.slice(0, 2) }, gone: ["lister"] },
};
for (const [name, { now, gone }] of Object.entries(changes)) {
  test(`where ${name}, ${gone.length > 0 ? "what it listed is forgotten" : "nothing that was listed is forgotten"}`, async () => {
    assert.deepEqual(await forgotten(now), gone);
  });
}
