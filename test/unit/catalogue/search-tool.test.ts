import assert from "node:assert/strict";
import { test } from "node:test";
import { DeclarationLists } from "../../../src/catalogue/declarations.ts";
import { OfferBook } from "../../../src/catalogue/offers.ts";
import { ToolSearch } from "../../../src/catalogue/search.ts";
import { searchToolName, searchToolOffer, withSearchTool } from "../../../src/catalogue/search-tool.ts";
import { CatalogueState } from "../../../src/catalogue/state.ts";
import { type DeclarationFormat, declarationFormats } from "../../../src/declaration/formats.ts";
import { lintDeclaration } from "../../../src/declaration/provider-rules.ts";
import { liveGrant, triage } from "./world.ts";

const scene = (...names: string[]) => {
  const state = new CatalogueState();
  state.apply(names.map((name) => ({ kind: "grant", grant: liveGrant(name.replaceAll("_", "-"), { declaration: { name } }) })));
  const book = new OfferBook(state);
  const parts = { search: new ToolSearch(state), lists: new DeclarationLists() };
  const offers = () => book.offersFor(triage);
  return {
    offers,
    listed: (query: Parameters<DeclarationLists["list"]>[1]): string[] =>
      JSON.parse(parts.lists.list(offers(), query).body.toString("utf8")).map((one: { name: string }) => one.name),
    ask: (args: object, format: DeclarationFormat = "neutral") => {
      const offer = withSearchTool(offers(), { name: searchToolName, format }, parts).byName.get(searchToolName);
      return offer?.answer?.(Buffer.from(JSON.stringify(args)));
    },
    called: (name: string) => withSearchTool(offers(), { name, format: "neutral" }, parts).byName.get(name),
  };
};

test("the search is declared as a tool to those who ask for it, in the order of names", () => {
  const { listed } = scene("aaa", "zzz");
  assert.deepEqual(listed({}), ["aaa", "zzz"]);
  assert.deepEqual(listed({ search: "true" }), ["aaa", searchToolName, "zzz"]);
  assert.deepEqual(listed({ search: "only" }), [searchToolName]);
  assert.deepEqual(listed({ search: "only", names: "zzz" }), [searchToolName, "zzz"]);
  assert.deepEqual(listed({ names: "zzz,zzz,nobody,aaa" }), ["aaa", "zzz"]);
  assert.deepEqual(listed({ search: "true", limit: "2" }), ["aaa", searchToolName]);
  assert.throws(() => listed({ search: "yes" }), { code: "QueryInvalid" });
  assert.throws(() => listed({ names: Array.from({ length: 129 }, (_, index) => index).join() }), { code: "QueryInvalid" });
});

test("every provider takes its declaration", () => {
  for (const format of declarationFormats) {
    if (format !== "neutral") assert.deepEqual(lintDeclaration(searchToolOffer.declaration, format), [], format);
  }
});

test("it gives the full declarations of what fits, in the format that was called in, and no others' tools", () => {
  const { ask } = scene("list_events", "send_message");
  const neutral = ask({ query: "events" });
  assert.deepEqual(neutral?.found, ["list_events"]);
  const [tool] = JSON.parse(neutral?.text ?? "").tools;
  assert.equal(tool.name, "list_events");
  assert.ok(tool.parameters.properties.repo);
  assert.deepEqual(JSON.parse(JSON.stringify(neutral?.structured)), JSON.parse(neutral?.text ?? ""));
  assert.equal(JSON.parse(ask({ query: "events" }, "openai-chat")?.text ?? "").tools[0].function.name, "list_events");
  assert.deepEqual(ask({ query: "weather" })?.text, '{"tools":[]}');
  assert.equal(ask({ query: "issues", limit: 1 })?.found.length, 1);
});

test("a grant that has its name is what is declared and called", () => {
  const { listed, called } = scene(searchToolName);
  assert.deepEqual(listed({ search: "true" }), [searchToolName]);
  assert.equal(called(searchToolName)?.id, "agents/search-tools");
  assert.equal(called(searchToolName)?.answer, undefined);
});

test("names that are near to its name are nobody's", () => {
  const { called } = scene("aaa");
  for (const name of ["Search_tools", "search_tools ", "search-tools", "constructor"]) assert.equal(called(name), undefined, name);
});
