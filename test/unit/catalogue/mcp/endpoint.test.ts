import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../../src/api/json.ts";
import { eventsIn, speaking, statelessMeta } from "./speaking.ts";

const arguments_: JsonObject = { repo: "octo/app" };

test("a client of 2026-07-28 discovers, lists and calls without a session", async () => {
  await using served = await speaking();
  const discovered = await served.askAlone("server/discover");
  assert.equal(discovered.status, 200);
  assert.deepEqual(discovered.result.supportedVersions, ["2026-07-28"]);
  assert.deepEqual(
    { ...(discovered.result.capabilities as JsonObject) },
    { tools: Object.assign(Object.create(null), { listChanged: true }) },
  );
  assert.equal(discovered.result.resultType, "complete");
  assert.equal(discovered.result.instructions, undefined);

  const listed = await served.askAlone("tools/list");
  const [tool] = listed.result.tools as JsonObject[];
  assert.equal(tool?.name, "list_issues");
  assert.equal(listed.result.cacheScope, "private");
  assert.equal(typeof listed.result.ttlMs, "number");

  const called = await served.askAlone("tools/call", { name: "list_issues", arguments: arguments_ });
  assert.equal(called.status, 200);
  assert.equal(called.result.isError, false);
  assert.equal(called.headers["mcp-session-id"], undefined);
  assert.equal(served.sent.length, 1);
  assert.equal(served.journal.length, 1);
});

test("a client of 2025-11-25 initializes, lists, calls and ends its session", async () => {
  await using served = await speaking();
  const initialized = await served.initialize();
  assert.equal(initialized.result.protocolVersion, "2025-11-25");
  const session = String(initialized.headers["mcp-session-id"]);
  assert.match(session, /^[\x21-\x7e]+$/);
  const told = await served.say({ jsonrpc: "2.0", method: "notifications/initialized" }, { "mcp-session-id": session });
  assert.deepEqual([told.status, told.text], [202, ""]);

  assert.equal((await served.askInSession(session, "ping")).text, '{"jsonrpc":"2.0","id":7,"result":{}}');
  const listed = await served.askInSession(session, "tools/list");
  assert.equal((listed.result.tools as JsonObject[]).length, 1);
  assert.equal(listed.result.resultType, undefined);
  const called = await served.askInSession(session, "tools/call", { name: "list_issues", arguments: arguments_ });
  assert.equal(called.result.isError, false);
  assert.match(served.journal[0]?.session ?? "", /^[A-Za-z0-9_-]{22}$/);
  assert.ok(!session.includes(served.journal[0]?.session ?? ""));

  const end = await served.ask("/mcp", { method: "DELETE", headers: { "mcp-session-id": session } });
  assert.equal(end.status, 204);
  assert.equal((await served.askInSession(session, "tools/list")).status, 404);
});

test("who says that it comes from the catalogue's own origin is answered, any other page is not", async () => {
  await using served = await speaking();
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  assert.equal((await served.say(list, { origin: `http://127.0.0.1:${served.port}` })).status, 200);
  for (const origin of [`https://127.0.0.1:${served.port}`, "http://127.0.0.1:1", "http://evil.example", "null"]) {
    assert.equal((await served.say(list, { origin })).status, 403, origin);
  }
});

test("a call whose progress is asked for tells how far it is, ever further, then answers", async () => {
  await using served = await speaking();
  const params = { name: "list_issues", arguments: arguments_, _meta: { ...statelessMeta, progressToken: "p" } };
  const { text, headers } = await served.askAlone("tools/call", params, { accept: "application/json, text/event-stream" });
  assert.match(headers["content-type"] ?? "", /^text\/event-stream/);
  const messages = eventsIn(text);
  const progress = messages.filter(({ method }) => method === "notifications/progress").map((message) => message.params as JsonObject);
  assert.deepEqual(
    progress.map(({ progressToken, progress, total }) => [progressToken, progress, total]),
    [
      ["p", 0, 2],
      ["p", 1, 2],
      ["p", 2, 2],
    ],
  );
  assert.equal(messages.at(-1)?.id, 7);
});

test("a tool that is not offered is an error in a stream as well, and never said to be admitted", async () => {
  await using served = await speaking();
  const params = { name: "nobody", arguments: {}, _meta: { ...statelessMeta, progressToken: 1 } };
  const messages = eventsIn((await served.askAlone("tools/call", params, { accept: "application/json, text/event-stream" })).text);
  assert.equal(messages.length, 2);
  assert.deepEqual({ ...(messages[1]?.error as JsonObject | undefined) }, { code: -32602, message: "Unknown tool" });
});

test("the search is listed as a tool where that is asked for, alone or among the others, and finds what may be called", async () => {
  await using served = await speaking();
  const body = '{"jsonrpc":"2.0","id":7,"method":"tools/list"}';
  const namesAt = async (path: string): Promise<unknown[]> => {
    const { text } = await served.post(path, body);
    return (JSON.parse(text).result.tools as { name: string }[]).map(({ name }) => name);
  };
  assert.deepEqual(await namesAt("/mcp"), ["list_issues"]);
  assert.deepEqual(await namesAt("/mcp?search=only"), ["search_tools"]);
  assert.deepEqual(await namesAt("/mcp?search=true"), ["list_issues", "search_tools"]);
  assert.equal((await served.post("/mcp?search=some", body)).status, 400);
  assert.equal((await served.post("/mcp?limit=1", body)).status, 400);
  const found = await served.askAlone("tools/call", { name: "search_tools", arguments: { query: "issues" } });
  assert.match(found.text, /inputSchema/);
  assert.equal(found.result.isError, false);
});
