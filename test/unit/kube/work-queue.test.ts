import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { WorkQueue } from "../../../src/kube/work-queue.ts";
import { ManualClock } from "./manual-clock.ts";
import { RecordedMetrics } from "./recorded-metrics.ts";

const queueAt = (clock: ManualClock, metrics = new RecordedMetrics()) =>
  new WorkQueue({
    name: "workloads",
    clock,
    random: () => 1,
    metrics,
    backOff: { firstMs: 100, longestMs: 1000, perSecond: 10, burst: 100 },
  });

/** Every key that a worker would get now. */
const drain = async (queue: WorkQueue): Promise<string[]> => {
  const got: string[] = [];
  while (queue.length > 0) got.push((await queue.get()) ?? "");
  return got;
};

describe("a work queue", () => {
  test("hands out keys in the order in which they were added, each once", async () => {
    const queue = queueAt(new ManualClock());
    for (const key of ["a", "b", "a", "c", "b"]) queue.add(key);
    assert.deepEqual(await drain(queue), ["a", "b", "c"]);
  });

  test("hands a key out again after it is done, if it was added meanwhile", async () => {
    const queue = queueAt(new ManualClock());
    queue.add("a");
    assert.equal(await queue.get(), "a");
    queue.add("a");
    queue.add("a");
    assert.equal(queue.length, 0, "not while it is being worked on");
    queue.done("a");
    assert.deepEqual(await drain(queue), ["a"]);
    queue.done("a");
    assert.equal(queue.length, 0);
  });

  test("gives a key to a worker that already waits", async () => {
    const queue = queueAt(new ManualClock());
    const first = queue.get();
    const second = queue.get();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    assert.deepEqual(await Promise.all([first, second]), ["a", "b"]);
  });

  test("adds a key later, at the earliest of several times", async () => {
    const clock = new ManualClock();
    const queue = queueAt(clock);
    queue.addAfter("a", 500);
    queue.addAfter("a", 200);
    queue.addAfter("a", 900);
    clock.pass(199);
    assert.equal(queue.length, 0);
    clock.pass(1);
    assert.deepEqual(await drain(queue), ["a"]);
    queue.done("a");
    clock.pass(10_000);
    assert.equal(queue.length, 0, "the later wishes are gone");
  });

  test("adds a key at once for a time that has passed", async () => {
    const clock = new ManualClock();
    const queue = queueAt(clock);
    queue.addAfter("a", 500);
    queue.addAfter("a", 0);
    assert.deepEqual(await drain(queue), ["a"]);
    queue.done("a");
    clock.pass(1000);
    assert.equal(queue.length, 0);
  });

  test("doubles a key's back-off up to a limit, until it is forgotten", () => {
    const clock = new ManualClock();
    const queue = queueAt(clock);
    const waits: (number | undefined)[] = [];
    for (let failure = 0; failure < 6; failure++) {
      queue.addRateLimited("a");
      waits.push(clock.nextIn);
      clock.pass(clock.nextIn ?? 0);
      queue.get();
      queue.done("a");
    }
    assert.deepEqual(waits, [100, 200, 400, 800, 1000, 1000]);
    assert.equal(queue.failuresOf("a"), 6);
    queue.forget("a");
    queue.addRateLimited("a");
    assert.equal(clock.nextIn, 100);
  });

  test("keeps keys' back-offs apart", () => {
    const clock = new ManualClock();
    const queue = queueAt(clock);
    queue.addRateLimited("a");
    clock.pass(100);
    queue.addRateLimited("a");
    queue.addRateLimited("b");
    assert.equal(clock.nextIn, 100);
    assert.equal(queue.failuresOf("b"), 1);
  });

  test("limits how many keys come back after failures all together", () => {
    const clock = new ManualClock();
    const queue = queueAt(clock);
    for (let key = 0; key < 150; key++) queue.addRateLimited(`key-${key}`);
    clock.pass(1000);
    assert.equal(queue.length, 110, "a hundred at once, then ten a second");
    clock.pass(4000);
    assert.equal(queue.length, 150);
  });

  test("when closed, ends waiting workers, drops what waits and takes nothing more", async () => {
    const clock = new ManualClock();
    const queue = queueAt(clock);
    const waiting = queue.get();
    queue.addAfter("later", 10);
    queue.close();
    queue.add("a");
    queue.addAfter("b", 5);
    clock.pass(100);
    assert.equal(await waiting, undefined);
    assert.equal(await queue.get(), undefined);
    assert.equal(clock.timers, 0);
  });

  test("tells its depth, its adds, and what takes long", async () => {
    const clock = new ManualClock();
    const metrics = new RecordedMetrics();
    const queue = queueAt(clock, metrics);
    const labels = { name: "workloads" };
    queue.add("a");
    queue.add("b");
    assert.equal(metrics.value("workqueue_depth", labels), 2);
    await queue.get();
    clock.pass(3000);
    assert.equal(metrics.value("workqueue_depth", labels), 1);
    assert.equal(metrics.value("workqueue_adds_total", labels), 2);
    assert.equal(metrics.value("workqueue_unfinished_work_seconds", labels), 3);
    assert.equal(metrics.value("workqueue_longest_running_processor_seconds", labels), 3);
    queue.done("a");
    queue.addRateLimited("a");
    assert.equal(metrics.value("workqueue_work_duration_seconds", labels), 1);
    assert.equal(metrics.value("workqueue_queue_duration_seconds", labels), 1);
    assert.equal(metrics.value("workqueue_retries_total", labels), 1);
    assert.equal(metrics.value("workqueue_unfinished_work_seconds", labels), 0);
  });

  test("never gives a key to two workers, and never loses one, whatever the order of events", async () => {
    const action = fc.oneof(
      fc.record({ kind: fc.constant("add" as const), key: fc.constantFrom("a", "b", "c") }),
      fc.record({ kind: fc.constant("later" as const), key: fc.constantFrom("a", "b", "c") }),
      fc.record({ kind: fc.constant("fail" as const), key: fc.constantFrom("a", "b", "c") }),
      fc.constant({ kind: "take" as const }),
      fc.constant({ kind: "finish" as const }),
      fc.constant({ kind: "pass" as const }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
        const clock = new ManualClock();
        const queue = queueAt(clock);
        const working: string[] = [];
        /** Keys added since they were last handed out. */
        const owed = new Set<string>();
        const take = async () => {
          const key = (await queue.get()) ?? "";
          assert.ok(!working.includes(key), `${key} went to two workers`);
          working.push(key);
          owed.delete(key);
        };
        for (const step of actions) {
          if (step.kind === "add") queue.add(step.key);
          if (step.kind === "later") queue.addAfter(step.key, 50);
          if (step.kind === "fail") queue.addRateLimited(step.key);
          if ("key" in step) owed.add(step.key);
          if (step.kind === "take" && queue.length > 0) await take();
          if (step.kind === "finish") queue.done(working.shift() ?? "none");
          if (step.kind === "pass") clock.pass(40);
        }
        while (owed.size > 0) {
          for (const key of working.splice(0)) queue.done(key);
          clock.pass(100_000);
          assert.ok(queue.length > 0, `lost ${[...owed].join()}`);
          while (queue.length > 0) await take();
        }
      }),
      { numRuns: 200 },
    );
  });
});
