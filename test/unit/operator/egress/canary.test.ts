import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CanaryDocument } from "../../../../src/api/host.ts";
import { Canary, type CanaryOptions } from "../../../../src/operator/egress/canary.ts";
import { ManualClock } from "../../kube/manual-clock.ts";

const of = { namespace: "agents", workload: "github", component: "api" };
const place = { address: "10.96.0.1", port: 443 };

/** A host that finds in turn what `answers` says, and the last of them from then on. */
const setUp = (answers: readonly boolean[], options: Partial<CanaryOptions> = {}) => {
  const clock = new ManualClock();
  const asked: CanaryDocument[] = [];
  const changed: string[] = [];
  const canary = new Canary({
    place,
    requirement: "report",
    sign: (document) => ({ payload: JSON.stringify(document), signature: "" }),
    clock,
    random: () => 0.5,
    changed: ({ component }) => void changed.push(component),
    ...options,
  });
  const session = {
    boot: async () => ({ boot: "boot-1" }),
    ask: async ({ body }: { readonly body: string }) => {
      asked.push(JSON.parse(JSON.parse(body).payload));
      return { reached: answers[Math.min(asked.length, answers.length) - 1] ?? true, how: "" };
    },
  };
  /** Lets time pass until the check has ended. */
  const check = async (): Promise<unknown> => {
    let ended = false;
    const checking = canary
      .check({ of }, session, new AbortController().signal)
      .catch((thrown: unknown) => thrown)
      .finally(() => {
        ended = true;
      });
    while (!ended) {
      await new Promise((resolve) => setImmediate(resolve));
      if (clock.timers > 0) clock.pass(clock.nextIn ?? 0);
    }
    return checking;
  };
  const again = () => canary.again({ of }, session, new AbortController().signal);
  return { canary, check, again, asked, changed, clock };
};

describe("the canary", () => {
  it("that is out of reach shows that the policy is in force", async () => {
    const { canary, check, asked, changed } = setUp([false]);
    assert.equal(canary.of(of).reason, "NotTried");
    assert.equal(await check(), undefined);
    assert.equal(canary.of(of).status, "True");
    assert.deepEqual(asked, [{ kind: "canary", boot: "boot-1", ...place }]);
    assert.deepEqual(changed, ["api"]);
  });

  it("is tried again while a policy may still be on its way", async () => {
    const { canary, check, asked } = setUp([true, true, false], { requirement: "require" });
    assert.equal(await check(), undefined);
    assert.equal(canary.of(of).status, "True");
    assert.equal(asked.length, 3);
  });

  it("that is reached is told, and the component delivered where only a report is asked for", async () => {
    const { canary, check, asked, changed } = setUp([true]);
    assert.equal(await check(), undefined);
    assert.deepEqual([canary.of(of).status, canary.of(of).reason], ["False", "CanaryReached"]);
    assert.match(canary.of(of).message, /10\.96\.0\.1:443/);
    const first = asked.length;
    assert.equal(await check(), undefined);
    assert.equal(asked.length, first + 1, "the next host need not wait to find out the same");
    assert.deepEqual(changed, ["api"]);
  });

  it("that is reached withholds the component where enforcement is required, until it is not", async () => {
    const answers = [true];
    const { canary, check } = setUp(answers, { requirement: "require" });
    assert.equal(((await check()) as { code?: string }).code, "EgressNotEnforced");
    answers.splice(0, 1, false);
    assert.equal(await check(), undefined);
    assert.equal(canary.of(of).status, "True");
  });

  it("that is not configured leaves open what holds, which is not enough where enforcement is required", async () => {
    const { canary, check, asked } = setUp([false], { place: null });
    assert.equal(await check(), undefined);
    assert.deepEqual([canary.of(of).status, canary.of(of).reason], ["Unknown", "NoCanary"]);
    assert.equal(asked.length, 0);
    const strict = setUp([false], { place: null, requirement: "require" });
    assert.equal(((await strict.check()) as { code?: string }).code, "EgressNotEnforced");
  });

  it("is tried again in a quarter of an hour, by one host of the component", async () => {
    const { canary, check, again, asked, changed, clock } = setUp([false, true]);
    assert.equal(canary.dueInMs(of), Number.POSITIVE_INFINITY, "a host without its component is asked anyway");
    await check();
    const dueIn = canary.dueInMs(of);
    assert.ok(dueIn >= 15 * 60_000 && dueIn <= 16.5 * 60_000);
    clock.pass(dueIn);
    assert.equal(canary.dueInMs(of), 0);
    const trying = again();
    assert.ok(canary.dueInMs(of) > 0, "others of the component are not due meanwhile");
    while (canary.of(of).status === "True") {
      await new Promise((resolve) => setImmediate(resolve));
      if (clock.timers > 0) clock.pass(clock.nextIn ?? 0);
    }
    await trying;
    assert.ok(asked.length > 2, "it is given the time that a policy may take");
    assert.deepEqual([canary.of(of).status, changed], ["False", ["api", "api"]]);
  });

  it("is tried again when a policy has changed and settled", async () => {
    const { canary, check, again } = setUp([false]);
    await check();
    canary.suspect(of);
    assert.equal(canary.dueInMs(of), 3_000);
    await again();
    assert.ok(canary.dueInMs(of) > 60_000);
  });

  it("of a component that is gone is forgotten", async () => {
    const { canary, check } = setUp([false]);
    await check();
    canary.forget(of);
    assert.equal(canary.of(of).reason, "NotTried");
  });
});
