import assert from "node:assert/strict";
import { test } from "node:test";
import { compactJson, type JsonObject } from "../../../../src/api/json.ts";
import { defaultWatchLimits } from "../../../../src/catalogue/watch.ts";
import { openStream } from "../open-stream.ts";
import { liveGrant } from "../world.ts";
import { eventsIn, speaking, statelessMeta } from "./speaking.ts";

type Speaking = Awaited<ReturnType<typeof speaking>>;

const watchLimits = { ...defaultWatchLimits, settleMs: 5, heartbeatMs: 20, connectionsPerCaller: 2 };
const changed = "notifications/tools/list_changed";
const another = { kind: "grant", grant: liveGrant("another", { declaration: { name: "another" } }) } as const;

const listening = async (served: Speaking, notifications: JsonObject, id: string | number = "mine") => {
  const stream = await openStream({
    port: served.port,
    path: "/mcp",
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "subscriptions/listen",
    },
    body: compactJson({ jsonrpc: "2.0", id, method: "subscriptions/listen", params: { _meta: statelessMeta, notifications } }),
  });
  return { ...stream, messages: () => eventsIn(stream.heard()), [Symbol.dispose]: () => stream[Symbol.dispose]() };
};

const listeningInSession = async (served: Speaking, session: string) => {
  const stream = await openStream({ port: served.port, path: "/mcp", headers: { accept: "text/event-stream", "mcp-session-id": session } });
  return { ...stream, messages: () => eventsIn(stream.heard()), [Symbol.dispose]: () => stream[Symbol.dispose]() };
};

const subscriptionOf = (message: JsonObject | undefined): unknown => {
  const holder = (message?.params ?? message?.result) as JsonObject | undefined;
  return (holder?._meta as JsonObject | undefined)?.["io.modelcontextprotocol/subscriptionId"];
};

test("who listens hears first what it will hear, then of each change of its own list, and of the end", async () => {
  await using served = await speaking({}, { watchLimits });
  using stream = await listening(served, { toolsListChanged: true, promptsListChanged: true });
  await stream.until(() => stream.messages().length === 1);
  const [acknowledged] = stream.messages();
  assert.equal(acknowledged?.method, "notifications/subscriptions/acknowledged");
  assert.equal(JSON.stringify((acknowledged?.params as JsonObject | undefined)?.notifications), '{"toolsListChanged":true}');
  served.state.apply([{ kind: "grant", grant: liveGrant("others", { subjects: [{ kind: "User", name: "alice" }] }) }]);
  served.state.apply([another]);
  await stream.until(() => stream.messages().length === 2);
  assert.equal(stream.messages()[1]?.method, changed);
  const closed = served.catalogue.close();
  await stream.until(stream.isEnded);
  await closed;
  const last = stream.messages().at(-1);
  assert.deepEqual([last?.id, stream.messages().length], ["mine", 3]);
  assert.deepEqual(stream.messages().map(subscriptionOf), ["mine", "mine", "mine"]);
});

test("who listens for what there is none of hears so, and the stream ends", async () => {
  await using served = await speaking({}, { watchLimits });
  using stream = await listening(served, { promptsListChanged: true, resourceSubscriptions: ["file:///a"] }, 5);
  await stream.until(stream.isEnded);
  const [acknowledged, result] = stream.messages();
  assert.equal(JSON.stringify((acknowledged?.params as JsonObject | undefined)?.notifications), "{}");
  assert.equal(result?.id, 5);
});

test("the streams of a caller are bounded, and told so in MCP's words", async () => {
  await using served = await speaking({}, { watchLimits });
  using first = await listening(served, { toolsListChanged: true });
  using second = await listening(served, { toolsListChanged: true });
  using third = await listening(served, { toolsListChanged: true });
  assert.deepEqual([first.status, second.status, third.status], [200, 200, 429]);
  await third.until(third.isEnded);
  assert.match(third.heard(), /"id":"mine","error":\{"code":-32603/);
});

test("a token that no longer holds ends its streams", async () => {
  await using served = await speaking({}, { watchLimits });
  using stream = await listening(served, { toolsListChanged: true });
  served.callers.clear();
  await stream.until(stream.isEnded);
});

test("a session has one stream: it hears of changes, and a newer one ends it", async () => {
  await using served = await speaking({}, { watchLimits });
  const session = String((await served.initialize()).headers["mcp-session-id"]);
  using older = await listeningInSession(served, session);
  await older.until(() => older.heard() !== "");
  using newer = await listeningInSession(served, session);
  await older.until(older.isEnded);
  served.state.apply([another]);
  await newer.until(() => newer.messages().length === 1);
  assert.equal(newer.heard().includes(`{"jsonrpc":"2.0","method":"${changed}"}`), true);
  assert.deepEqual(older.messages(), []);
});
