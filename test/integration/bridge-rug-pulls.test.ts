import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { UntypedTool } from "../../src/api/untyped.ts";
import { type ChangingServer, type Said, startStateless, startWithSessions, type Tool } from "../fixtures/mcp-servers/changing.ts";
import { startScripted, withSessions } from "../fixtures/mcp-servers/scripted.ts";
import { type Bridged, bridgeTo } from "./bridge-under-test.ts";

/** No operator and no catalogue are here: the host alone compares what a ticket approves with what the server says by now. */

const description = "Gives an issue by its number, caf\u00e9 included.";
const number = { type: "integer", description: "Which.", maximum: 100 };
const state = { enum: ["open", "closed"] };
const tool = (name: string): Tool => ({
  name,
  title: "Get an issue",
  description,
  inputSchema: { type: "object", properties: { number, state }, required: ["number"] },
  outputSchema: { type: "object", properties: { title: { type: "string" } } },
  annotations: { readOnlyHint: true },
});

type Refusal = "DefinitionChanged" | "ToolGone" | null;

const saying =
  (change: Partial<Tool>) =>
  (before: Tool): Tool[] => [{ ...before, ...change }];
const without =
  (...members: (keyof Tool)[]) =>
  (before: Tool): Tool[] => [
    Object.fromEntries(Object.entries(before).filter(([key]) => !members.includes(key as keyof Tool))) as Tool & object,
  ];
const taking =
  (properties: object) =>
  (before: Tool): Tool[] => [{ ...before, inputSchema: { ...before.inputSchema, properties } }];
const reversed = (value: object): object => Object.fromEntries(Object.entries(value).reverse());

/** What becomes of a tool, and how a call of what was approved is refused then; null where it is the same tool. */
const changes: Record<string, readonly [change: (before: Tool) => Tool[], refusal: Refusal]> = {
  "one invisible character in its description": [saying({ description: `${description}\u200b` }), "DefinitionChanged"],
  "a space in its description": [saying({ description: `${description} ` }), "DefinitionChanged"],
  "the same letters in other code points": [saying({ description: description.normalize("NFD") }), "DefinitionChanged"],
  "an empty description": [saying({ description: "" }), "DefinitionChanged"],
  "no description": [without("description"), "DefinitionChanged"],
  "another title": [saying({ title: "Get an Issue" }), "DefinitionChanged"],
  "no title": [without("title"), "DefinitionChanged"],
  "an invisible character in an argument's description": [
    taking({ number: { ...number, description: "Which\u2060." }, state }),
    "DefinitionChanged",
  ],
  "another bound of an argument": [taking({ number: { ...number, maximum: 101 }, state }), "DefinitionChanged"],
  "another value of an argument": [taking({ number, state: { enum: ["open", "closed", "all"] } }), "DefinitionChanged"],
  "another order of a list": [taking({ number, state: { enum: ["closed", "open"] } }), "DefinitionChanged"],
  "another argument": [taking({ number, state, cc: { type: "string" } }), "DefinitionChanged"],
  "a header for an argument": [taking({ number: { ...number, "x-mcp-header": "Number" }, state }), "DefinitionChanged"],
  "another output schema": [saying({ outputSchema: { type: "object" } }), "DefinitionChanged"],
  "no output schema": [without("outputSchema"), "DefinitionChanged"],
  "the contrary hint": [saying({ annotations: { readOnlyHint: false } }), "DefinitionChanged"],
  "one hint more": [saying({ annotations: { readOnlyHint: true, idempotentHint: true } }), "DefinitionChanged"],
  "no hints": [without("annotations"), "DefinitionChanged"],
  nothing: [() => [], "ToolGone"],
  "its name in another case": [(before) => [{ ...before, name: before.name.toUpperCase() }], "ToolGone"],
  "an invisible character in its name": [(before) => [{ ...before, name: `${before.name}\u200b` }], "ToolGone"],
  "a second tool of its name": [(before) => [before, { ...before, description: "Another." }], "ToolGone"],
  "another order of keys": [
    (before) => [
      reversed({
        ...before,
        inputSchema: reversed({ ...before.inputSchema, properties: reversed({ number: reversed(number), state }) }),
      }) as Tool,
    ],
    null,
  ],
  "what is for programs": [saying({ _meta: { "example.com/build": 7 } }), null],
  "another tool beside it": [(before) => [before, { ...before, name: `${before.name}_beside` }], null],
};

