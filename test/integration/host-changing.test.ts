import assert from "node:assert/strict";
import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { isJsonObject, type JsonValue, parseJson } from "../../src/api/json.ts";
import { type ToolListing, type UntypedTool, untypedInterface } from "../../src/api/untyped.ts";
import { definitionDigest } from "../../src/grants/definition.ts";
import { readListing } from "../../src/grants/listing.ts";
import { fixture, startHost, temporaryFolder } from "./host-under-test.ts";

const shifting = fixture("shifting.wasm");

const tool = (name: string, more: object = {}) => ({ name, inputSchema: '{"type":"object"}', ...more });

const listingOf = (...tools: object[]) => ({ pages: [{ tools }] });

interface Told {
  readonly digest: string | null;
  readonly listing: ToolListing | null;
  readonly fault: { readonly code: string; readonly message: string } | null;
}

/** A host whose component lists what is written into a file. */
const hostListing = async (first: object) => {
  const folder = mkdtempSync(join(temporaryFolder(), "listing-"));
  const list = (listing: object | string): void => {
    // Whole or not at all: the component may read it at any time.
    writeFileSync(join(folder, "next"), typeof listing === "string" ? listing : JSON.stringify(listing));
    renameSync(join(folder, "next"), join(folder, "listing.json"));
  };
  list(first);
  const mounts = [{ name: "state", folder, mountPath: "/state", readOnly: true }];
  const host = await startHost({ component: shifting, config: { mounts }, limits: { timeoutMs: 5_000 } });
  const ask = async (known: string | null = null, waitMs = 20_000): Promise<Told> => {
    const { body } = await host.request("POST", "/v1/listing", host.signedByRoot({ kind: "listing", boot: host.boot, known, waitMs }));
    const listing: JsonValue = parseJson(JSON.stringify(body.listing));
    return { digest: body.digest, fault: body.fault, listing: isJsonObject(listing) ? readListing(listing) : null };
  };
  const call = (tool: UntypedTool, args: object) => {
    const body = JSON.stringify(args);
    const definition = definitionDigest(tool);
    const ticket = host.ticketFor(body, { interface: untypedInterface, function: tool.name }, { definition });
    return host.request("POST", "/v1/call", body, { "ambit-ticket": ticket });
  };
  return { host, list, ask, call };
};

const named = ({ listing }: Told): string[] => (listing?.tools ?? []).map(({ name }) => name);

describe("a host whose component's list changes", () => {
  let world: Awaited<ReturnType<typeof hostListing>>;
  before(async () => {
    world = await hostListing(listingOf(tool("a", { description: "One." })));
  });
  after(() => world.host.stop());

  it("tells of another list as soon as the component does, and calls by it alone", async () => {
    const first = await world.ask();
    assert.deepEqual(named(first), ["a"]);
    const [old] = first.listing?.tools ?? [];
    assert.ok(old);
    assert.equal((await world.call(old, { x: 1 })).body.outcome, "ok");

    world.list(listingOf(tool("a", { description: "Another." }), tool("b")));
    const second = await world.ask(first.digest);
    assert.deepEqual(named(second), ["a", "b"]);
    assert.deepEqual((await world.call(old, {})).body.code, "DefinitionChanged");

    world.list(listingOf(tool("a", { description: "One." })));
    const third = await world.ask(second.digest);
    assert.equal(third.digest, first.digest);
    assert.equal((await world.call(old, {})).body.outcome, "ok");
  });

  it("answers at once that nothing is new where nobody wants to wait", async () => {
    const { digest } = await world.ask();
    assert.deepEqual(await world.ask(digest, 0), { digest, listing: null, fault: null });
  });
});

