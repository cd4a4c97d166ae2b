import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  afterProgrammed,
  beginProgress,
  type ConvergeTiming,
  type EgressPlan,
  type EgressProgress,
  nextStep,
  planEgress,
  policyPeers,
  publishTable,
  tableOf,
} from "../../../src/egress/address-table.ts";
import { defaultEgressRules, egressIntents } from "../../../src/egress/intent.ts";
import { afterAnswer, afterFailure, defaultNameTiming, type NameAddresses, unknownName } from "../../../src/egress/name-addresses.ts";
import { cidrOf, type Peer, peerKey } from "../../../src/egress/route.ts";

const timing: ConvergeTiming = { settleMs: 3_000, narrowAfterMs: 10_000 };
const wallAtZero = 1_800_000_000_000;

const resolved = (...addresses: string[]): NameAddresses =>
  afterAnswer(
    unknownName,
    addresses.map((address) => ({ address, ttl: 60 })),
    0,
    {},
    defaultNameTiming,
  );

const planOf = (entries: readonly string[], names: Readonly<Record<string, NameAddresses>>, now = 0, limit?: number): EgressPlan =>
  planEgress(
    egressIntents(entries, "agents", defaultEgressRules),
    { name: (name) => names[name], service: () => undefined, slices: () => [] },
    now,
    limit,
  );

const peer = (address: string, port = 443): Peer => ({ kind: "range", cidr: cidrOf(address), port });

/** One look of a reconciler at one component: the table first, then the policy. */
const look = (progress: EgressProgress, plan: EgressPlan, now: number): { progress: EgressProgress; policy: readonly string[] } => {
  const published = publishTable(progress, plan, now, wallAtZero + now, timing);
  const peers = policyPeers(published, plan, now);
  const programmed = afterProgrammed(published, peers, now);
  return {
    progress: publishTable(programmed, plan, now, wallAtZero + now, timing),
    policy: peers.map((one) => (one.kind === "range" ? one.cidr : one.namespace)),
  };
};

const table = ({ published }: EgressProgress): Readonly<Record<string, readonly string[]>> | null =>
  published === null ? null : tableOf(published);

describe("what entries come to", () => {
  it("a name is dialled at its addresses on each effective port, and an address at itself", () => {
    const plan = planOf(["api.example.com", "1.1.1.1:53", "1.2.0.0/16:99"], { "api.example.com": resolved("8.8.8.8") });
    assert.deepEqual(tableOf(plan.entries.flatMap(({ routes }) => routes)), {
      "api.example.com:80": ["8.8.8.8"],
      "api.example.com:443": ["8.8.8.8"],
      "1.1.1.1:53": ["1.1.1.1"],
      "1.2.0.0/16:99": ["1.2.0.0/16"],
    });
  });

  const closed: Record<string, { name: NameAddresses | undefined; reason: string; message: RegExp; pending?: boolean }> = {
    "a name that nobody looked up is pending": { name: undefined, reason: "NotResolved", message: /not been looked up/, pending: true },
    "a name without an address is closed": { name: resolved(), reason: "NotResolved", message: /has no address/ },
    "a name at a refused address is closed, with why": { name: resolved("127.0.0.1"), reason: "AddressRefused", message: /loopback/ },
    "a name that could not be looked up is closed, with why": {
      name: afterFailure(unknownName, "SERVFAIL", 0, defaultNameTiming),
      reason: "NotResolved",
      message: /SERVFAIL/,
    },
  };
  for (const [what, { name, reason, message, pending = false }] of Object.entries(closed)) {
    it(what, () => {
      const [entry] = planOf(["a.test:443"], name === undefined ? {} : { "a.test": name }).entries;
      assert.equal(entry?.closed?.reason, reason);
      assert.match(entry?.closed?.message ?? "", message);
      assert.equal(entry?.pending, pending);
      assert.deepEqual(entry?.routes, []);
    });
  }

  const caveats: Record<string, { name: NameAddresses; reason: string; message: RegExp }> = {
    "an address that is refused is left out, and said": {
      name: resolved("127.0.0.1", "8.8.8.8"),
      reason: "AddressRefused",
      message: /127\.0\.0\.1/,
    },
    "what is beyond the limit of a name is left out, and said": {
      name: { ...resolved("8.8.8.8"), leftOut: 7 },
      reason: "AddressLimit",
      message: /7 addresses more/,
    },
    "a name service that is away is said": {
      name: afterFailure(resolved("8.8.8.8"), "SERVFAIL", 1, defaultNameTiming),
      reason: "NotResolved",
      message: /SERVFAIL/,
    },
  };
  for (const [what, { name, reason, message }] of Object.entries(caveats)) {
    it(what, () => {
      const [entry] = planOf(["a.test:443"], { "a.test": name }).entries;
      assert.deepEqual(
        entry?.routes.map(({ address }) => address),
        ["8.8.8.8"],
      );
      assert.equal(entry?.closed, null);
      assert.equal(entry?.caveat?.reason, reason);
      assert.match(entry?.caveat?.message ?? "", message);
    });
  }

  it("an entry that would exceed the limit is closed, and the others stay open", () => {
    const names = { "many.test": resolved("8.8.8.1", "8.8.8.2", "8.8.8.3"), "one.test": resolved("8.8.4.4") };
    const plan = planOf(["many.test:443", "one.test:443"], names, 0, 2);
    assert.deepEqual(
      plan.entries.map(({ closed: why, routes }) => [why?.reason ?? null, routes.length]),
      [
        ["AddressLimit", 0],
        [null, 1],
      ],
    );
  });
});

