import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LiftingGuard, TooMuchLifted } from "../../../src/host/lifting-budget.ts";

const tooMuch = (error: unknown) => error instanceof TooMuchLifted && error.code === "ResultTooLarge";

describe("the lifting guard", () => {
  it("copies until its limit is spent, and then nothing", () => {
    const guard = new LiftingGuard(300);
    const buffer = new ArrayBuffer(1000);
    assert.equal(guard.slice(buffer, 0, 200).byteLength, 200);
    assert.throws(() => guard.slice(buffer, 0, 200), tooMuch);
  });

  it("charges for aliases of one buffer each time", () => {
    const guard = new LiftingGuard(10_000);
    const buffer = new ArrayBuffer(1000);
    const copyAll = () => {
      for (let i = 0; i < 100; i++) guard.slice(buffer, 0, 1000);
    };
    assert.throws(copyAll, tooMuch);
  });

  it("charges a list before its first element is read", () => {
    const guard = new LiftingGuard(1000);
    assert.equal(guard.elements(100), 0);
    assert.throws(() => guard.elements(0xffff_ffff), tooMuch);
  });

  it("charges for text and starts anew on a refill", () => {
    const guard = new LiftingGuard(100);
    const decoder = new guard.TextDecoder();
    assert.equal(decoder.decode(Buffer.from("a".repeat(80))), "a".repeat(80));
    assert.throws(() => decoder.decode(Buffer.from("a".repeat(80))), tooMuch);
    guard.refill();
    assert.equal(decoder.decode(Buffer.from("b")), "b");
  });

  it("decodes as the canonical ABI does: a byte order mark stays, broken text is an error", () => {
    const decoder = new new LiftingGuard(1000).TextDecoder();
    assert.equal(decoder.decode(Uint8Array.from([0xef, 0xbb, 0xbf, 0x61])), "\ufeffa");
    assert.throws(() => decoder.decode(Uint8Array.from([0xff])), TypeError);
  });

  it("takes no length that is not a number as free of charge", () => {
    assert.throws(() => new LiftingGuard(1000).elements(Number.NaN), tooMuch);
  });
});
