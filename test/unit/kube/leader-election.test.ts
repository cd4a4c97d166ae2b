import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Transient } from "../../../src/api/errors.ts";
import { ApiError } from "../../../src/kube/api-error.ts";
import { type ElectionEvent, type Leadership, LeadershipLost, runAsLeader } from "../../../src/kube/leader-election.ts";
import type { ClusterObject, ObjectKey, ResourceType } from "../../../src/kube/object.ts";
import { ManualClock } from "./manual-clock.ts";
import { until } from "./scripted-server.ts";

interface LeaseObject extends ClusterObject {
  readonly spec: {
    readonly holderIdentity: string;
    readonly leaseTransitions: number;
    readonly acquireTime: string;
    readonly renewTime: string;
  };
}

/** One lease, kept as an API server keeps it: written only by who saw its last version. */
class LeaseServer {
  lease: LeaseObject | undefined;
  writes = 0;
  /** What happens to a request before it is served. */
  before: (method: string) => Promise<void> | void = () => {};
  #version = 0;

  async get<T extends ClusterObject>(_: ResourceType, key: ObjectKey, signal?: AbortSignal): Promise<T> {
    await this.#admit("get", signal);
    if (!this.lease) throw new ApiError("NotFound", `${key.name} is not there`, { status: 404 });
    return this.lease as unknown as T;
  }

  async create<T extends ClusterObject>(_: ResourceType, object: T, signal?: AbortSignal): Promise<T> {
    await this.#admit("create", signal);
    if (this.lease) throw new ApiError("AlreadyExists", "it is there", { status: 409 });
    return this.#keep(object);
  }

  async replace<T extends ClusterObject>(_: ResourceType, object: T, signal?: AbortSignal): Promise<T> {
    await this.#admit("replace", signal);
    if (!this.lease) throw new ApiError("NotFound", "it is not there", { status: 404 });
    if (this.lease.metadata.resourceVersion !== object.metadata.resourceVersion)
      throw new ApiError("Conflict", "it changed", { status: 409 });
    return this.#keep(object);
  }

  /** Somebody else writes it. */
  take(holderIdentity: string): void {
    this.#keep({ ...(this.lease as LeaseObject), spec: { ...(this.lease as LeaseObject).spec, holderIdentity } });
  }

  #keep<T extends ClusterObject>(object: T): T {
    this.writes++;
    this.lease = {
      ...object,
      metadata: { ...object.metadata, uid: "lease", resourceVersion: String(++this.#version) },
    } as unknown as LeaseObject;
    return this.lease as unknown as T;
  }

  async #admit(method: string, signal?: AbortSignal): Promise<void> {
    await Promise.race([
      this.before(method),
      new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason), { once: true })),
    ]);
    signal?.throwIfAborted();
  }
}

/** One candidate; while it leads, `leadership` is its term. */
const candidate = (server: LeaseServer, clock: ManualClock, identity: string) => {
  const events: ElectionEvent[] = [];
  const stop = new AbortController();
  const made: { leadership?: Leadership; working: boolean } = { working: false };
  const finish = Promise.withResolvers<void>();
  const result = runAsLeader(
    {
      client: server,
      lease: { namespace: "ambit-system", name: "operator" },
      identity,
      clock,
      random: () => 0,
      onEvent: (event) => events.push(event),
    },
    async (leadership) => {
      made.leadership = leadership;
      made.working = true;
      await Promise.race([finish.promise, new Promise((resolve) => leadership.signal.addEventListener("abort", resolve))]);
      made.working = false;
    },
    stop.signal,
  );
  const leads = () => until(() => made.leadership !== undefined, `${identity} to lead`);
  return { events, stop, made, finish, result, leads };
};

/** Lets time pass in steps, with what is due done between them. */
const pass = async (clock: ManualClock, ms: number, stepMs = 500): Promise<void> => {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.pass(Math.min(stepMs, ms - passed));
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
};

const down = () => {
  throw new Transient("ApiUnreachable", "no route");
};

