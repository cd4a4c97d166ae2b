import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { AppliedPlan } from "../../../src/operator/workload/apply.ts";
import { decide } from "../../../src/operator/workload/decide.ts";
import type { Seen } from "../../../src/operator/workload/gather.ts";
import { type FromOthers, statusOf } from "../../../src/operator/workload/summarise.ts";
import { component, deployment, digest, fault, known, pod, seen, settings, workload } from "./workload-world.ts";

const now = "2026-01-01T00:00:00Z";

const others: FromOthers = {
  egress: () => [],
  egressFault: () => undefined,
  enforcement: () => ({ status: "True", reason: "PolicyInForce", message: "in force" }),
};

const summary = (of: Seen, applied: AppliedPlan = new Map(), told: Partial<FromOthers> = {}) => {
  const status = statusOf(of, decide(of, settings, Date.parse(now)), applied, { ...others, ...told }, now);
  const is = (type: string) => {
    const found = status.conditions?.find((condition) => condition.type === type);
    return `${found?.status} ${found?.reason}`;
  };
  return { status, ready: is("Ready"), reconciling: is("Reconciling"), stalled: is("Stalled") };
};

const rolledOut = (of: ReturnType<typeof workload>, status?: object) =>
  seen(of, { deployments: [deployment(of, "issues", "c", of.spec.replicas, ...(status ? [status] : []))] });

const unlistable = { code: "ListingFailed", message: "the server did not\u200b answer" };
const listing = (is: "awaited" | "known"): Seen["components"] => [
  { component: component(), found: known({ offered: [], listing: is, listingFault: unlistable }) },
];

describe("the conditions of a Workload", () => {
  const cases: Record<
    string,
    { of: Seen; applied?: AppliedPlan; told?: Partial<FromOthers>; ready: string; reconciling: string; stalled: string }
  > = {
    "whose pods all serve": {
      of: rolledOut(workload()),
      ready: "True Serving",
      reconciling: "False Settled",
      stalled: "False NothingToDo",
    },
    "whose tools can't be listed": {
      of: { ...rolledOut(workload()), components: listing("awaited") },
      ready: "False ListingFailed",
      reconciling: "True ListingFailed",
      stalled: "False NothingToDo",
    },
    "whose tools can't be listed anew": {
      of: { ...rolledOut(workload()), components: listing("known") },
      ready: "True Serving",
      reconciling: "False Settled",
      stalled: "False NothingToDo",
    },
    "whose Deployment was just made": {
      of: seen(),
      ready: "False RollingOut",
      reconciling: "True RollingOut",
      stalled: "False NothingToDo",
    },
    "whose pods wait for a secret": {
      of: { ...seen(), notStarted: new Map([["issues", fault({ reason: "SecretMissing", message: "there is no Secret agents/token" })]]) },
      ready: "False SecretMissing",
      reconciling: "False Settled",
      stalled: "True SecretMissing",
    },
    "whose pods do not start for a reason that nobody has told": {
      of: { ...seen(), notStarted: new Map([["issues", null]]) },
      ready: "False RollingOut",
      reconciling: "True RollingOut",
      stalled: "False NothingToDo",
    },
    "whose Deployment has not heard of its newest template": {
      of: rolledOut(workload(), { observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1 }),
      ready: "False RollingOut",
      reconciling: "True RollingOut",
      stalled: "False NothingToDo",
    },
    "whose Deployment was changed a moment ago, as the store has not heard": {
      of: rolledOut(workload()),
      applied: new Map([["issues", { deployment: { metadata: { name: "github-issues", generation: 3 } } }]]),
      ready: "False RollingOut",
      reconciling: "True RollingOut",
      stalled: "False NothingToDo",
    },
    "whose pods can't be made": {
      of: rolledOut(workload(), {
        observedGeneration: 2,
        conditions: [{ type: "ReplicaFailure", status: "True", message: "exceeded quota" }],
      }),
      ready: "False PodsRefused",
      reconciling: "False Settled",
      stalled: "True PodsRefused",
    },
    "whose host won't have its component": {
      of: {
        ...rolledOut(workload(), { observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 0 }),
        pods: [
          pod(workload(), "issues", { "ambit.dev/refused": "ImportNotGranted: it imports x" }, { "ambit.dev/digest": digest.slice(7, 23) }),
        ],
      },
      ready: "False ComponentRefused",
      reconciling: "False Settled",
      stalled: "True ComponentRefused",
    },
    "whose older pods alone would not have had theirs": {
      of: { ...seen(), pods: [pod(workload(), "issues", { "ambit.dev/refused": "x" }, { "ambit.dev/digest": "0".repeat(16) })] },
      ready: "False RollingOut",
      reconciling: "True RollingOut",
      stalled: "False NothingToDo",
    },
    "whose image is not there": {
      of: seen(workload(), { components: [{ component: component(), found: fault() }] }),
      ready: "False ImageNotFound",
      reconciling: "False Settled",
      stalled: "True ImageNotFound",
    },
    "whose registry does not answer": {
      of: seen(workload(), { components: [{ component: component(), found: fault({ reason: "RegistryUnavailable", passing: true }) }] }),
      ready: "False RegistryUnavailable",
      reconciling: "True RegistryUnavailable",
      stalled: "False NothingToDo",
    },
    "of which one component needs a person and another time": {
      of: seen(workload({ components: [component({ name: "slow" }), component({ name: "bad" })] }), {
        components: [
          { component: component({ name: "slow" }), found: known() },
          { component: component({ name: "bad" }), found: fault() },
        ],
      }),
      ready: "False ImageNotFound",
      reconciling: "True RollingOut",
      stalled: "True ImageNotFound",
    },
    "whose objects are somebody else's": {
      of: seen(),
      applied: new Map([["issues", { fault: fault({ reason: "ForeignObject" }) }]]),
      ready: "False ForeignObject",
      reconciling: "False Settled",
      stalled: "True ForeignObject",
    },
    "whose policy could not be applied": {
      of: rolledOut(workload()),
      told: { egressFault: () => ({ reason: "ForeignObject", message: "somebody else's" }) },
      ready: "False ForeignObject",
      reconciling: "False Settled",
      stalled: "True ForeignObject",
    },
    "none of whose functions are tools": {
      of: seen(workload(), { components: [{ component: component(), found: known({ offered: [] }) }] }),
      ready: "False NothingServes",
      reconciling: "False Settled",
      stalled: "False NothingToDo",
    },
    "that is suspended": {
      of: rolledOut(workload({ suspend: true, replicas: 0 })),
      ready: "False Suspended",
      reconciling: "False Settled",
      stalled: "False NothingToDo",
    },
    "that is suspended, and whose last pod has not ended": {
      of: { ...rolledOut(workload({ suspend: true, replicas: 0 })), pods: [pod(workload(), "issues", {})] },
      ready: "False Stopping",
      reconciling: "True Stopping",
      stalled: "False NothingToDo",
    },
    "that is suspended while a tool is offered": {
      of: { ...rolledOut(workload({ suspend: true })), activeGrants: 1 },
      ready: "False Withdrawing",
      reconciling: "True Withdrawing",
      stalled: "False NothingToDo",
    },
    "with no pods at all": {
      of: rolledOut(workload({ replicas: 0 })),
      ready: "False NothingServes",
      reconciling: "False Settled",
      stalled: "False NothingToDo",
    },
  };
  for (const [sentence, { of, applied, told, ready, reconciling, stalled }] of Object.entries(cases)) {
    test(sentence, () => {
      const found = summary(of, applied, told);
      assert.deepEqual({ ready: found.ready, reconciling: found.reconciling, stalled: found.stalled }, { ready, reconciling, stalled });
    });
  }

  test("keep the time since when they hold, and say which generation they are of", () => {
    const before = { type: "Ready", status: "True", reason: "Serving", message: "", lastTransitionTime: "2025-01-01T00:00:00Z" } as const;
    const of = workload({}, { status: { conditions: [before] } });
    const { status } = summary(rolledOut(of));
    const ready = status.conditions?.find(({ type }) => type === "Ready");
    assert.equal(ready?.lastTransitionTime, before.lastTransitionTime);
    assert.equal(ready?.observedGeneration, of.metadata.generation);
    assert.equal(status.conditions?.find(({ type }) => type === "Stalled")?.lastTransitionTime, now);
  });
});

