import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256Of } from "../../../src/api/digest.ts";
import { toolListing } from "../../../src/grants/listing.ts";
import { offeringOf, ToolListings } from "../../../src/operator/tool-listings.ts";
import { listIssues } from "../grants/issues-tool.ts";
import { known } from "./workload-world.ts";

const key = { namespace: "agents", workload: "issues", component: "linear" };
const [now, before] = [sha256Of("the bridge"), sha256Of("the bridge of another Ambit")];
const remote = { bridge: { kind: "remote", headersFrom: [] } } as const;
const listing = toolListing({ server: "linear" }, [{ name: "list_issues", inputSchema: '{"type":"object"}' }]);
const { stored } = known();
const lister = {
  ...stored,
  digest: now,
  interface: { ...stored.interface, exports: [{ id: "ambit:tool/untyped@0.1.0", kind: "instance" }] },
} as const;
const server = { ...stored, interface: { ...stored.interface, functions: [listIssues()] } };

test("what a bridge of another Ambit listed is what this one's server offers; a component's own code speaks for itself", () => {
  const listings = new ToolListings();
  listings.set(key, before, listing);
  assert.deepEqual(
    offeringOf(lister, remote, key, listings).offered.map(({ name }) => name),
    ["list_issues"],
  );
  assert.equal(offeringOf(lister, {}, key, listings).listing, "awaited");
});

test("a component that serves offers no functions, and says so", () => {
  const { offered, notOffered, listing: is } = offeringOf(server, { serves: "issues" }, key, new ToolListings());
  assert.deepEqual([offered, is], [[], "none"]);
  assert.deepEqual(
    notOffered.map(({ function: name, reason }) => `${name}: ${reason}`),
    ["list-issues: the component is the MCP server issues, whose tools are those that it lists"],
  );
  assert.deepEqual(
    offeringOf(server, {}, key, new ToolListings()).offered.map(({ name }) => name),
    ["list-issues"],
  );
});

test("what goes wrong with a list is told once, until its host has nothing to say any more", () => {
  const listings = new ToolListings();
  const told: string[] = [];
  listings.subscribe(({ component }) => told.push(component));
  const fault = { code: "ListingFailed", message: "no" };
  const asked = () => offeringOf(lister, remote, key, listings).listingFault;
  for (const one of [fault, { ...fault }]) listings.setFault(key, "pod", one);
  assert.deepEqual([asked(), told], [fault, ["linear"]]);
  listings.setFault(key, "another", null);
  listings.setFault(key, "pod", null);
  assert.deepEqual([asked(), told], [undefined, ["linear", "linear"]]);
});

test("a component that has become another is forgotten, and no other with it", () => {
  const listings = new ToolListings();
  const others = [
    { ...key, component: "linear2" },
    { ...key, workload: "issues2" },
  ];
  for (const one of [key, ...others]) listings.set(one, now, listing);
  listings.setFault(key, "pod", { code: "ListingFailed", message: "no" });
  listings.forget(key);
  assert.deepEqual([listings.latest(key), listings.faultOf(key)], [undefined, undefined]);
  assert.deepEqual(
    others.map((one) => listings.latest(one)),
    [listing, listing],
  );
});