describe("the policy and the table", () => {
  it("a new address goes into the policy first, and into the table once that has settled", () => {
    const before = planOf(["a.test:443"], { "a.test": resolved("8.8.8.1") });
    let { progress } = look(beginProgress([], 0, timing), before, 0);
    assert.equal(table(progress), null, "the first table waits for the policy");
    assert.equal(nextStep(progress, before, 0, timing), 3_000);
    ({ progress } = look(progress, before, 3_000));
    assert.deepEqual(table(progress), { "a.test:443": ["8.8.8.1"] });
    assert.equal(progress.version, wallAtZero + 3_000);

    const after = planOf(["a.test:443"], { "a.test": resolved("8.8.8.1", "8.8.8.2") });
    const widened = look(progress, after, 20_000);
    assert.deepEqual(widened.policy, ["8.8.8.1/32", "8.8.8.2/32"]);
    assert.deepEqual(table(widened.progress), { "a.test:443": ["8.8.8.1"] });
    assert.equal(widened.progress.version, progress.version, "the same table has the same version");
    const settled = look(widened.progress, after, 23_000);
    assert.deepEqual(table(settled.progress), { "a.test:443": ["8.8.8.1", "8.8.8.2"] });
    assert.ok(settled.progress.version > progress.version);
  });

  it("an address that goes leaves the table first, and the policy a while later", () => {
    const both = planOf(["a.test:443"], { "a.test": resolved("8.8.8.1", "8.8.8.2") });
    let { progress } = look(look(beginProgress([], 0, timing), both, 0).progress, both, 3_000);
    const one = planOf(["a.test:443"], { "a.test": resolved("8.8.8.2") });
    const narrowed = look(progress, one, 20_000);
    progress = narrowed.progress;
    assert.deepEqual(table(progress), { "a.test:443": ["8.8.8.2"] });
    assert.deepEqual(narrowed.policy, ["8.8.8.1/32", "8.8.8.2/32"]);
    assert.equal(nextStep(progress, one, 20_000, timing), 30_000);
    assert.deepEqual(look(progress, one, 29_999).policy, ["8.8.8.1/32", "8.8.8.2/32"]);
    assert.deepEqual(look(progress, one, 30_000).policy, ["8.8.8.2/32"]);
  });

  it("nothing granted is an empty table at once, and a policy of nothing", () => {
    const plan = planOf([], {});
    const { progress, policy } = look(beginProgress([], 0, timing), plan, 0);
    assert.deepEqual(table(progress), {});
    assert.deepEqual(policy, []);
    assert.equal(nextStep(progress, plan, 0, timing), Number.POSITIVE_INFINITY);
  });

  it("a name that does not resolve keeps nothing from the others", () => {
    const plan = planOf(["gone.test:443", "a.test:443"], { "gone.test": resolved(), "a.test": resolved("8.8.8.1") });
    const { progress } = look(look(beginProgress([], 0, timing), plan, 0).progress, plan, 3_000);
    assert.deepEqual(table(progress), { "a.test:443": ["8.8.8.1"] });
  });

  it("the first table waits for a name that nobody has looked up yet", () => {
    const plan = planOf(["new.test:443", "a.test:443"], { "a.test": resolved("8.8.8.1") });
    const { progress } = look(look(beginProgress([], 0, timing), plan, 0).progress, plan, 3_000);
    assert.equal(table(progress), null);
  });

  it("an operator that starts anew goes on from the policy it finds", () => {
    const found = [peer("8.8.8.1"), peer("8.8.8.9")];
    const pending = planOf(["a.test:443"], {});
    const first = look(beginProgress(found, 0, timing), pending, 0);
    assert.deepEqual(first.policy, ["8.8.8.1/32", "8.8.8.9/32"], "what hosts may still dial stays");
    assert.deepEqual(look(first.progress, pending, 60_000).policy, ["8.8.8.1/32", "8.8.8.9/32"], "however long it takes to look up");
    const plan = planOf(["a.test:443"], { "a.test": resolved("8.8.8.1") });
    const second = look(first.progress, plan, 61_000);
    assert.deepEqual(table(second.progress), { "a.test:443": ["8.8.8.1"] }, "what was in force already need not settle");
    assert.deepEqual(second.policy, ["8.8.8.1/32", "8.8.8.9/32"]);
    assert.deepEqual(look(second.progress, plan, 71_000).policy, ["8.8.8.1/32"]);
  });

  it("an address that comes back while it leaves stays open", () => {
    const a = planOf(["a.test:443"], { "a.test": resolved("8.8.8.1") });
    const b = planOf(["a.test:443"], { "a.test": resolved("8.8.8.2") });
    let progress = look(look(beginProgress([], 0, timing), a, 0).progress, a, 3_000).progress;
    progress = look(progress, b, 4_000).progress;
    progress = look(progress, b, 7_000).progress;
    progress = look(progress, a, 8_000).progress;
    assert.deepEqual(table(progress), { "a.test:443": ["8.8.8.1"] });
    assert.deepEqual(look(progress, a, 14_500).policy, ["8.8.8.1/32", "8.8.8.2/32"]);
    assert.deepEqual(look(progress, a, 40_000).policy, ["8.8.8.1/32"]);
  });

  it("versions grow, whatever the time of day does", () => {
    const a = planOf(["a.test:443"], { "a.test": resolved("8.8.8.1") });
    const found = beginProgress([peer("8.8.8.1"), peer("8.8.8.2")], 0, timing);
    const first = publishTable(found, a, 0, wallAtZero, timing);
    const b = planOf(["a.test:443"], { "a.test": resolved("8.8.8.2") });
    const second = publishTable(first, b, 1, wallAtZero - 1_000_000, timing);
    assert.deepEqual([first.version, second.version], [wallAtZero, wallAtZero + 1]);
  });

  it("whatever answers come when, the table never leads where the policy has not let out for the time to settle", () => {
    const addresses = fc.uniqueArray(fc.constantFrom("8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4"), { maxLength: 4 });
    const steps = fc.array(fc.record({ after: fc.integer({ min: 0, max: 15_000 }), addresses }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(steps, (all) => {
        let now = 0;
        let progress = beginProgress([], 0, timing);
        /** By an account of its own: since when each peer has been in every policy. */
        let since = new Map<string, number>();
        for (const step of all) {
          now += step.after;
          const plan = planOf(["a.test:443"], { "a.test": resolved(...step.addresses) });
          const looked = publishTable(progress, plan, now, wallAtZero + now, timing);
          for (const { peer: one } of looked.published ?? []) {
            const open = since.get(peerKey(one));
            assert.ok(open !== undefined && open + timing.settleMs <= now, `${peerKey(one)} is dialled too soon`);
          }
          const policy = policyPeers(looked, plan, now);
          since = new Map(policy.map((one) => [peerKey(one), since.get(peerKey(one)) ?? now]));
          for (const { peer: one } of looked.published ?? []) assert.ok(since.has(peerKey(one)), `${peerKey(one)} is dialled and dropped`);
          progress = afterProgrammed(looked, policy, now);
        }
      }),
      { numRuns: 300 },
    );
  });
});