describe("leader election", () => {
  test("makes the lease, renews it and gives it back when it is stopped", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    const a = candidate(server, clock, "a");
    await a.leads();
    assert.equal(server.lease?.spec.holderIdentity, "a");
    assert.equal(server.lease?.spec.acquireTime, "2026-01-01T00:00:00.000000Z");
    await pass(clock, 20_000);
    assert.equal(server.writes, 11, "once at first, then every two seconds");
    assert.equal(server.lease?.spec.acquireTime, "2026-01-01T00:00:00.000000Z");
    assert.equal(server.lease?.spec.renewTime, "2026-01-01T00:00:20.000000Z");
    assert.ok(!a.made.leadership?.signal.aborted);
    a.stop.abort();
    assert.equal(await a.result, "ended");
    assert.equal(a.made.working, false);
    assert.equal(server.lease?.spec.holderIdentity, "");
    assert.equal(clock.timers, 0);
  });

  test("hands over at once when the leader stops", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    const a = candidate(server, clock, "a");
    await a.leads();
    const b = candidate(server, clock, "b");
    await pass(clock, 30_000);
    assert.equal(b.made.leadership, undefined);
    assert.deepEqual(b.events, [{ type: "following", leader: "a" }]);
    a.finish.resolve();
    assert.equal(await a.result, "ended");
    await pass(clock, 2500);
    await b.leads();
    assert.equal(server.lease?.spec.leaseTransitions, 1);
    b.stop.abort();
    await b.result;
  });

  test("waits out a leader that vanished, by its own clock, however wrong the lease's times are", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    await server.create(
      {} as ResourceType,
      {
        metadata: { name: "operator", namespace: "ambit-system" },
        spec: { holderIdentity: "gone", leaseDurationSeconds: 15, renewTime: "2001-01-01T00:00:00.000000Z", leaseTransitions: 4 },
      } as unknown as LeaseObject,
    );
    const b = candidate(server, clock, "b");
    await pass(clock, 14_900, 100);
    assert.equal(b.made.leadership, undefined);
    await pass(clock, 2500);
    await b.leads();
    assert.equal(server.lease?.spec.leaseTransitions, 5);
    b.stop.abort();
    await b.result;
  });

  const losses: Record<string, (server: LeaseServer) => void> = {
    "the API server can't be reached": (server) => {
      server.before = down;
    },
    "renewals hang": (server) => {
      server.before = () => new Promise(() => {});
    },
    "renewals are forbidden": (server) => {
      server.before = () => {
        throw new ApiError("Forbidden", "no", { status: 403 });
      };
    },
  };
  for (const [why, happens] of Object.entries(losses)) {
    test(`stops leading within ten seconds of its last renewal, before anybody else may begin, when ${why}`, async () => {
      const [server, clock] = [new LeaseServer(), new ManualClock()];
      const a = candidate(server, clock, "a");
      await a.leads();
      await pass(clock, 4000);
      happens(server);
      await pass(clock, 9900, 100);
      assert.equal(a.made.leadership?.signal.aborted, false);
      a.made.leadership?.assertHeld();
      await pass(clock, 100, 100);
      assert.ok(a.made.leadership?.signal.reason instanceof LeadershipLost);
      assert.throws(() => a.made.leadership?.assertHeld(), LeadershipLost);
      assert.equal(await a.result, "lost");
      assert.equal(a.made.working, false);
      assert.equal(server.lease?.spec.holderIdentity, "a", "a lost lease is not given back: it is not ours to write");
    });
  }

  test("goes on leading through trouble that passes in time", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    const a = candidate(server, clock, "a");
    await a.leads();
    server.before = () => new Promise(() => {});
    await pass(clock, 6000);
    server.before = () => {};
    await pass(clock, 30_000);
    assert.equal(a.made.leadership?.signal.aborted, false);
    assert.ok(a.events.some(({ type }) => type === "trouble"));
    a.stop.abort();
    assert.equal(await a.result, "ended");
  });

  test("goes on when its renewal was written and the answer lost", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    const a = candidate(server, clock, "a");
    await a.leads();
    server.take("a");
    await pass(clock, 6000);
    assert.equal(a.made.leadership?.signal.aborted, false);
    a.stop.abort();
    assert.equal(await a.result, "ended");
  });

  test("stops at once when somebody else has the lease", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    const a = candidate(server, clock, "a");
    await a.leads();
    server.take("b");
    await pass(clock, 2000);
    assert.ok(a.made.leadership?.signal.aborted);
    assert.equal(await a.result, "lost");
    assert.equal(server.lease?.spec.holderIdentity, "b");
  });

  const sleeps: Record<string, (clock: ManualClock) => void> = {
    "its timers did not run in time": (clock) => {
      const elapsed = clock.elapsed.bind(clock);
      clock.elapsed = () => elapsed() + 10_000;
    },
    "wall time alone went on, as when a machine slept": (clock) => {
      clock.wallOffset += 10_000;
    },
  };
  for (const [why, sleep] of Object.entries(sleeps)) {
    test(`lets nothing be written when ${why}`, async () => {
      const [server, clock] = [new LeaseServer(), new ManualClock()];
      const a = candidate(server, clock, "a");
      await a.leads();
      const { assertHeld } = a.made.leadership as Leadership;
      assertHeld();
      sleep(clock);
      assert.throws(assertHeld, LeadershipLost);
      assert.equal(await a.result, "lost");
    });
  }

  test("rejects with what the leader's work rejects with, and gives the lease back", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    const a = candidate(server, clock, "a");
    await a.leads();
    a.finish.reject(new TypeError("a mistake"));
    await assert.rejects(a.result, TypeError);
    assert.equal(server.lease?.spec.holderIdentity, "");
  });

  test("ends without having led when it is stopped while it follows", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    const a = candidate(server, clock, "a");
    await a.leads();
    const b = candidate(server, clock, "b");
    await until(() => b.events.length > 0, "b to follow");
    b.stop.abort();
    assert.equal(await b.result, "ended");
    assert.equal(b.made.leadership, undefined);
    a.stop.abort();
    await a.result;
  });

  test("lets one of two begin when both see a free lease", async () => {
    const [server, clock] = [new LeaseServer(), new ManualClock()];
    const both = [candidate(server, clock, "a"), candidate(server, clock, "b")];
    await pass(clock, 5000);
    assert.equal(both.filter(({ made }) => made.leadership !== undefined).length, 1);
    for (const { stop, result } of both) {
      stop.abort();
      await result;
    }
  });
});
