import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Charge, Taken } from "../../src/catalogue/counters.ts";
import { StoreCounters } from "../../src/catalogue/store-counters.ts";
import { freePorts } from "../cluster/free-ports.ts";
import { startStore, whyNoStore } from "../support/counter-store.ts";
import { serving } from "../unit/catalogue/serving.ts";
import { liveGrant } from "../unit/catalogue/world.ts";

const hour = 3_600_000;

const charge = (change: Partial<Charge> & { readonly max: number; readonly windowMs?: number }): Charge => {
  const { max, windowMs = hour, ...rest } = change;
  return { key: "ambit:{a}:rate", needs: 1, adds: 1, ...rest, limit: { max, windowMs } };
};

/** A store and as many replicas as asked for, each with its own connections. */
const world = async (replicas = 1, access: { readonly password?: string; readonly username?: string } = {}) => {
  const { username, ...asked } = access;
  const store = await startStore({ ...asked, ...(username === undefined ? {} : { user: username }) });
  const faults: unknown[] = [];
  const settings = { url: store.url, ...access };
  const counters = Array.from({ length: replicas }, () => new StoreCounters(settings, (fault) => faults.push(fault), 2_000));
  for (const one of counters) await connected(one);
  return {
    store,
    counters,
    faults,
    [Symbol.asyncDispose]: async () => {
      for (const one of counters) one.close();
      await store.stop();
    },
  };
};

/** Tries until it is answered: connecting goes on by itself. */
const connected = async (counters: StoreCounters): Promise<void> => {
  const until = performance.now() + 30_000;
  for (;;) {
    try {
      await counters.take([charge({ key: "ambit:{connected}", max: 1, needs: 0, adds: 0 })]);
      return;
    } catch (thrown) {
      if (performance.now() > until) throw thrown;
      await wait(20);
    }
  }
};

const admitted = (taken: readonly Taken[]): number => taken.filter((one) => one.taken).length;

describe("counters in a store", { skip: whyNoStore() ?? false }, () => {
  test("of calls that come at once through several replicas exactly the limit is admitted", async () => {
    await using at = await world(3);
    const all = Array.from({ length: 90 }, (_, index) => at.counters[index % 3]?.take([charge({ max: 37 })]));
    assert.equal(admitted((await Promise.all(all)).filter((taken) => taken !== undefined)), 37);
  });

  test("two catalogues hold a caller to one limit", async () => {
    await using at = await world(2);
    const grant = liveGrant("github-list-issues", { rateLimit: { count: 25, window: "1h" } });
    const catalogues = await Promise.all(at.counters.map((counters) => serving({ counters })));
    for (const { state } of catalogues) state.apply([{ kind: "grant", grant }]);
    const body = '{"name":"list_issues","arguments":{"repo":"octo/app"}}';
    const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => catalogues[index % 2]?.post("/v1/calls", body)));
    assert.equal(answers.filter((answer) => answer?.text.includes('"outcome":"ok"')).length, 25);
    assert.equal(answers.filter((answer) => answer?.headers["retry-after"] !== undefined).length, 35);
    for (const catalogue of catalogues) await catalogue[Symbol.asyncDispose]();
  });

  test("bytes fit up to the limit and not one more", async () => {
    await using at = await world();
    const [counters] = at.counters;
    assert.ok(counters);
    const bytes = (count: number) => counters.take([charge({ max: 100, needs: count, adds: count })]);
    assert.equal((await bytes(60)).taken, true);
    assert.equal((await bytes(41)).taken, false);
    assert.equal((await bytes(40)).taken, true);
    assert.equal((await bytes(1)).taken, false);
  });

  test("where one limit has no room nothing is taken of the others", async () => {
    await using at = await world();
    const [counters] = at.counters;
    assert.ok(counters);
    const full = charge({ key: "ambit:{a}:full", max: 0 });
    const other = charge({ key: "ambit:{a}:other", max: 1 });
    const refused = await counters.take([other, full]);
    assert.deepEqual([refused.taken, !refused.taken && refused.index], [false, 1]);
    assert.equal((await counters.take([other])).taken, true);
  });

  test("what leaves the window is free again, when the refusal said so", async () => {
    await using at = await world();
    const [counters] = at.counters;
    assert.ok(counters);
    const one = charge({ max: 1, windowMs: 1_000 });
    assert.equal((await counters.take([one])).taken, true);
    const refused = await counters.take([one]);
    assert.ok(!refused.taken && refused.retryAfterMs > 0 && refused.retryAfterMs <= 1_017);
    await wait(refused.retryAfterMs);
    assert.equal((await counters.take([one])).taken, true);
  });

  test("what is given back is free again, once", async () => {
    await using at = await world();
    const [counters] = at.counters;
    assert.ok(counters);
    const ten = charge({ max: 10, needs: 10, adds: 10 });
    const taken = await counters.take([ten]);
    assert.ok(taken.taken);
    await counters.giveBack(taken.receipt);
    assert.equal((await counters.take([ten])).taken, true);
    assert.equal((await counters.take([charge({ max: 10 })])).taken, false);
  });

  test("a store that forgot its scripts is told them again", async () => {
    await using at = await world(1);
    const [counters] = at.counters;
    assert.ok(counters);
    const { port } = at.store;
    await at.store.stop();
    await using _again = await startStore({ port });
    await connected(counters);
    assert.equal((await counters.take([charge({ max: 1 })])).taken, true);
    assert.ok(at.faults.length > 0, "that it was away was told");
  });

  test("a store that is away is no permission, and is not waited for", async () => {
    await using at = await world();
    const [counters] = at.counters;
    assert.ok(counters);
    await at.store.stop();
    for (let times = 0; times < 3; times++) {
      await assert.rejects(async () => counters.take([charge({ max: 1 })]), { code: "CountersUnavailable" });
    }
  });

  test("a store that hangs is no permission, and answers again once it goes on", async () => {
    await using at = await world();
    const quick = new StoreCounters(at.store, () => undefined, 200);
    await connected(quick);
    at.store.freeze();
    for (let times = 0; times < 7; times++)
      await assert.rejects(async () => quick.take([charge({ max: 100 })]), { code: "CountersUnavailable" });
    at.store.thaw();
    await connected(quick);
    assert.equal((await quick.take([charge({ max: 100 })])).taken, true);
    quick.close();
  });

  test("a store that went away while a connection to it was being made is found again", async () => {
    const [port = 0] = await freePorts(1);
    const silent = createServer(() => undefined).listen(port, "127.0.0.1");
    await once(silent, "listening");
    const counters = new StoreCounters({ url: `redis://127.0.0.1:${port}` }, () => undefined, 100);
    await once(silent, "connection");
    // The connection stays, as one does that leads nowhere.
    silent.close();
    await using _store = await startStore({ port });
    await connected(counters);
    counters.close();
  });

  test("a store that asks for a password gets it, and counts for nobody without", async () => {
    await using at = await world(1, { password: "s3cret" });
    assert.equal((await at.counters[0]?.take([charge({ max: 1 })]))?.taken, true);
    const stranger = new StoreCounters({ url: at.store.url }, () => undefined, 1_000);
    await assert.rejects(async () => stranger.take([charge({ max: 1 })]), { code: "CountersUnavailable" });
    stranger.close();
  });

  test("a user who may touch nothing but these counters is enough", async () => {
    await using at = await world(1, { username: "ambit", password: "s3cret" });
    assert.equal((await at.counters[0]?.take([charge({ max: 1 })]))?.taken, true);
  });
});
