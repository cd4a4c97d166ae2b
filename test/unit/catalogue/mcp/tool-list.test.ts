import assert from "node:assert/strict";
import { test } from "node:test";
import { isJsonObject, type JsonObject } from "../../../../src/api/json.ts";
import { ToolLists } from "../../../../src/catalogue/mcp/tool-list.ts";
import { OfferBook, type Offers } from "../../../../src/catalogue/offers.ts";
import { CatalogueState } from "../../../../src/catalogue/state.ts";
import { type grantSpec, liveGrant, objectIn, triage } from "../world.ts";

const offering = (names: readonly string[]): { readonly state: CatalogueState; readonly offers: () => Offers } => {
  const state = new CatalogueState();
  state.apply(names.map((name) => ({ kind: "grant", grant: liveGrant(name.replaceAll("_", "-"), { declaration: { name } }) })));
  const book = new OfferBook(state);
  return { state, offers: () => book.offersFor(triage) };
};

const pageIn = ({
  members,
}: {
  readonly members: string;
}): { readonly names: string[]; readonly next: string | undefined; readonly tools: JsonObject[] } => {
  const { tools, nextCursor } = objectIn(`{${members}}`);
  const listed = (tools as readonly JsonObject[]).filter(isJsonObject);
  return { tools: listed, names: listed.map(({ name }) => String(name)), next: nextCursor === undefined ? undefined : String(nextCursor) };
};

test("pages together are the whole list, in the order of names, each tool once", () => {
  const names = Array.from({ length: 25 }, (_, index) => `tool_${String(index).padStart(2, "0")}`);
  const { offers } = offering(names.toReversed());
  const lists = new ToolLists({ tools: 10, characters: 1_000_000 });
  const seen: string[][] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const page = pageIn(lists.page(offers(), cursor));
    seen.push(page.names);
    cursor = page.next;
  }
  assert.deepEqual(
    seen.map((page) => page.length),
    [10, 10, 5],
  );
  assert.deepEqual(seen.flat(), names);
});

test("a page that is full to the last tool of the list says that it is the last", () => {
  const { offers } = offering(["a", "b"]);
  assert.equal(pageIn(new ToolLists({ tools: 2, characters: 1_000_000 }).page(offers(), undefined)).next, undefined);
});

test("a page has as many tools as its length allows, and one at least", () => {
  const { offers } = offering(["a", "b", "c"]);
  const page = pageIn(new ToolLists({ tools: 10, characters: 1 }).page(offers(), undefined));
  assert.deepEqual(page.names, ["a"]);
  assert.ok(page.next);
});

test("what is withdrawn between two pages moves nothing else, the name that a page ended with included", () => {
  const { state, offers } = offering(["a", "b", "c", "d"]);
  const lists = new ToolLists({ tools: 2, characters: 1_000_000 });
  const { next } = pageIn(lists.page(offers(), undefined));
  state.apply([{ kind: "grant-withdrawn", id: "agents/b" }]);
  assert.deepEqual(pageIn(lists.page(offers(), next)).names, ["c", "d"]);
});

test("a cursor that the catalogue did not give out is refused", () => {
  const { offers } = offering(["a"]);
  const lists = new ToolLists();
  for (const cursor of ["0", "!!", Buffer.from("before:a").toString("base64url"), "x".repeat(5000)]) {
    assert.throws(() => lists.page(offers(), cursor), { rpcCode: -32602 }, cursor);
  }
});

test("hints follow from the review, not from what the tool says of itself", () => {
  const hintsOf = (change: Parameters<typeof grantSpec>[0]) => {
    const state = new CatalogueState();
    state.apply([{ kind: "grant", grant: liveGrant("one", change) }]);
    const [tool] = pageIn(new ToolLists().page(new OfferBook(state).offersFor(triage), undefined)).tools;
    return { ...(tool?.annotations as JsonObject | undefined) };
  };
  const reach = { hosts: ["api.example.com"], volumes: [], secrets: [], imports: [] };
  const review = { definition: "v1:sha256:0", grant: "sha256:0", component: ["any"], reach };
  assert.deepEqual(hintsOf({ mutates: false }), { readOnlyHint: true, destructiveHint: false, openWorldHint: false });
  assert.deepEqual(hintsOf({ mutates: true, review }), { readOnlyHint: false, destructiveHint: true, openWorldHint: true });
});

test("where a server wants an argument in a header is not told to callers, and a tool that MCP has no form for is left out alone", () => {
  const state = new CatalogueState();
  const parameters: JsonObject = {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" }, "x-mcp-header": { type: "string" } },
  };
  state.apply([
    { kind: "grant", grant: liveGrant("marked", { declaration: { name: "marked", parameters } }) },
    { kind: "grant", grant: liveGrant("odd", { declaration: { name: "a name with spaces" } }) },
  ]);
  const { names, tools } = pageIn(new ToolLists().page(new OfferBook(state).offersFor(triage), undefined));
  assert.deepEqual(names, ["marked"]);
  assert.equal(
    JSON.stringify(tools[0]?.inputSchema),
    '{"type":"object","properties":{"region":{"type":"string"},"x-mcp-header":{"type":"string"}}}',
  );
});

test("a list's print changes with what is in it, and only then", () => {
  const { state, offers } = offering(["a"]);
  const lists = new ToolLists();
  const before = lists.print(offers());
  state.apply([{ kind: "namespace", name: "elsewhere", acceptsGrantsFrom: "agents" }]);
  assert.equal(lists.print(offers()), before);
  state.apply([{ kind: "grant", grant: liveGrant("a", { declaration: { name: "a", description: "Something else." } }) }]);
  assert.notEqual(lists.print(offers()), before);
});
