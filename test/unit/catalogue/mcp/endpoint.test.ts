import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../../src/api/json.ts";
import { speaking } from "./speaking.ts";

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
