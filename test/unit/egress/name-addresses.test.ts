import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  afterAnswer,
  afterFailure,
  dialledAddresses,
  type NameAddresses,
  type NameTiming,
  nextDrained,
  unknownName,
} from "../../../src/egress/name-addresses.ts";

const timing: NameTiming = { ttlFloorMs: 5_000, ttlCeilingMs: 60_000, retryMs: 1_000, staleMs: 100_000, drainMs: 30_000, addressLimit: 4 };

const answer = (name: NameAddresses, now: number, addresses: readonly string[], ttl = 10): NameAddresses =>
  afterAnswer(
    name,
    addresses.map((address) => ({ address, ttl })),
    now,
    {},
    timing,
  );

describe("the addresses of a name", () => {
  it("are the union of what a rotating answer gave lately, the last answer first", () => {
    let name = answer(unknownName, 0, ["1.1.1.1", "1.1.1.2"]);
    name = answer(name, 10_000, ["1.1.1.2", "1.1.1.3"]);
    name = answer(name, 20_000, ["1.1.1.4"]);
    assert.deepEqual(dialledAddresses(name, 20_000), ["1.1.1.4", "1.1.1.2", "1.1.1.3", "1.1.1.1"]);
    assert.equal(nextDrained(name, 20_000), 40_000);
    assert.deepEqual(dialledAddresses(name, 40_000), ["1.1.1.4", "1.1.1.2", "1.1.1.3"]);
    assert.deepEqual(dialledAddresses(name, 50_000), ["1.1.1.4"]);
    assert.equal(nextDrained(name, 50_000), Number.POSITIVE_INFINITY);
  });

  it("drain no more when an answer has them again", () => {
    let name = answer(unknownName, 0, ["1.1.1.1"]);
    name = answer(name, 10_000, ["1.1.1.2"]);
    name = answer(name, 20_000, ["1.1.1.1"]);
    assert.deepEqual(dialledAddresses(name, 45_000), ["1.1.1.1", "1.1.1.2"]);
    assert.deepEqual(dialledAddresses(name, 50_000), ["1.1.1.1"]);
  });

  it("drain when the name has none any more", () => {
    const name = answer(answer(unknownName, 0, ["1.1.1.1"]), 10_000, []);
    assert.deepEqual(dialledAddresses(name, 39_999), ["1.1.1.1"]);
    assert.deepEqual(dialledAddresses(name, 40_000), []);
  });

  it("are screened, and what is refused is said", () => {
    const name = answer(unknownName, 0, ["169.254.169.254", "1.1.1.1", "::ffff:127.0.0.1", "nonsense"]);
    assert.deepEqual(dialledAddresses(name, 0), ["1.1.1.1"]);
    assert.deepEqual(name.refused.map(({ address }) => address).sort(), ["127.0.0.1", "169.254.169.254", "nonsense"]);
  });

  it("are one for IPv4 written as IPv6, and IPv4 comes first", () => {
    const name = answer(unknownName, 0, ["2606:4700:0:0::1111", "::ffff:8.8.8.8", "8.8.8.8"]);
    assert.deepEqual(dialledAddresses(name, 0), ["8.8.8.8", "2606:4700::1111"]);
  });

  it("are bounded, what drains giving way first", () => {
    let name = answer(unknownName, 0, ["1.1.1.1", "1.1.1.2"]);
    name = answer(name, 1, ["1.1.1.3", "1.1.1.4", "1.1.1.5"]);
    assert.equal(dialledAddresses(name, 1).length, 4);
    name = answer(name, 2, ["1.1.1.3", "1.1.1.4", "1.1.1.5", "1.1.1.6", "1.1.1.7"]);
    assert.deepEqual(dialledAddresses(name, 2), ["1.1.1.3", "1.1.1.4", "1.1.1.5", "1.1.1.6"]);
    assert.equal(name.leftOut, 1);
  });

  const looks: Record<string, { ttl: number; ms: number }> = {
    "after its TTL": { ttl: 20, ms: 20_000 },
    "no sooner than the floor": { ttl: 0, ms: 5_000 },
    "no later than the ceiling": { ttl: 86_400, ms: 60_000 },
  };
  for (const [when, { ttl, ms }] of Object.entries(looks)) {
    it(`are looked up again ${when}`, () => assert.equal(answer(unknownName, 100, ["1.1.1.1"], ttl).lookAgainAt, 100 + ms));
  }

  it("stay while look-ups fail, until they are stale, and then drain", () => {
    let name = answer(unknownName, 0, ["1.1.1.1"]);
    name = afterFailure(name, "timeout", 90_000, timing);
    assert.deepEqual(dialledAddresses(name, 90_000), ["1.1.1.1"]);
    name = afterFailure(name, "timeout", 101_000, timing);
    assert.deepEqual(dialledAddresses(name, 130_999), ["1.1.1.1"]);
    name = afterFailure(name, "timeout", 120_000, timing);
    assert.deepEqual(dialledAddresses(name, 131_000), []);
  });

  it("are asked for ever less often while look-ups fail", () => {
    let name = unknownName;
    const pauses: number[] = [];
    for (let count = 0; count < 9; count++) {
      name = afterFailure(name, "timeout", 0, timing);
      pauses.push(name.lookAgainAt);
    }
    assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    assert.equal(answer(name, 0, ["1.1.1.1"]).failure, null);
  });
});
