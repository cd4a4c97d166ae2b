import assert from "node:assert/strict";
import { test } from "node:test";
import { GarbageGauge } from "../../../src/host/garbage-gauge.ts";

const mebibyte = 1024 * 1024;

/** A process whose memory is what the test says, and how often it was asked for. */
const gauged = () => {
  const system = { resident: 100 * mebibyte, asked: 0 };
  const gauge = new GarbageGauge(() => {
    system.asked++;
    return system.resident;
  });
  return { gauge, system };
};

test("nothing is due while little has ended, and the system is not asked", () => {
  const { gauge, system } = gauged();
  gauge.add(95 * mebibyte);
  system.resident = 900 * mebibyte;
  assert.equal(gauge.isDue(), false);
  assert.equal(system.asked, 1);
});

test("what the system has backed is due", () => {
  const { gauge, system } = gauged();
  gauge.add(96 * mebibyte);
  system.resident += 32 * mebibyte;
  assert.equal(gauge.isDue(), true);
});

test("what it has not may wait, is looked at now and then, and is due at last", () => {
  const { gauge, system } = gauged();
  let ended = 0;
  while (!gauge.isDue()) {
    gauge.add(mebibyte);
    ended++;
  }
  assert.equal(ended, 256);
  assert.ok(system.asked < 10, String(system.asked));
});

test("after a collection it begins anew, from what the process then has", () => {
  const { gauge, system } = gauged();
  gauge.add(300 * mebibyte);
  system.resident += 200 * mebibyte;
  gauge.collected();
  assert.equal(gauge.isEmpty, true);
  gauge.add(100 * mebibyte);
  assert.equal(gauge.isDue(), false);
  system.resident += 33 * mebibyte;
  gauge.add(40 * mebibyte);
  assert.equal(gauge.isDue(), true);
});
