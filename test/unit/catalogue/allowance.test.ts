import assert from "node:assert/strict";
import { test } from "node:test";
import type { ToolGrantSpec } from "../../../src/api/generated/toolgrant.ts";
import { Allowances } from "../../../src/catalogue/allowance.ts";
import { type Charge, ProcessCounters } from "../../../src/catalogue/counters.ts";
import type { Offer } from "../../../src/catalogue/offers.ts";
import { liveGrant } from "./world.ts";

const offerOf = (name: string, limits: Partial<Omit<ToolGrantSpec, "declaration">>): Offer => {
  const grant = liveGrant(name, limits);
  return { id: `agents/${name}`, declaration: grant.spec.declaration, grant };
};
const once = { rateLimit: { count: 1, window: "1m" } };
const denials = { max: 2, perSession: null, windowMs: 60_000 };

const allowances = () => new Allowances(new ProcessCounters(() => 0), denials);
const by = (subject: string, session: string | null = null) => ({ subject, session });
const codeOf = async (given: Allowances, subject: string, offer: Offer, session: string | null = null): Promise<string | null> =>
  (await given.take(by(subject, session), offer, 10)).refusal?.code ?? null;

test("a limit is one caller's at one tool, and nobody else's", async () => {
  const given = allowances();
  assert.equal(await codeOf(given, "ada", offerOf("a", once)), null);
  assert.equal(await codeOf(given, "ada", offerOf("a", once)), "RateExceeded");
  assert.equal(await codeOf(given, "bob", offerOf("a", once)), null);
  assert.equal(await codeOf(given, "ada", offerOf("b", once)), null);
});

test("refusals at one tool count for that tool alone", async () => {
  const given = allowances();
  for (let times = 0; times < denials.max; times++) await given.deny(by("ada"), offerOf("a", {}));
  assert.equal(await codeOf(given, "ada", offerOf("a", {})), "TooManyDenials");
  assert.equal(await codeOf(given, "bob", offerOf("a", {})), null);
  assert.equal(await codeOf(given, "ada", offerOf("b", {})), null);
});

test("one session may use its part of the refusals, and all sessions together no more than the subject has", async () => {
  const given = new Allowances(new ProcessCounters(() => 0), { max: 5, perSession: 2, windowMs: 60_000 });
  const offer = offerOf("a", {});
  const denied = async (session: string, times: number) => {
    for (let count = 0; count < times; count++) await given.deny(by("ada", session), offer);
  };
  await denied("s1", 50);
  assert.equal(await codeOf(given, "ada", offer, "s1"), "TooManyDenials");
  assert.equal(await codeOf(given, "ada", offer, "s2"), null, "what s1 went on with took nothing of the others");
  await denied("s2", 2);
  await denied("s3", 1);
  for (const session of ["s4", null]) assert.equal(await codeOf(given, "ada", offer, session), "TooManyDenials");
});

test("a grant that is edited keeps what was used of the same window, and a refusal takes nothing of other limits", async () => {
  const given = allowances();
  const limited = (count: number, bytes: string) =>
    offerOf("a", { rateLimit: { count, window: "1m" }, maxEgressBytes: { bytes, window: "1h" } });
  assert.equal(await codeOf(given, "ada", limited(1, "20")), null);
  assert.equal(await codeOf(given, "ada", limited(1, "20")), "RateExceeded");
  assert.equal(await codeOf(given, "ada", limited(2, "20")), null, "the refused call used no bytes");
  assert.equal(await codeOf(given, "ada", limited(3, "20")), "EgressBudgetSpent");
});

test("nothing is counted of a tool without limits where refusals aren't either", async () => {
  const refusing = { take: () => assert.fail("it was asked"), giveBack: () => undefined, close: () => undefined };
  const given = new Allowances(refusing, null);
  assert.deepEqual(await given.take(by("ada"), offerOf("a", {}), 10), { refusal: null, receipt: [] });
  await given.deny(by("ada"), offerOf("a", {}));
});

test("a store learns no names, and one call's counters are in one slot of a cluster", async () => {
  const seen: Charge[] = [];
  const counters = new ProcessCounters(() => 0);
  const taking = {
    take: (charges: readonly Charge[]) => {
      seen.push(...charges);
      return counters.take(charges);
    },
    giveBack: () => undefined,
    close: () => undefined,
  };
  const limits = { ...once, maxEgressBytes: { bytes: "1Mi", window: "1h" } };
  await new Allowances(taking, denials).take(by("system:serviceaccount:agents:triage", "s"), offerOf("secret-tool", limits), 10);
  const keys = seen.map(({ key }) => key);
  assert.equal(keys.length, 3);
  const [slot] = keys.map((key) => /^ambit:(\{[0-9a-f]{32}\}):/.exec(key)?.[1]);
  assert.ok(slot !== undefined && keys.every((key) => key.startsWith(`ambit:${slot}:`)));
  assert.equal(new Set(keys).size, 3);
});
