import assert from "node:assert/strict";
import { test } from "node:test";
import { type JsonObject, parseJson } from "../../../src/api/json.ts";
import { DeclarationLists } from "../../../src/catalogue/declarations.ts";
import { OfferBook } from "../../../src/catalogue/offers.ts";
import { CatalogueState } from "../../../src/catalogue/state.ts";
import type { DeclarationFormat } from "../../../src/declaration/formats.ts";
import { liveGrant, triage } from "./world.ts";

const schema = (properties: string) => parseJson(`{"type":"object","properties":${properties},"additionalProperties":false}`) as JsonObject;

const scene = (...grants: Parameters<typeof liveGrant>[]) => {
  const state = new CatalogueState();
  state.apply(grants.map((args) => ({ kind: "grant", grant: liveGrant(...args) })));
  const book = new OfferBook(state);
  return { state, book, lists: new DeclarationLists(), offers: () => book.offersFor(triage) };
};

const namesIn = (body: Buffer): string[] => JSON.parse(body.toString("utf8")).map((one: { name: string }) => one.name);

test("what one provider would reject is left out for it alone, and told in a header that may hold no more than ASCII", () => {
  const { lists, offers } = scene(
    ["fine", { declaration: { name: "fine" } }],
    ["odd", { declaration: { name: "odd", parameters: schema('{"a \\"key\\" – of words":{"type":"string"}}') } }],
  );
  const anthropic = lists.list(offers(), { format: "anthropic" });
  assert.deepEqual(namesIn(anthropic.body), ["fine"]);
  assert.match(anthropic.leftOut, /^"odd";rule="\w+";where="\/parameters\/[\x20-\x7e]+"$/);
  const neutral = lists.list(offers(), {});
  assert.deepEqual(namesIn(neutral.body), ["fine", "odd"]);
  assert.equal(neutral.leftOut, "");
  const odd = offers().byName.get("odd");
  assert.ok(odd);
  assert.equal(lists.one(odd, "anthropic"), null);
  assert.match(lists.one(odd, "neutral") ?? "", /^\{"name":"odd"/);
});

test("a cache breakpoint is on the last page alone, as long as is asked for", () => {
  const { lists, offers } = scene(["a", { declaration: { name: "a", cache: "1h" } }], ["b", { declaration: { name: "b", cache: "5m" } }]);
  const text = (query: Parameters<DeclarationLists["list"]>[1]) =>
    lists.list(offers(), { format: "anthropic", ...query }).body.toString("utf8");
  assert.match(text({}), /"cache_control":\{"type":"ephemeral","ttl":"1h"\}\}\]$/);
  assert.match(text({ cache: "5m" }), /"ttl":"5m"/);
  assert.doesNotMatch(text({ cache: "off" }), /cache_control/);
  assert.doesNotMatch(text({ limit: "1" }), /cache_control/);
});

test("strictness may be turned off, or left to the caller's own tools", () => {
  const { lists, offers } = scene(["a", { declaration: { name: "a" } }]);
  const isStrict = (query: Parameters<DeclarationLists["list"]>[1]) =>
    JSON.parse(lists.list(offers(), { format: "anthropic", ...query }).body.toString("utf8"))[0].strict === true;
  assert.ok(isStrict({}));
  assert.ok(!isStrict({ strict: "false" }));
  assert.ok(!isStrict({ reserve: "20,0,0" }));
  assert.throws(() => isStrict({ reserve: "many" }), { code: "QueryInvalid" });
});

test("a list may be asked of one namespace", () => {
  const { state, lists, offers } = scene(
    ["mine", { declaration: { name: "mine" } }],
    ["theirs", { declaration: { name: "theirs" } }, "other"],
  );
  assert.deepEqual(namesIn(lists.list(offers(), {}).body), ["mine"]);
  state.apply([{ kind: "namespace", name: "agents", acceptsGrantsFrom: "other" }]);
  assert.deepEqual(namesIn(lists.list(offers(), {}).body), ["mine", "theirs"]);
  assert.deepEqual(namesIn(lists.list(offers(), { namespace: "other" }).body), ["theirs"]);
  assert.deepEqual(namesIn(lists.list(offers(), { namespace: "nowhere" }).body), []);
});

