import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesWithin, callsWithin, windowMs } from "../../../src/grants/limits.ts";

const windows: Record<string, number> = { "1s": 1000, "90s": 90_000, "1m": 60_000, "744h": 2_678_400_000, "31d": 2_678_400_000 };
for (const [text, ms] of Object.entries(windows)) test(`${text} is ${ms} ms`, () => assert.equal(windowMs(text), ms));

for (const text of ["", "0s", "1", "1w", "1.5h", "-1s", " 1s", "1s ", "32d", "745h", "constructor"]) {
  test(`${JSON.stringify(text)} is no window`, () => assert.throws(() => windowMs(text), { code: "WindowInvalid" }));
}

const budgets: Record<string, number> = { "1": 1, "4096": 4096, "1Ki": 1024, "3Mi": 3_145_728, "2Gi": 2_147_483_648 };
for (const [bytes, max] of Object.entries(budgets)) {
  test(`${bytes} are ${max} bytes`, () => assert.deepEqual(bytesWithin({ bytes, window: "1h" }), { max, windowMs: 3_600_000 }));
}

for (const bytes of ["", "0", "1k", "1Ti", "1e3", "-1", "0x10"]) {
  test(`${JSON.stringify(bytes)} is no budget`, () => assert.throws(() => bytesWithin({ bytes, window: "1h" }), { code: "BytesInvalid" }));
}

test("a rate is a count within a window", () => assert.deepEqual(callsWithin({ count: 60, window: "1m" }), { max: 60, windowMs: 60_000 }));