describe("what a Workload's status says of a component", () => {
  test("is its code, its tools and its ready pods by code", () => {
    const of = workload();
    const other = `sha256:${"1".repeat(64)}`;
    const pods = [digest, digest, other].map((delivered) => pod(of, "issues", { "ambit.dev/delivered": delivered }));
    const unready = {
      ...pod(of, "issues", { "ambit.dev/delivered": other }),
      status: { conditions: [{ type: "Ready", status: "False" }] },
    };
    const [found] = summary({ ...rolledOut(of), pods: [...pods, unready] }).status.components ?? [];
    assert.deepEqual(
      found?.pods,
      [
        { digest: other, ready: 1 },
        { digest, ready: 2 },
      ].sort((a, b) => (a.digest < b.digest ? -1 : 1)),
    );
    assert.equal(found?.digest, digest);
    assert.equal(found?.toolCount, 1);
    assert.equal(found?.fault, undefined);
  });

  test("is why it is not known, without what it was before", () => {
    const [found] = summary(seen(workload(), { components: [{ component: component(), found: fault() }] })).status.components ?? [];
    assert.deepEqual(found, { name: "issues", fault: { reason: "ImageNotFound", message: "registry.test has no such image" } });
  });
});

test("a component whose tools can't be listed says why, with what can't be seen spelled out", () => {
  const faultOf = (is: "awaited" | "known") => summary({ ...rolledOut(workload()), components: listing(is) }).status.components?.[0]?.fault;
  assert.deepEqual(faultOf("awaited"), {
    reason: "ListingFailed",
    message: "its tools can't be listed: the server did not⟨U+200B ZERO WIDTH SPACE⟩ answer",
  });
  assert.deepEqual(faultOf("known"), { reason: "ListingFailed", message: "the server did not⟨U+200B ZERO WIDTH SPACE⟩ answer" });
});