test("offers are made again only when something of theirs changed, and then share what did not", () => {
  const { state, lists, offers } = scene(["a", { declaration: { name: "a" } }]);
  const before = offers();
  const list = lists.list(before, {});
  state.apply([{ kind: "grant", grant: liveGrant("others", { subjects: [{ kind: "User", name: "alice" }] }) }]);
  assert.equal(offers(), before);
  assert.equal(lists.list(offers(), {}), list);
  state.apply([{ kind: "grant", grant: liveGrant("b", { declaration: { name: "b" } }) }]);
  assert.notEqual(offers(), before);
  assert.equal(offers().byName.get("a"), before.byName.get("a"));
  assert.deepEqual(namesIn(lists.list(offers(), {}).body), ["a", "b"]);
});

test("a thousand tools that a provider rejects fit a header", () => {
  const broken = Array.from(
    { length: 1000 },
    (_, index): Parameters<typeof liveGrant> => [`g${index}`, { declaration: { name: `tool_${index}`, parameters: schema('{"a b":{}}') } }],
  );
  const { lists, offers } = scene(...broken);
  const { leftOut, body } = lists.list(offers(), { format: "anthropic" });
  assert.equal(body.toString("utf8"), "[]");
  assert.ok(leftOut.length < 8192);
  assert.match(leftOut, /"";more=980$/);
});

test("a list may leave declarations to the provider's search, and says so only where it has one", () => {
  const { lists, offers } = scene(...["a", "b", "c"].map((name): Parameters<typeof liveGrant> => [name, { declaration: { name } }]));
  const text = (query: Parameters<DeclarationLists["list"]>[1]) => lists.list(offers(), query).body.toString("utf8");
  const deferred = (query: Parameters<DeclarationLists["list"]>[1]) => text(query).split('"defer_loading":true').length - 1;
  assert.equal(deferred({ format: "anthropic" }), 0);
  assert.equal(deferred({ format: "anthropic", defer: "1" }), 2);
  assert.match(text({ format: "anthropic", defer: "1" }), /"tool_search_tool_bm25"/);
  assert.match(text({ format: "anthropic", defer: "1,regex" }), /"tool_search_tool_regex"/);
  assert.equal(deferred({ format: "openai-responses", defer: "2" }), 1);
  assert.equal(deferred({ format: "anthropic", defer: "off" }), 0);
  assert.equal(deferred({ format: "anthropic", defer: "on" }), 0);
  assert.equal(text({ format: "gemini", defer: "1" }), text({ format: "gemini" }));
  for (const defer of ["0", "true", "1,fuzzy", "-1", "100000"])
    assert.throws(() => deferred({ format: "anthropic", defer }), { code: "QueryInvalid" }, defer);
});

test("pages together are the list: no budget is spent twice", () => {
  const { lists, offers } = scene(
    ...Array.from({ length: 50 }, (_, index): Parameters<typeof liveGrant> => [`g${index}`, { declaration: { name: `t${index}` } }]),
  );
  const whole = JSON.parse(lists.list(offers(), { format: "anthropic" }).body.toString("utf8"));
  const paged: unknown[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page = lists.list(offers(), { format: "anthropic", limit: "12", cursor });
    paged.push(...JSON.parse(page.body.toString("utf8")));
    cursor = page.nextCursor;
  }
  assert.deepEqual(paged, whole);
  assert.equal(whole.filter(({ strict }: { strict?: boolean }) => strict).length, 20);
});

test("one declaration is an entry of the format's list", () => {
  const { lists, offers } = scene(["a", { declaration: { name: "a", cache: "1h" } }]);
  const a = offers().byName.get("a");
  assert.ok(a);
  const keys = (format: DeclarationFormat) => Object.keys(JSON.parse(lists.one(a, format) ?? "null"));
  assert.deepEqual(keys("gemini"), ["name", "description", "parametersJsonSchema"]);
  assert.deepEqual(keys("bedrock"), ["toolSpec"]);
  assert.deepEqual(keys("anthropic"), ["name", "description", "input_schema"]);
  assert.deepEqual(keys("mcp").slice(0, 3), ["name", "description", "inputSchema"]);
});
