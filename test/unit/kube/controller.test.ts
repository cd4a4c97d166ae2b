import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Stalled, Transient, Waiting } from "../../../src/api/errors.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { Controller, type ControllerEvent } from "../../../src/kube/controller.ts";
import type { ClusterObject } from "../../../src/kube/object.ts";
import { done, type Outcome, type Reconciler } from "../../../src/kube/reconciler.ts";
import { Store } from "../../../src/kube/store.ts";
import { ManualClock } from "./manual-clock.ts";
import { RecordedMetrics } from "./recorded-metrics.ts";
import { until } from "./scripted-server.ts";

const underTest = (reconcile: Reconciler, workers = 2) => {
  const clock = new ManualClock();
  const metrics = new RecordedMetrics();
  const events: ControllerEvent[] = [];
  const end = new AbortController();
  const controller = new Controller({
    name: "workload",
    reconcile,
    workers,
    clock,
    random: () => 0,
    metrics,
    onEvent: (event) => events.push(event),
    timing: { reconcileMs: 60_000, backOff: { firstMs: 100, longestMs: 10_000, perSecond: 10, burst: 100 } },
  });
  const ended = controller.run(end.signal);
  return {
    clock,
    metrics,
    events,
    controller,
    eventCount: (count: number) => until(() => events.length >= count, `event ${count}`),
    end: async () => {
      end.abort();
      await ended;
    },
    async [Symbol.asyncDispose]() {
      end.abort();
      await ended;
    },
  };
};

const object = (name: string, version = "1", labels: Record<string, string> = {}): ClusterObject => ({
  metadata: { name, namespace: "agents", uid: name, resourceVersion: version, labels },
});

describe("a controller", () => {
  const outcomes: Record<string, { comes: () => Outcome; againIn: number | undefined; result: string; failures: number }> = {
    "done, it is left alone": { comes: () => done, againIn: undefined, result: "success", failures: 0 },
    "waiting, it is looked at after that time": {
      comes: () => ({ kind: "waiting", retryAfterMs: 5000, on: "pods" }),
      againIn: 5000,
      result: "requeue_after",
      failures: 0,
    },
    "Waiting thrown, it is looked at after that time": {
      comes: () => {
        throw new Waiting("PodsPending", "pods start", 5000);
      },
      againIn: 5000,
      result: "requeue_after",
      failures: 0,
    },
    "stalled, it is left alone": {
      comes: () => ({ kind: "stalled", reason: "ImageNotFound", message: "push it" }),
      againIn: undefined,
      result: "success",
      failures: 0,
    },
    "Stalled thrown, it is left alone": {
      comes: () => {
        throw new Stalled("ImageNotFound", "push it");
      },
      againIn: undefined,
      result: "success",
      failures: 0,
    },
    "any other error, it backs off": {
      comes: () => {
        throw new Transient("ApiUnreachable", "no route");
      },
      againIn: 50,
      result: "error",
      failures: 1,
    },
  };
  for (const [what, { comes, againIn, result, failures }] of Object.entries(outcomes)) {
    test(`looks at a key, and when what comes is ${what}`, async () => {
      const keys: unknown[] = [];
      await using it = underTest(async (key) => {
        keys.push(key);
        return comes();
      });
      it.controller.enqueue("agents/github");
      await it.eventCount(1);
      assert.deepEqual(keys, [{ namespace: "agents", name: "github" }]);
      assert.equal(it.clock.nextIn, againIn);
      assert.equal(it.metrics.value("controller_runtime_reconcile_total", { controller: "workload", result }), 1);
      assert.equal(it.metrics.value("controller_runtime_reconcile_errors_total", { controller: "workload" }) ?? 0, failures);
      if (againIn !== undefined) {
        it.clock.pass(againIn);
        await it.eventCount(2);
      }
    });
  }

  test("begins with the shortest back-off again after a success", async () => {
    let looks = 0;
    await using it = underTest(async () => {
      if (++looks !== 3) throw new Transient("ApiUnreachable", "no route");
      return done;
    });
    it.controller.enqueue("a");
    const waits: (number | undefined)[] = [];
    for (const look of [1, 2, 3, 4]) {
      await it.eventCount(look);
      waits.push(it.clock.nextIn);
      it.clock.pass(it.clock.nextIn ?? 0);
      if (look === 3) it.controller.enqueue("a");
    }
    assert.deepEqual(waits, [50, 100, undefined, 50]);
  });

  test("calls a conflict by its name", async () => {
    await using it = underTest(async () => {
      throw new ApiError("Conflict", "it changed", { status: 409 });
    });
    it.controller.enqueue("a");
    await it.eventCount(1);
    assert.equal(it.events[0]?.type, "conflict");
  });

  test("looks at every object of a store, and at what other objects affect, before and after their change", async () => {
    const keys: string[] = [];
    await using it = underTest(async ({ namespace, name }) => {
      keys.push(`${namespace}/${name}`);
      return done;
    });
    const workloads = new Store<ClusterObject>();
    workloads.apply(object("github"));
    it.controller.owns(workloads);
    await it.eventCount(1);
    const grants = new Store<ClusterObject>();
    it.controller.watches(grants, ({ metadata }) => [`agents/${metadata.labels?.workload}`]);
    grants.apply(object("g", "1", { workload: "github" }));
    await it.eventCount(2);
    grants.apply(object("g", "2", { workload: "fetch" }));
    await it.eventCount(4);
    grants.remove(object("g", "3", { workload: "fetch" }));
    await it.eventCount(5);
    assert.deepEqual(keys, ["agents/github", "agents/github", "agents/github", "agents/fetch", "agents/fetch"]);
  });

  test("works on several keys at once, never twice on one", async () => {
    const running: string[] = [];
    const gates: (() => void)[] = [];
    await using it = underTest(async ({ name }) => {
      assert.ok(!running.includes(name));
      running.push(name);
      await new Promise<void>((resolve) => gates.push(resolve));
      running.splice(running.indexOf(name), 1);
      return done;
    });
    for (const key of ["a", "b", "a"]) it.controller.enqueue(key);
    await until(() => running.length === 2, "two at once");
    it.controller.enqueue("a");
    for (const open of gates.splice(0)) open();
    await until(() => gates.length === 1, "the second look");
    assert.deepEqual(running, ["a"]);
    for (const open of gates) open();
    await it.eventCount(3);
  });

  test("tells a reconcile that takes too long to end, and comes back", async () => {
    let looks = 0;
    await using it = underTest(async (_, signal) => {
      if (looks++ > 0) return done;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      signal.throwIfAborted();
      return done;
    });
    it.controller.enqueue("a");
    await until(() => looks === 1, "the first look");
    it.clock.pass(60_000);
    await it.eventCount(1);
    const [event] = it.events;
    assert.ok(event?.type === "failed" && event.error instanceof Transient && event.error.code === "ReconcileTimeout");
    it.clock.pass(50);
    await it.eventCount(2);
  });

  test("when stopped, aborts what runs, waits for it, and starts nothing more", async () => {
    let ended = false;
    let looks = 0;
    const it = underTest(async (_, signal) => {
      looks++;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      await new Promise((resolve) => setImmediate(resolve));
      ended = true;
      throw signal.reason;
    }, 1);
    it.controller.enqueue("a");
    it.controller.enqueue("b");
    await until(() => looks === 1, "the first look");
    await it.end();
    assert.ok(ended);
    assert.equal(looks, 1);
    assert.deepEqual(it.events, [], "what was aborted did not fail");
    assert.equal(it.clock.timers, 0);
  });
});
