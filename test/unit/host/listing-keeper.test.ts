import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it, mock } from "node:test";
import { ListingKeeper } from "../../../src/host/listing-keeper.ts";
import type { LiftedPage } from "../../../src/host/untyped-calls.ts";
import type { PoolReply } from "../../../src/host/worker-pool.ts";

const second = 1000;
const minute = 60 * second;

const took = { queueMs: 0, runMs: 0 };
const page = (more: Partial<LiftedPage> = {}): PoolReply => ({
  reply: { kind: "page", page: { tools: [{ name: "a", inputSchema: '{"type":"object"}' }], ...more } },
  ...took,
});
const unlisted: PoolReply = { reply: { kind: "unlisted", why: "it says no" }, ...took };

describe("a host's list of tools is asked for", () => {
  let lists: number;
  let answer: () => PoolReply;
  let now: number;
  let keeper: ListingKeeper;

  beforeEach(() => {
    mock.timers.enable({ apis: ["setTimeout"] });
    lists = 0;
    now = 0;
    answer = () => page();
    keeper = new ListingKeeper({
      list: async () => {
        lists++;
        return answer();
      },
      now: () => now,
    });
    keeper.refresh();
  });
  afterEach(() => {
    keeper.close();
    mock.timers.reset();
  });

  /** Time goes on by so much, in small steps, and whatever is due then is done. */
  const pass = async (ms: number, step = second): Promise<void> => {
    for (let left = ms; left > 0; left -= step) {
      now += Math.min(step, left);
      mock.timers.tick(Math.min(step, left));
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
  };
  const asked = async (ms: number, step?: number): Promise<number> => {
    const before = lists;
    await pass(ms, step);
    return lists - before;
  };

  for (const [what, ttlMs, everyMs] of [
    ["once a minute where the component does not say how long it is good", undefined, minute],
    ["no more often than every 10 s", 0, 10 * second],
    ["as often as the component says", 30_000, 30 * second],
    ["once in 5 minutes at least", 86_400_000, 5 * minute],
  ] as const) {
    it(`again ${what}`, async () => {
      answer = () => page({ ttlMs });
      await pass(1);
      assert.equal(lists, 1);
      assert.equal(await asked(everyMs - second), 0);
      assert.equal(await asked(second), 1);
      assert.equal(await asked(3 * everyMs, second), 3);
    });
  }

  it("at once where it may have changed, and a second after the one before at the soonest", async () => {
    await pass(1);
    await pass(5 * second);
    keeper.refresh();
    assert.equal(await asked(1), 1);
    for (let time = 0; time < 100; time++) keeper.refresh();
    assert.equal(await asked(999, 999), 0);
    assert.equal(await asked(1, 1), 1);
  });

  it("after 1 s, then 2, up to a minute, where it can't be had, and what was listed before stays", async () => {
    await pass(1);
    const { digest } = JSON.parse(await keeper.answer(null, 0)) as { digest: string };
    answer = () => unlisted;
    await pass(minute);
    assert.equal(lists, 2);
    for (const [waitMs, due] of [
      [second, 1],
      [2 * second, 1],
      [4 * second, 1],
      [8 * second, 1],
      [16 * second, 1],
      [32 * second, 1],
      [minute, 1],
      [minute, 1],
    ] as const)
      assert.equal(await asked(waitMs), due, `after ${waitMs} ms`);
    const told = JSON.parse(await keeper.answer(null, 0)) as { digest: string; fault: { code: string; message: string } };
    assert.equal(told.digest, digest);
    assert.deepEqual(told.fault, { code: "ListingFailed", message: "the component could not list its tools: it says no" });
  });

  it("in vain for at most 15 minutes before nothing is called by it any more", async () => {
    await pass(1);
    const { listing } = JSON.parse(await keeper.answer(null, 0)) as { listing: { tools: { name: string }[] } };
    assert.equal(listing.tools[0]?.name, "a");
    answer = () => unlisted;
    const refusal = (): string => {
      try {
        keeper.callable("a", "v1:another");
        return "";
      } catch (thrown) {
        return (thrown as { code: string }).code;
      }
    };
    await pass(15 * minute);
    assert.equal(refusal(), "DefinitionChanged");
    await pass(second);
    assert.equal(refusal(), "ListingOutdated");
    answer = () => page();
    await pass(minute);
    assert.equal(refusal(), "DefinitionChanged");
  });

  it("without taking half of it: a second page that fails leaves the list before in force", async () => {
    await pass(1);
    const before = await keeper.answer(null, 0);
    let pages = 0;
    answer = () => (pages++ % 2 === 0 ? page({ tools: [], nextCursor: `${pages}` }) : unlisted);
    await pass(minute);
    const { digest, fault } = JSON.parse(await keeper.answer(null, 0)) as { digest: string; fault: { code: string } };
    assert.equal(digest, (JSON.parse(before) as { digest: string }).digest);
    assert.equal(fault.code, "ListingFailed");
  });

  for (const [what, reply, code] of [
    ["it is there", page(), "DefinitionChanged"],
    ["it is known why there is none", unlisted, "NotListed"],
    ["5 s have passed", null, "NotListed"],
  ] as const) {
    it(`at its start, and who calls meanwhile waits until ${what}`, async () => {
      const { promise, resolve } = Promise.withResolvers<PoolReply>();
      const slow = new ListingKeeper({ list: () => promise, now: () => now });
      slow.refresh();
      let came: string | null = null;
      const call = async (): Promise<void> => {
        await slow.begun();
        try {
          slow.callable("a", "v1:another");
        } catch (thrown) {
          came = (thrown as { code: string }).code;
        }
      };
      const called = call();
      await pass(4 * second);
      assert.equal(came, null);
      if (reply === null) await pass(second);
      else resolve(reply);
      await called;
      assert.equal(came, code);
      slow.close();
    });
  }
});