const server = { name: "issues", version: "1.0.0" };
const names = new Map(Object.keys(changes).map((what, at) => [what, `tool_${at}`]));
const approved: Said = { tools: [...names.values()].map(tool), instructions: "Ask by number.", server };
const changed: Said = {
  ...approved,
  tools: [...names].flatMap(([what, name]) => (changes[what]?.[0] ?? (() => []))(tool(name))),
};

/** What is said for all tools at once. */
const ofAll: Record<string, readonly [said: Said, refusal: Refusal]> = {
  "the server's instructions": [{ ...approved, instructions: "Ask by number!" }, "DefinitionChanged"],
  "another server with the same tools": [{ ...approved, server: { ...server, name: "issues2" } }, "DefinitionChanged"],
  "the server's version alone": [{ ...approved, server: { ...server, version: "2.0.0" } }, null],
};

describe("a host whose bridge's server changes, with nobody else to notice", { concurrency: true }, () => {
  for (const { era, start } of [
    { era: "MCP 2026-07-28", start: startStateless },
    { era: "MCP 2025-11-25", start: startWithSessions },
  ]) {
    describe(`in ${era}`, { concurrency: 1 }, () => {
      let changing: ChangingServer;
      let bridged: Bridged;
      let digest: string | null;
      let reviewed: ReadonlyMap<string, UntypedTool>;
      before(async () => {
        changing = await start(approved);
        bridged = await bridgeTo(changing.target);
        const told = await bridged.ask();
        digest = told.digest;
        reviewed = new Map(told.listing?.tools.map((one) => [one.name, one]));
      });
      after(async () => {
        await bridged?.stop();
        await changing?.stop();
      });

      /** The server says something else, and the host has its list: told of it, or at the latest with the next poll. */
      const hears = async (said: Said): Promise<void> => {
        const { lists } = changing;
        changing.say(said);
        const told = await bridged.ask(digest, 20_000);
        assert.notEqual(told.digest, digest);
        digest = told.digest;
        assert.ok(changing.lists > lists);
      };

      const refusalOf = async (name: string): Promise<Refusal> => {
        const one = reviewed.get(name);
        assert.ok(one, `${name} was reviewed`);
        const { body } = await bridged.call(name, { number: 7 }, one);
        if (body.refused === true) return body.code;
        assert.equal(body.text, `${name} was called.`);
        return null;
      };

      it("calls what was approved, and with the first change no more, but where nothing was changed that anybody reads", async () => {
        for (const name of names.values()) assert.equal(await refusalOf(name), null);
        await hears(changed);
        const found = await Promise.all([...names].map(async ([what, name]) => [what, await refusalOf(name)]));
        assert.deepEqual(
          Object.fromEntries(found),
          Object.fromEntries(Object.entries(changes).map(([what, [, refusal]]) => [what, refusal])),
        );
        await hears(approved);
        for (const name of names.values()) assert.equal(await refusalOf(name), null);
      });

      for (const [what, [said, refusal]] of Object.entries(ofAll)) {
        it(`${refusal === null ? "goes on with" : "stops"} all of them by ${what}`, async () => {
          if (refusal !== null) await hears(said);
          else {
            const { lists } = changing;
            changing.say(said);
            const deadline = Date.now() + 20_000;
            // The second list since is only asked for once the first was taken.
            while (changing.lists < lists + 2) {
              assert.ok(Date.now() < deadline, "it is listed again");
              await new Promise((passed) => setTimeout(passed, 20));
              changing.say(said);
            }
          }
          for (const name of names.values()) assert.equal(await refusalOf(name), refusal);
          if (refusal !== null) await hears(approved);
        });
      }
    });
  }

  it("hears of it within one poll where the server has sessions and tells nobody", async (t) => {
    // What it says of how long its list is good has no effect in that protocol but here, where it is a minute otherwise.
    const scripted = await startScripted(withSessions(approved.tools));
    const bridged = await bridgeTo(scripted.target);
    t.after(() => Promise.all([bridged.stop(), scripted.stop()]));
    const { digest, listing } = await bridged.ask();
    const [before] = listing?.tools ?? [];
    assert.equal(before?.name, "tool_0");
    assert.equal((await bridged.call("tool_0")).body.outcome, "ok");
    scripted.answer(() => false, withSessions(changed.tools));
    assert.notEqual((await bridged.ask(digest, 20_000)).digest, digest);
    const { status, body } = await bridged.call("tool_0", {}, before);
    assert.deepEqual([status, body.refused, body.code], [409, true, "DefinitionChanged"]);
    assert.ok(!scripted.heard.some(({ method }) => method === "tools/call"));
  });
});