describe("calls of an untyped tool", () => {
  let world: Awaited<ReturnType<typeof hostListing>>;
  let it1: UntypedTool;
  before(async () => {
    world = await hostListing(
      listingOf(tool("it", { inputSchema: ' {"type": "object", "properties": {"c": {"type": "string", "x-mcp-header": "H"}}} ' })),
    );
    const [found] = (await world.ask()).listing?.tools ?? [];
    assert.ok(found);
    it1 = found;
  });
  after(() => world.host.stop());

  it("get the name, the arguments' bytes and the schema", async () => {
    const { body } = await world.call(it1, { b: 1, a: [1.5, null] });
    assert.deepEqual(JSON.parse(body.text), [
      "it",
      '{"b":1,"a":[1.5,null]}',
      '{"type":"object","properties":{"c":{"type":"string","x-mcp-header":"H"}}}',
    ]);
  });

  const outcomes: Record<string, { args: object; outcome: string; code?: string; ran?: boolean; text: RegExp }> = {
    "a tool that is gone ran nothing": {
      args: { do: "unknown-tool" },
      outcome: "failed",
      code: "ToolGone",
      ran: false,
      text: /not there any more/,
    },
    "a far side that is away ran nothing, and says why": {
      args: { do: "unavailable" },
      outcome: "failed",
      code: "FarSideUnavailable",
      ran: false,
      text: /closed today/,
    },
    "an answer that never came may have run": {
      args: { do: "in-doubt" },
      outcome: "failed",
      code: "FarSideLost",
      ran: true,
      text: /line went dead/,
    },
    "a trap ends the call": { args: { do: "trap" }, outcome: "failed", code: "Trap", ran: true, text: /trapped/ },
    "a result beyond its cap is none": { args: { do: "large" }, outcome: "failed", code: "ResultTooLarge", ran: true, text: /larger than/ },
    "a structured value that is no JSON is none": { args: { do: "garbage" }, outcome: "failed", code: "Trap", ran: true, text: /not JSON/ },
    "no content is a short answer": { args: { do: "nothing" }, outcome: "ok", text: /^Done\.$/ },
    "an error without a word is one": { args: { do: "fail" }, outcome: "tool-error", text: /gave no reason/ },
    "a value without text is its own text": { args: { do: "structured", value: { n: 1 } }, outcome: "ok", text: /^\{"n":/ },
  };
  for (const [sentence, { args, outcome, code, ran, text }] of Object.entries(outcomes)) {
    it(sentence, async () => {
      const { body } = await world.call(it1, args);
      assert.deepEqual([body.outcome, body.code, body.ran], [outcome, code, ran]);
      assert.match(body.text, text);
    });
  }
});

describe("a list that is hostile", () => {
  let world: Awaited<ReturnType<typeof hostListing>>;
  before(async () => {
    world = await hostListing(listingOf(tool("good")));
  });
  after(() => world.host.stop());

  it("harms only what it is about: other tools are listed", async () => {
    const { digest } = await world.ask();
    const deep = `${'{"a":'.repeat(70)}1${"}".repeat(70)}`;
    world.list(
      listingOf(
        tool("good"),
        tool("constructor"),
        tool("__proto__"),
        tool("twice"),
        tool("twice", { description: "Another." }),
        tool("no-json", { inputSchema: "{" }),
        tool("two-keys", { inputSchema: '{"type":"object","type":"object"}' }),
        tool("not-an-object", { inputSchema: '{"type":"array"}' }),
        tool("too-deep", { inputSchema: `{"type":"object","x":${deep}}` }),
        tool("too-long", { description: "x".repeat(20_000) }),
        tool("x".repeat(200)),
        tool("line\nbreak"),
        tool(""),
      ),
    );
    const told = await world.ask(digest);
    assert.deepEqual(named(told), ["__proto__", "constructor", "good"]);
    const reasons = Object.fromEntries((told.listing?.notOffered ?? []).map(({ name, reason }) => [name, reason]));
    assert.match(reasons.twice ?? "", /same name/);
    assert.match(reasons["no-json"] ?? "", /input schema can't be read/);
    assert.match(reasons["two-keys"] ?? "", /can't be read/);
    assert.match(reasons["not-an-object"] ?? "", /type "object"/);
    assert.match(reasons["too-deep"] ?? "", /can't be read/);
    assert.match(reasons["too-long"] ?? "", /description has 20000 characters/);
  });

  const faults: Record<string, { listing: object | string; message: RegExp }> = {
    "that refuses": { listing: { fail: "the server says no" }, message: /the server says no/ },
    "that traps": { listing: { trap: true }, message: /trapped/ },
    "whose cursor does not move on": { listing: { ...listingOf(tool("a")), endless: "same" }, message: /comes back to where it was/ },
    "that never ends": { listing: { ...listingOf(tool("a")), endless: "new" }, message: /more than 200 pages/ },
    "with too many tools": { listing: { many: 1500, endless: "new" }, message: /more than 8388608 bytes/ },
    "with an endless name of its server": { listing: { ...listingOf(tool("a")), server: "x".repeat(1000) }, message: /server's name/ },
  };
  for (const [sentence, { listing, message }] of Object.entries(faults)) {
    it(`${sentence} counts for nothing: the one before stays, and why is told`, async () => {
      world.list(listingOf(tool("good")));
      let told = await world.ask();
      while (named(told).join() !== "good" || told.fault)
        told = await world.ask(told.digest, 1000).then((next) => (next.listing ? next : world.ask()));
      world.list(listing);
      while (told.fault === null) told = await world.ask(told.digest, 200);
      assert.match(told.fault.message, message);
      assert.deepEqual(named(await world.ask()), ["good"]);
    });
  }
});
