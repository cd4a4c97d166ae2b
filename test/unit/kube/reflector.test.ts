import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { describe, test } from "node:test";
import type { ClusterObject, ResourceType } from "../../../src/kube/object.ts";
import { defaultReflectorTiming, Reflector, type ReflectorTrouble } from "../../../src/kube/reflector.ts";
import { Store } from "../../../src/kube/store.ts";
import { ManualClock } from "./manual-clock.ts";
import { type Reply, ScriptedServer, type SeenRequest, until } from "./scripted-server.ts";

const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };

const item = (name: string, version: string, uid = `uid-${name}`) => ({
  metadata: { namespace: "agents", name, uid, resourceVersion: version },
});

const listOf = (version: string, items: unknown[], next?: string): Reply => ({
  json: { kind: "ConfigMapList", metadata: { resourceVersion: version, ...(next === undefined ? {} : { continue: next }) }, items },
});

const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;

/** A reflector under test: what it was told, what troubled it, and the watches it has open. */
const underTest = async (answer: (request: SeenRequest, index: number) => Reply, watched = true) => {
  const clock = new ManualClock();
  const watches: ServerResponse[] = [];
  const server = await ScriptedServer.start((request, index) =>
    watched && request.query.get("watch") === "true" && !request.query.has("refuse")
      ? (scripted(request, index) ?? stream())
      : answer(request, index),
  );
  const stream = (): Reply => ({ stream: (response) => void watches.push(response) });
  let scripted: (request: SeenRequest, index: number) => Reply | undefined = () => undefined;
  const store = new Store<ClusterObject>();
  const changes: string[] = [];
  store.subscribe(({ type, object }) => changes.push(`${type} ${object.metadata.name}@${object.metadata.resourceVersion}`));
  const troubles: ReflectorTrouble[] = [];
  const end = new AbortController();
  const client = server.client(clock);
  const reflector = new Reflector({
    client,
    type: configMaps,
    selection: { namespace: "agents", labelSelector: "app=x" },
    sink: store,
    clock,
    random: () => 0,
    onTrouble: (trouble) => troubles.push(trouble),
    timing: { ...defaultReflectorTiming, pageSize: 2, lineBytes: 4096 },
  });
  const ended = reflector.run(end.signal);
  return {
    clock,
    server,
    store,
    changes,
    troubles,
    reflector,
    watches,
    /** Answers watches by a script; undefined opens one. */
    onWatch: (script: typeof scripted) => {
      scripted = script;
    },
    watchCount: async (count: number): Promise<ServerResponse> => {
      await until(() => watches.length >= count, `watch ${count}`);
      // The client has the answer's head once its watchdog runs.
      await until(() => clock.nextIn === defaultReflectorTiming.idleMs, "the watchdog");
      return watches[count - 1] as ServerResponse;
    },
    troubleCount: (count: number) => until(() => troubles.length >= count, `trouble ${count}`),
    async [Symbol.asyncDispose]() {
      end.abort();
      await ended;
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
};

const statusOf = (code: number, reason: string) => ({ kind: "Status", code, reason, message: `it is ${reason}` });

const versionsWatched = (server: ScriptedServer): (string | null)[] =>
  server.seen.filter(({ query }) => query.has("watch")).map(({ query }) => query.get("resourceVersion"));

const listsSeen = (server: ScriptedServer): number =>
  server.seen.filter(({ query }) => !query.has("watch") && !query.has("continue")).length;

describe("a reflector", () => {
  test("reads a list page by page, then watches from its resource version", async () => {
    await using it = await underTest(({ query }) =>
      query.get("continue") === "p2" ? listOf("10", [item("c", "3")]) : listOf("10", [item("a", "1"), item("b", "2")], "p2"),
    );
    const watch = await it.watchCount(1);
    await it.reflector.synced;
    assert.deepEqual(it.changes, ["added a@1", "added b@2", "added c@3"]);
    const [first, second, third] = it.server.seen;
    assert.equal(first?.path, "/api/v1/namespaces/agents/configmaps");
    assert.deepEqual(Object.fromEntries(first?.query ?? []), { labelSelector: "app=x", limit: "2" });
    assert.deepEqual(Object.fromEntries(second?.query ?? []), { labelSelector: "app=x", limit: "2", continue: "p2" });
    assert.deepEqual(Object.fromEntries(third?.query ?? []), {
      watch: "true",
      labelSelector: "app=x",
      resourceVersion: "10",
      allowWatchBookmarks: "true",
      timeoutSeconds: "300",
    });
    watch.write(line("ADDED", item("d", "11")) + line("MODIFIED", item("a", "12")) + line("DELETED", item("b", "13")));
    await until(() => it.changes.length === 6, "the events");
    assert.deepEqual(it.changes.slice(3), ["added d@11", "updated a@12", "deleted b@13"]);
    assert.equal(it.store.get("agents/a")?.kind, "ConfigMap", "what lists leave out is filled in");
  });

  test("goes on from the last event when a watch ends or breaks off, without a list", async () => {
    await using it = await underTest(() => listOf("10", []));
    const first = await it.watchCount(1);
    first.write(line("ADDED", item("a", "11")));
    await until(() => it.changes.length === 1, "the event");
    it.clock.pass(60_000);
    first.end();
    const second = await it.watchCount(2);
    it.clock.pass(1000);
    second.write(line("BOOKMARK", { metadata: { resourceVersion: "50" } }) + line("ADDED", item("half", "60")).slice(0, -20));
    await until(() => it.clock.nextIn === 150_000, "the watchdog to hear it");
    second.destroy();
    await it.troubleCount(1);
    it.clock.pass(10_000);
    await it.watchCount(3);
    assert.deepEqual(versionsWatched(it.server), ["10", "11", "50"]);
    assert.equal(listsSeen(it.server), 1);
    assert.deepEqual(it.changes, ["added a@11"], "half an event is no event");
  });

  test("gives up a watch that is silent for too long, and opens another", async () => {
    await using it = await underTest(() => listOf("10", []));
    const first = await it.watchCount(1);
    let closed = false;
    first.on("close", () => {
      closed = true;
    });
    it.clock.pass(149_000);
    first.write(line("BOOKMARK", { metadata: { resourceVersion: "20" } }));
    await until(() => it.clock.nextIn === 150_000, "the watchdog to hear it");
    it.clock.pass(149_000);
    assert.equal(it.troubles.length, 0);
    it.clock.pass(1000);
    await it.troubleCount(1);
    it.clock.pass(500);
    await it.watchCount(2);
    await until(() => closed, "the dead connection to be closed");
    assert.deepEqual(versionsWatched(it.server), ["10", "20"]);
  });

  const tooOld: Record<string, (watch: ServerResponse) => void> = {
    "an error event says that the version is gone": (watch) => watch.write(line("ERROR", statusOf(410, "Expired"))),
    "an error event says something else": (watch) => watch.write(line("ERROR", statusOf(500, "InternalError"))),
    "the server knows no version so new": (watch) => watch.write(line("ERROR", statusOf(504, "Timeout"))),
    "an event is no JSON": (watch) => watch.write("{]\n"),
    "an event has no resource version": (watch) => watch.write(line("ADDED", { metadata: { name: "a" } })),
    "an event is of an unknown type": (watch) => watch.write(line("RENAMED", item("a", "11"))),
    "an event is longer than any object": (watch) => watch.write("x".repeat(5000)),
  };
  for (const [why, happens] of Object.entries(tooOld)) {
    test(`lists again, after a pause, when ${why}`, async () => {
      let lists = 0;
      await using it = await underTest(() =>
        lists++ === 0 ? listOf("10", [item("gone", "1"), item("kept", "2")]) : listOf("90", [item("kept", "2"), item("new", "80")]),
      );
      happens(await it.watchCount(1));
      await it.troubleCount(1);
      assert.equal(it.troubles[0]?.next, "list");
      assert.equal(listsSeen(it.server), 1);
      it.clock.pass(500);
      await it.watchCount(2);
      assert.deepEqual(it.changes, ["added gone@1", "added kept@2", "deleted gone@1", "added new@80"]);
      assert.deepEqual(versionsWatched(it.server), ["10", "90"]);
    });
  }

  test("lists again when a watch is refused for its version", async () => {
    await using it = await underTest(() => listOf("10", []));
    it.onWatch((_, index) => (index === 1 ? { status: 410, json: statusOf(410, "Gone") } : undefined));
    await it.troubleCount(1);
    it.clock.pass(500);
    await it.watchCount(1);
    assert.equal(listsSeen(it.server), 2);
  });

  const passing: Record<string, Reply> = {
    "the server has too much to do": { status: 429, headers: { "retry-after": "7" }, json: statusOf(429, "TooManyRequests") },
    "the server is not ready": { status: 503, headers: { "retry-after": "7" }, text: "apiserver not ready" },
  };
  for (const [why, reply] of Object.entries(passing)) {
    test(`waits as long as it is told and watches from where it was when ${why}`, async () => {
      await using it = await underTest(() => listOf("10", []));
      it.onWatch((_, index) => (index === 1 ? reply : undefined));
      await it.troubleCount(1);
      assert.equal(it.troubles[0]?.inMs, 7000);
      it.clock.pass(6999);
      assert.equal(it.server.seen.length, 2);
      it.clock.pass(1);
      await it.watchCount(1);
      assert.equal(listsSeen(it.server), 1);
      assert.deepEqual(versionsWatched(it.server), ["10", "10"]);
    });
  }

  test("waits longer with each failure of the first list, up to a limit, and then starts", async () => {
    let up = false;
    await using it = await underTest(() => (up ? listOf("10", [item("a", "1")]) : { status: 500, text: "no" }));
    for (let failure = 1; failure <= 7; failure++) {
      await it.troubleCount(failure);
      if (failure === 7) up = true;
      it.clock.pass(it.troubles[failure - 1]?.inMs ?? 0);
    }
    await it.reflector.synced;
    assert.deepEqual(
      it.troubles.map(({ inMs }) => inMs),
      [500, 1000, 2000, 4000, 8000, 15_000, 15_000],
    );
    assert.deepEqual(it.changes, ["added a@1"]);
  });

  test("forgets old trouble", async () => {
    await using it = await underTest(() => listOf("10", []));
    for (const watch of [1, 2]) {
      (await it.watchCount(watch)).write(line("ERROR", statusOf(410, "Expired")));
      await it.troubleCount(watch);
      it.clock.pass(1000);
    }
    const third = await it.watchCount(3);
    it.clock.pass(100_000);
    third.write(line("BOOKMARK", { metadata: { resourceVersion: "20" } }));
    await until(() => it.clock.nextIn === 150_000, "the watchdog to hear it");
    it.clock.pass(100_000);
    third.write(line("ERROR", statusOf(410, "Expired")));
    await it.troubleCount(3);
    assert.deepEqual(
      it.troubles.map(({ inMs }) => inMs),
      [500, 1000, 500],
    );
  });

  test("reads the list in one piece when a page's token has expired", async () => {
    await using it = await underTest(({ query }) => {
      if (query.has("continue")) return { status: 410, json: statusOf(410, "Expired") };
      return query.has("limit") ? listOf("10", [item("a", "1")], "p2") : listOf("12", [item("b", "11")]);
    });
    await it.watchCount(1);
    assert.deepEqual(it.changes, ["added b@11"]);
    assert.deepEqual(versionsWatched(it.server), ["12"]);
  });

  test("does not hammer a server that ends each watch at once", async () => {
    await using it = await underTest(() => listOf("10", []));
    it.onWatch(() => ({ text: "" }));
    await it.troubleCount(1);
    it.clock.pass(it.troubles[0]?.inMs ?? 0);
    await it.troubleCount(2);
    assert.ok((it.troubles[1]?.inMs ?? 0) > (it.troubles[0]?.inMs ?? 0));
    assert.equal(it.server.seen.length, 3);
  });

  test("tells an object that was deleted and made again while nobody watched as deleted, then added", async () => {
    let lists = 0;
    await using it = await underTest(() => listOf("10", [item("a", "5", `uid-${lists++}`)]));
    const uids: unknown[] = [];
    it.store.subscribe(({ type, object }) => uids.push(`${type} ${object.metadata.uid}`));
    (await it.watchCount(1)).write(line("ERROR", statusOf(410, "Expired")));
    await it.troubleCount(1);
    it.clock.pass(1000);
    await it.watchCount(2);
    assert.deepEqual(uids.slice(-2), ["deleted uid-0", "added uid-1"]);
  });

  test("reads events that come in pieces, also within a character", async () => {
    await using it = await underTest(() => listOf("10", []));
    const watch = await it.watchCount(1);
    const bytes = Buffer.from(line("ADDED", { ...item("a", "11"), data: { text: "grüße" } }) + line("ADDED", item("b", "12")));
    for (const byte of bytes) watch.write(Uint8Array.of(byte));
    await until(() => it.changes.length === 2, "the events");
    assert.equal((it.store.get("agents/a") as { data?: { text: string } } | undefined)?.data?.text, "grüße");
  });

  test("ends with what a listener throws", async () => {
    const server = await ScriptedServer.start(() => listOf("10", [item("a", "1")]));
    const clock = new ManualClock();
    const store = new Store<ClusterObject>();
    store.subscribe(() => {
      throw new TypeError("a mistake");
    });
    const client = server.client(clock);
    const reflector = new Reflector({ client, type: configMaps, sink: store, clock, random: () => 0 });
    await assert.rejects(reflector.run(new AbortController().signal), TypeError);
    await client.close();
    await server[Symbol.asyncDispose]();
  });
});
