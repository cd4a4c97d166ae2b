import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultWatchLimits } from "../../../src/catalogue/watch.ts";
import { openStream } from "./open-stream.ts";
import { serving } from "./serving.ts";
import { liveGrant } from "./world.ts";

type Served = Awaited<ReturnType<typeof serving>>;

const watchLimits = { ...defaultWatchLimits, settleMs: 5, heartbeatMs: 20, connectionsPerCaller: 2 };

const watching = async (served: Served, query = "watch") => {
  const stream = await openStream({ port: served.port, path: `/v1/declarations?${query}` });
  const etags = () =>
    [...stream.heard().matchAll(/^event: declarations\ndata: (.*)$/gm)].map(([, text = ""]): string => JSON.parse(text).etag);
  return { ...stream, etags, [Symbol.dispose]: () => stream[Symbol.dispose]() };
};

test("a watcher hears the ETag of its list at once and after each change of its bytes", async () => {
  await using served = await serving({}, { watchLimits });
  using watch = await watching(served, "watch&format=anthropic");
  const list = () => served.ask("/v1/declarations?format=anthropic");
  await watch.until(() => watch.etags().length === 1);
  assert.equal(watch.etags()[0], (await list()).headers.etag);
  served.state.apply([{ kind: "grant", grant: liveGrant("others", { subjects: [{ kind: "User", name: "alice" }] }) }]);
  served.state.apply([{ kind: "grant", grant: liveGrant("another", { declaration: { name: "another" } }) }]);
  await watch.until(() => watch.etags().length === 2);
  assert.equal(watch.etags()[1], (await list()).headers.etag);
});

test("a list that stays the same is told of to nobody", async () => {
  await using served = await serving({}, { watchLimits });
  using watch = await watching(served);
  await watch.until(() => watch.etags().length === 1);
  served.state.apply([{ kind: "grant", grant: liveGrant() }]);
  await watch.until(() => watch.heard().split(": still here").length > 3);
  assert.equal(watch.etags().length, 1);
});

test("a token that no longer holds ends its watches", async () => {
  await using served = await serving({}, { watchLimits });
  using watch = await watching(served);
  assert.equal(watch.status, 200);
  served.callers.delete("secret");
  await watch.until(watch.isEnded);
});

test("a caller has no more watches than its share", async () => {
  await using served = await serving({}, { watchLimits });
  using first = await watching(served);
  using second = await watching(served);
  using third = await watching(served);
  assert.deepEqual([first.status, second.status, third.status], [200, 200, 429]);
});

test("closing the catalogue ends its watches", async () => {
  await using served = await serving({}, { watchLimits });
  using watch = await watching(served);
  await served.catalogue.close();
  await watch.until(watch.isEnded);
});
