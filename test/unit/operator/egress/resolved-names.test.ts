import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { defaultNameTiming, type NameAnswer } from "../../../../src/egress/name-addresses.ts";
import { ResolvedNames } from "../../../../src/operator/egress/resolved-names.ts";
import { ManualClock } from "../../kube/manual-clock.ts";

/** A name service that answers when the test says so. */
const setUp = (concurrency = 4) => {
  const clock = new ManualClock();
  const waiting: { readonly name: string; readonly answer: (answer: NameAnswer | Error) => Promise<void> }[] = [];
  const changed: string[] = [];
  const names = new ResolvedNames({
    ask: (name) =>
      new Promise((resolve, reject) => {
        waiting.push({
          name,
          answer: async (answer) => {
            if (answer instanceof Error) reject(answer);
            else resolve(answer);
            await new Promise((seen) => setImmediate(seen));
          },
        });
      }),
    policy: {},
    timing: defaultNameTiming,
    clock,
    random: () => 0,
    concurrency,
    changed: (user) => void changed.push(user),
  });
  const next = () => {
    const one = waiting.shift();
    assert.ok(one, "a name is being asked for");
    return one;
  };
  return { clock, waiting, changed, names, next };
};

const at = (address: string, ttl = 60): NameAnswer => [{ address, ttl }];

describe("the one resolver", () => {
  it("asks once for a name that many use, and tells all of them", async () => {
    const { names, waiting, changed, next } = setUp();
    names.use("a", ["x.test"]);
    names.use("b", ["x.test"]);
    assert.equal(waiting.length, 1);
    await next().answer(at("8.8.8.8"));
    assert.deepEqual(changed, ["a", "b"]);
    assert.deepEqual(names.get("x.test")?.current, ["8.8.8.8"]);
  });

  it("asks again when the answer has run out, and tells only what is new", async () => {
    const { names, clock, waiting, changed, next } = setUp();
    names.use("a", ["x.test"]);
    await next().answer(at("8.8.8.8"));
    clock.pass(59_999);
    assert.equal(waiting.length, 0);
    clock.pass(1);
    await next().answer(at("8.8.8.8"));
    assert.deepEqual(changed, ["a"]);
    clock.pass(60_000);
    await next().answer(at("8.8.4.4"));
    assert.deepEqual(changed, ["a", "a"]);
  });

  it("tells a failure once, and keeps what it knew", async () => {
    const { names, clock, changed, next } = setUp();
    names.use("a", ["x.test"]);
    await next().answer(at("8.8.8.8"));
    clock.pass(60_000);
    await next().answer(new Error("away"));
    assert.deepEqual(names.get("x.test")?.current, ["8.8.8.8"]);
    clock.pass(2_000);
    await next().answer(new Error("away"));
    assert.deepEqual(changed, ["a", "a"]);
  });

  it("forgets a name that nobody uses, also while it is being asked for", async () => {
    const { names, clock, waiting, changed, next } = setUp();
    names.use("a", ["x.test", "y.test"]);
    names.use("b", ["y.test"]);
    names.use("a", []);
    assert.equal(names.get("x.test"), undefined);
    assert.equal(names.size, 1);
    await next().answer(at("8.8.8.8"));
    await next().answer(at("8.8.8.8"));
    assert.deepEqual(changed, ["b"]);
    names.use("b", []);
    clock.pass(1_000_000);
    assert.equal(waiting.length, 0);
    assert.equal(clock.timers, 0);
  });

  it("asks for a few names at once", async () => {
    const { names, waiting, next } = setUp(2);
    names.use("a", ["x.test", "y.test", "z.test"]);
    assert.deepEqual(
      waiting.map(({ name }) => name),
      ["x.test", "y.test"],
    );
    await next().answer([]);
    assert.deepEqual(
      waiting.map(({ name }) => name),
      ["y.test", "z.test"],
    );
  });

  it("asks no more once it is closed", async () => {
    const { names, clock, waiting, changed, next } = setUp();
    names.use("a", ["x.test"]);
    names.close();
    await next().answer(at("8.8.8.8"));
    names.use("b", ["y.test"]);
    clock.pass(1_000_000);
    assert.deepEqual([waiting.length, changed.length], [0, 0]);
  });
});
