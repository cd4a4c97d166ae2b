import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { pooledRandom } from "../../../src/catalogue/pooled-random.ts";

test("random bytes are those of the source, each given once and not kept", () => {
  const made: Uint8Array[] = [];
  const random = pooledRandom((bytes) => {
    const some = randomBytes(bytes);
    made.push(some);
    return some;
  });
  const given = Array.from({ length: 1000 }, () => Buffer.from(random(16)).toString("hex"));
  assert.equal(new Set(given).size, 1000);
  assert.ok(made.length <= 5, String(made.length));
  const source = Buffer.concat(made).toString("hex");
  assert.ok(given.every((one) => source.includes(one)));
});

test("more than is asked for at once comes from the source itself", () => {
  assert.equal(pooledRandom((bytes) => randomBytes(bytes))(10_000).length, 10_000);
});
