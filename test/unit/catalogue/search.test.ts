import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { serviceAccountCaller } from "../../../src/catalogue/caller.ts";
import { OfferBook } from "../../../src/catalogue/offers.ts";
import { ToolSearch } from "../../../src/catalogue/search.ts";
import { type CatalogueChange, CatalogueState } from "../../../src/catalogue/state.ts";
import { liveGrant, triage } from "./world.ts";

const tool = (name: string, description: string, account = "triage"): CatalogueChange => {
  const subjects = [{ kind: "ServiceAccount", name: account, namespace: "agents" } as const];
  return { kind: "grant", grant: liveGrant(name.replaceAll("_", "-"), { declaration: { name, description }, subjects }) };
};

const tools = [
  tool("create_event", "Puts an event into a calendar."),
  tool("list_events", "Lists what is in a calendar."),
  tool("send_message", "Sends a message to a channel, for instance about an event."),
  tool("delete_event", "Removes an event.", "janitor"),
];

const scene = (has: readonly CatalogueChange[] = tools) => {
  const state = new CatalogueState();
  state.apply(has);
  const book = new OfferBook(state);
  const search = new ToolSearch(state);
  const found = (query: string, limit = 10, caller = triage) =>
    search.search(book.offersFor(caller), query, limit).map(({ offer, score }) => ({ name: offer.declaration.name, score }));
  return { state, found, names: (query: string, limit?: number) => found(query, limit).map(({ name }) => name) };
};

test("what a question says twice over ranks before what it only touches", () => {
  const { names } = scene();
  assert.deepEqual(names("create event"), ["create_event", "list_events", "send_message"]);
  assert.deepEqual(names("calendar", 1).length, 1);
  assert.deepEqual(names("no_such_thing"), []);
  assert.deepEqual(names("?!"), []);
});

test("only what the caller may call is found, and others' tools leave no trace in the scores", () => {
  const { state, found } = scene();
  const before = found("delete event");
  assert.ok(!before.some(({ name }) => name === "delete_event"));
  state.apply([{ kind: "grant-withdrawn", id: "agents/delete-event" }]);
  assert.deepEqual(found("delete event"), before);
  assert.deepEqual(found("delete", 10, serviceAccountCaller("agents", "janitor")), []);
});

const word = fc.constantFrom("event", "events", "calendar", "message", "create", "delete", "list", "constructor", "evnt", "a");
const words = (count: number) => fc.array(word, { minLength: 1, maxLength: count }).map((some) => some.join(" "));

test("whatever tools others have, a caller's hits and their scores are the same", () => {
  const texts = fc.array(words(6), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(texts, texts, words(4), (mine, others, query) => {
      const apply = (state: CatalogueState, texts: readonly string[], account: string) =>
        state.apply(texts.map((text, index) => tool(`${account}_${index}`, text, account)));
      const alone = scene([]);
      apply(alone.state, mine, "triage");
      const among = scene([]);
      apply(among.state, others, "janitor");
      among.found(query, 10, serviceAccountCaller("agents", "janitor"));
      apply(among.state, mine, "triage");
      assert.deepEqual(among.found(query), alone.found(query));
      among.state.apply(others.map((_, index) => ({ kind: "grant-withdrawn", id: `agents/janitor-${index}` })));
      assert.deepEqual(among.found(query), alone.found(query));
    }),
    { numRuns: 30 },
  );
});

test("an index that followed changes ranks as one that is made anew", () => {
  const { state, found } = scene();
  found("event");
  const changes: CatalogueChange[] = [
    tool("create_event", "Puts an appointment into a calendar."),
    tool("archive_event", "Puts an event away."),
    { kind: "grant-withdrawn", id: "agents/list-events" },
  ];
  for (const change of changes) {
    state.apply([change]);
    found("event");
  }
  const fresh = new ToolSearch(state);
  const offers = new OfferBook(state).offersFor(triage);
  for (const query of ["event", "appointment calendar", "put away", "mesage"]) {
    assert.deepEqual(
      found(query),
      fresh.search(offers, query, 10).map(({ offer, score }) => ({ name: offer.declaration.name, score })),
      query,
    );
  }
});
