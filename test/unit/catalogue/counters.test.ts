import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Charge, ProcessCounters } from "../../../src/catalogue/counters.ts";
import { shareAmong } from "../../../src/catalogue/replicas.ts";
import { bucketMs } from "../../../src/grants/sliding-window.ts";

const minute = 60_000;
const charge = (amount: number, max: number, key = "k", windowMs = minute): Charge => ({
  key,
  limit: { max, windowMs },
  needs: amount,
  adds: amount,
});

test("in no window is more used than the limit, and nothing is kept back for longer than a bucket beyond it", () => {
  const step = fc.record({ wait: fc.integer({ min: 0, max: 40_000 }), amount: fc.integer({ min: 0, max: 7 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 20 }), (steps, max) => {
      let now = 1_000_000;
      const counters = new ProcessCounters(() => now);
      const used: { readonly at: number; readonly amount: number }[] = [];
      const usedSince = (start: number) => used.reduce((sum, { at, amount }) => (at > start ? sum + amount : sum), 0);
      for (const { wait, amount } of steps) {
        now += wait;
        const { taken } = counters.take([charge(amount, max)]);
        if (taken) used.push({ at: now, amount });
        assert.ok(usedSince(now - minute) <= max);
        if (!taken) assert.ok(usedSince(now - minute - bucketMs(minute)) + amount > max);
      }
    }),
    { numRuns: 300 },
  );
});

test("a refusal says when there is room: then, and not a millisecond before", () => {
  let now = 5_000_123;
  const counters = new ProcessCounters(() => now);
  for (let times = 0; times < 3; times++) {
    counters.take([charge(1, 3)]);
    now += 7_000;
  }
  const refused = counters.take([charge(1, 3)]);
  assert.ok(!refused.taken);
  now += refused.retryAfterMs - 1;
  assert.equal(counters.take([charge(1, 3)]).taken, false);
  now += 1;
  assert.equal(counters.take([charge(1, 3)]).taken, true);
});

test("where one limit has no room nothing is taken of the others", () => {
  const counters = new ProcessCounters(() => 0);
  const refused = counters.take([charge(1, 1, "a"), charge(1, 0, "b"), charge(1, 1, "c")]);
  assert.deepEqual([refused.taken, !refused.taken && refused.index], [false, 1]);
  assert.equal(counters.take([charge(1, 1, "a"), charge(1, 1, "c")]).taken, true);
});

test("what is given back is free again", () => {
  const counters = new ProcessCounters(() => 0);
  const taken = counters.take([charge(5, 5)]);
  assert.ok(taken.taken);
  counters.giveBack(taken.receipt);
  assert.equal(counters.take([charge(5, 5)]).taken, true);
});

test("replicas' shares are together the limit, and those of small limits fall to different replicas", () => {
  const owners = new Set<number>();
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 1, max: 7 }), fc.string(), (max, of, key) => {
      const admitted = Array.from({ length: of }, (_, index) => {
        const counters = new ProcessCounters(
          () => 0,
          () => ({ index, of }),
        );
        let count = 0;
        while (counters.take([charge(1, max, key)]).taken) count++;
        if (max === 1 && count === 1) owners.add(index);
        return count;
      });
      assert.equal(
        admitted.reduce((sum, count) => sum + count, 0),
        max,
      );
      assert.ok(Math.max(...admitted) - Math.min(...admitted) <= 1);
    }),
    { numRuns: 300 },
  );
  assert.ok(owners.size > 1);
});

test("what has left its window takes no memory, and a process that counts all it can admits no others", () => {
  let now = 0;
  const counters = new ProcessCounters(() => now, undefined, 2_000);
  const key = (index: number) => charge(1, 1, `k${index}`);
  for (let index = 0; index < 2_000; index++) assert.equal(counters.take([key(index)]).taken, true);
  assert.throws(() => counters.take([key(2_000)]), { code: "CountersUnavailable" });
  assert.equal(counters.take([key(0)]).taken, false, "what is counted goes on being counted");
  now += 2 * minute;
  for (let index = 2_000; index < 4_000; index++) assert.equal(counters.take([key(index)]).taken, true);
});

const pod = (name: string, ready: boolean, isEnding = false) => ({
  metadata: {
    name,
    namespace: "ambit-system",
    uid: name,
    resourceVersion: "1",
    ...(isEnding && { deletionTimestamp: "2026-11-30T12:00:00Z" }),
  },
  status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
});

test("a replica shares with those that are ready, in the order of their names, and counts itself", () => {
  const pods = [pod("c", true), pod("a", true, true), pod("b", false), pod("d", false)];
  assert.deepEqual(shareAmong(pods, "c"), { index: 1, of: 2 });
  assert.deepEqual(shareAmong(pods, "b"), { index: 1, of: 3 });
  assert.deepEqual(shareAmong([], "a"), { index: 0, of: 1 });
});
