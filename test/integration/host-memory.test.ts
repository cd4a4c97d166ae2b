import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fixture, type HostUnderTest, startHost } from "./host-under-test.ts";

describe("an instance's memory, which is given to later instances, tells them nothing", () => {
  let host: HostUnderTest;
  before(async () => {
    host = await startHost({ component: fixture("wat/scratchpad.wasm") });
  });
  after(() => host?.stop());

  const call = async (name: string, args: object): Promise<number> => {
    const { body } = await host.call({ interface: null, function: name }, args);
    assert.equal(body.outcome, "ok", JSON.stringify(body));
    return body.structured?.result;
  };

  test("what a call wrote is gone, wherever it wrote it", async () => {
    for (const at of [0, 16, 40_000, 65_532]) {
      await call("poke", { at, value: 0xdeadbeef });
      for (let later = 0; later < 4; later++) assert.equal(await call("peek", { at }), 0);
    }
  });

  test("what the component starts with is there each time, even if a call overwrote it", async () => {
    await call("poke", { at: 8, value: 1 });
    for (let later = 0; later < 4; later++) assert.equal(await call("peek", { at: 8 }), 42);
  });

  test("its variables start anew as well", async () => {
    for (let later = 0; later < 4; later++) assert.equal(await call("calls", {}), 1);
  });

  test("a memory that grew is not given again", async () => {
    for (let later = 0; later < 4; later++) assert.equal(await call("grow", {}), 1);
    assert.equal(await call("peek", { at: 16 }), 0);
  });

  test("nor is one whose instance trapped", async () => {
    for (let later = 0; later < 4; later++) {
      const { body } = await host.call({ interface: null, function: "spoil" }, {});
      assert.equal(body.outcome, "failed");
      assert.equal(await call("peek", { at: 16 }), 0);
    }
  });

  test("calls at once don't meet in one memory", async () => {
    const values = Array.from({ length: 16 }, (_, at) => at * 4 + 1024);
    const seen = await Promise.all(values.map(async (at) => [await call("poke", { at, value: at }), await call("peek", { at })]));
    assert.deepEqual(
      seen.map(([, peeked]) => peeked),
      values.map(() => 0),
    );
  });
});
