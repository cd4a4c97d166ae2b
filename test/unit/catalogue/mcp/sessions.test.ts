import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { serviceAccountCaller } from "../../../../src/catalogue/caller.ts";
import { Sessions } from "../../../../src/catalogue/mcp/sessions.ts";
import { signingKeys, triage } from "../world.ts";
import { speaking } from "./speaking.ts";

const hour = 60 * 60 * 1000;

const replica = (keys = signingKeys(), clock = { now: 1_800_000_000_000 }) => {
  const deps = { signer: () => keys, now: () => clock.now, random: (bytes: number) => randomBytes(bytes) };
  return { sessions: new Sessions(deps), clock, keys };
};

test("a session is known to every replica that signs with the same key, and by none that doesn't", () => {
  const { sessions, keys } = replica();
  const id = sessions.open(triage, "2025-06-18");
  assert.equal(sessions.find(triage, id)?.revision, "2025-06-18");
  assert.deepEqual(replica(keys).sessions.find(triage, id), sessions.find(triage, id));
  assert.equal(replica({ ...signingKeys(), kid: "key-1" }).sessions.find(triage, id), null);
});

test("a session is of one caller", () => {
  const { sessions } = replica();
  const id = sessions.open(triage, "2025-11-25");
  assert.equal(sessions.find(serviceAccountCaller("agents", "other"), id), null);
});

test("a session ends after a day, and at once where its client ends it", () => {
  const { sessions, clock } = replica();
  const [first, second] = [sessions.open(triage, "2025-11-25"), sessions.open(triage, "2025-11-25")];
  sessions.end(first);
  assert.equal(sessions.find(triage, first), null);
  clock.now += 23 * hour;
  assert.ok(sessions.find(triage, second));
  clock.now += 2 * hour;
  assert.equal(sessions.find(triage, second), null);
});

test("a session outlives the rotation of the key that it was made under", () => {
  let keys = signingKeys();
  const sessions = new Sessions({ signer: () => keys, now: () => 0, random: (bytes) => randomBytes(bytes) });
  const id = sessions.open(triage, "2025-11-25");
  keys = { ...signingKeys(), kid: "key-2" };
  assert.ok(sessions.find(triage, sessions.open(triage, "2025-11-25")));
  assert.ok(sessions.find(triage, id));
});

test("an id that differs in any one character is none, and no two ids are alike", () => {
  const { sessions } = replica();
  const id = sessions.open(triage, "2025-11-25");
  assert.notEqual(sessions.open(triage, "2025-11-25"), id);
  for (let at = 0; at < id.length; at++) {
    const other = id.slice(0, at) + (id[at] === "A" ? "B" : "A") + id.slice(at + 1);
    // The last character has bits that no byte is made of.
    if (Buffer.from(other, "base64url").equals(Buffer.from(id, "base64url"))) continue;
    assert.equal(sessions.find(triage, other), null, String(at));
  }
  for (const junk of ["", "x", id.slice(1), `${id}A`, "A".repeat(id.length), id.toUpperCase()])
    assert.equal(sessions.find(triage, junk), null, junk);
});

test("a session of another caller, of nobody's making or ended is answered 404, so that a client begins anew", async () => {
  await using served = await speaking();
  const session = String((await served.initialize()).headers["mcp-session-id"]);
  served.callers.set("other", serviceAccountCaller("agents", "other"));
  const list = '{"jsonrpc":"2.0","id":7,"method":"tools/list"}';
  const headers = { "content-type": "application/json", "mcp-session-id": session };
  assert.equal((await served.ask("/mcp", { method: "POST", body: list, headers, token: "other" })).status, 404);
  assert.equal((await served.ask("/mcp", { method: "POST", body: list, headers })).status, 200);
  assert.equal(
    (await served.ask("/mcp", { method: "POST", body: list, headers: { ...headers, "mcp-session-id": "made-up" } })).status,
    404,
  );
  assert.equal((await served.ask("/mcp", { method: "DELETE", headers: { "mcp-session-id": session }, token: "other" })).status, 404);
  assert.equal((await served.ask("/mcp", { headers: { accept: "text/event-stream", "mcp-session-id": "made-up" } })).status, 404);
});

test("a revision that the catalogue doesn't speak is answered with the newest that it does", async () => {
  await using served = await speaking();
  assert.equal((await served.initialize("2024-11-05")).result.protocolVersion, "2025-11-25");
  assert.equal((await served.initialize("2025-03-26")).result.protocolVersion, "2025-03-26");
});

test("messages come together in 2025-03-26 alone, and each has its own answer", async () => {
  await using served = await speaking();
  const batch = [
    { jsonrpc: "2.0", id: 1, method: "ping" },
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { jsonrpc: "2.0", id: "b", method: "tools/call", params: { name: "list_issues", arguments: { repo: "a/b" } } },
    { jsonrpc: "2.0", id: 3, method: "nothing/there" },
  ];
  const said = await served.say(batch);
  const answers = JSON.parse(said.text) as { id: unknown; result?: { isError?: boolean }; error?: { code: number } }[];
  assert.deepEqual(
    answers.map(({ id, error }) => [id, error?.code]),
    [
      [1, undefined],
      ["b", undefined],
      [3, -32601],
    ],
  );
  assert.equal((await served.say([batch[1]])).status, 202);
  assert.equal((await served.say(batch, { "mcp-protocol-version": "2025-06-18" })).status, 400);
  assert.equal((await served.say(Array.from({ length: 33 }, () => batch[0]))).status, 400);
});
