import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decide, type Plan } from "../../../src/operator/workload/decide.ts";
import { componentObjects } from "../../../src/operator/workload/desired.ts";
import type { Seen } from "../../../src/operator/workload/gather.ts";
import { component, configMap, deployment, digest, fault, known, pod, seen, settings, workload } from "./workload-world.ts";

const now = Date.parse("2026-01-01T00:00:00Z");
const ago = (seconds: number): string => new Date(now - seconds * 1000).toISOString();

const plan = (of: Seen): Plan => decide(of, settings, now);

const removed = ({ remove }: Plan): string[] => remove.map(({ type, object }) => `${type.kind} ${object.metadata.name}`);

const configNow = (of: ReturnType<typeof workload>): string =>
  componentObjects(of, of.spec.components[0] ?? component(), { digest, watches: false }, 1, settings).configMap.metadata.name;

describe("what is to be done for a Workload", () => {
  test("every component with tools runs behind the policy, with as many pods as the spec says", () => {
    const of = workload({ replicas: 3, components: [component(), component({ name: "other" })] });
    const { finalizer, sandboxPolicy, components, waiting } = plan(seen(of));
    assert.deepEqual({ finalizer, sandboxPolicy, waiting }, { finalizer: true, sandboxPolicy: "stands", waiting: null });
    assert.deepEqual(
      components.map(({ name, replicas }) => [name, replicas]),
      [
        ["issues", 3],
        ["other", 3],
      ],
    );
  });

  test("a component that can't be read is neither run anew nor stopped", () => {
    const of = workload();
    const result = plan(
      seen(of, {
        components: [{ component: component(), found: fault() }],
        deployments: [deployment(of, "issues", "old")],
        configMaps: [configMap(of, "issues", "old")],
      }),
    );
    assert.deepEqual(result.components, []);
    assert.deepEqual(removed(result), []);
  });

  test("nothing changes while a live tool was not judged by what the spec says now", () => {
    const of = workload({ replicas: 3 });
    const live = [deployment(of, "issues", "old"), deployment(of, "gone", "old")];
    const { components, waiting, ...result } = plan(seen(of, { activeGrants: 2, unjudgedGrants: 1, deployments: live }));
    assert.deepEqual([components, removed({ components, waiting, ...result })], [[], []]);
    assert.deepEqual([waiting?.reason, waiting?.goesOn], ["JudgingGrants", true]);
  });

  test("a component that lost its last tool stops", () => {
    const of = workload();
    const result = plan(
      seen(of, {
        components: [{ component: component(), found: known({ offered: [] }) }],
        deployments: [deployment(of, "issues", "old")],
      }),
    );
    assert.deepEqual(removed(result), ["Deployment github-issues"]);
  });

  test("what belongs to a component that the spec has no more goes", () => {
    const of = workload();
    const result = plan(seen(of, { deployments: [deployment(of, "issues", configNow(of)), deployment(of, "gone", "old")] }));
    assert.deepEqual(removed(result), ["Deployment github-gone"]);
  });

  const rollouts: Record<string, { config: "old" | "new"; status?: object; goes: boolean }> = {
    "stays while the Deployment has not heard of the new one": { config: "old", goes: false },
    "stays while pods with it are there": {
      config: "new",
      status: { observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 2 },
      goes: false,
    },
    "stays while the Deployment's status is of an older template": {
      config: "new",
      status: { observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
      goes: false,
    },
    "goes when all pods have the new one": { config: "new", goes: true },
  };
  for (const [sentence, { config, status, goes }] of Object.entries(rollouts)) {
    test(`an old configuration ${sentence}`, () => {
      const of = workload();
      const current = configNow(of);
      const live = deployment(of, "issues", config === "new" ? current : "old", 1, ...(status ? [status] : []));
      const result = plan(
        seen(of, { deployments: [live], configMaps: [configMap(of, "issues", "old"), configMap(of, "issues", current)] }),
      );
      assert.deepEqual(removed(result), goes ? ["ConfigMap old"] : []);
    });
  }

  const withdrawing = (seconds: number) => ({
    status: {
      conditions: [{ type: "Reconciling", status: "True", reason: "Withdrawing", message: "", lastTransitionTime: ago(seconds) } as const],
    },
  });
  const suspensions: Record<string, { grants: number; before?: object; replicas: number; waits: boolean }> = {
    "keeps its pods while a tool is offered": { grants: 1, replicas: 2, waits: true },
    "keeps them for half a minute": { grants: 1, before: withdrawing(29), replicas: 2, waits: true },
    "stops them after that, whatever keeps the tool from being withdrawn": {
      grants: 1,
      before: withdrawing(30),
      replicas: 0,
      waits: false,
    },
    "stops them when no tool is offered": { grants: 0, replicas: 0, waits: false },
  };
  for (const [sentence, { grants, before, replicas, waits }] of Object.entries(suspensions)) {
    test(`a suspended Workload ${sentence}`, () => {
      const of = workload({ suspend: true, replicas: 5 }, before);
      const result = plan(seen(of, { activeGrants: grants, deployments: [deployment(of, "issues", configNow(of), 2)] }));
      assert.equal(result.components[0]?.replicas, replicas);
      assert.equal(result.waiting !== null, waits);
    });
  }

  const going = (seconds: number) =>
    workload({}, { metadata: { ...workload().metadata, deletionTimestamp: ago(seconds), finalizers: ["ambit.dev/workload"] } });
  const deletions: Record<
    string,
    { seconds?: number; changes: Partial<Seen>; removes: string[]; keepsFinalizer: boolean; policy?: string }
  > = {
    "waits for its tools first": {
      changes: { activeGrants: 1, deployments: [deployment(going(1), "issues", "c")] },
      removes: [],
      keepsFinalizer: true,
    },
    "does not wait for them for ever": {
      seconds: 30,
      changes: { activeGrants: 1, deployments: [deployment(going(1), "issues", "c")] },
      removes: ["Deployment github-issues"],
      keepsFinalizer: true,
    },
    "ends its sandboxes, and leaves what is around them": {
      changes: { deployments: [deployment(going(1), "issues", "c")], configMaps: [configMap(going(1), "issues", "c")] },
      removes: ["Deployment github-issues"],
      keepsFinalizer: true,
    },
    "waits for the last pod": {
      changes: { pods: [pod(going(1), "issues", {})], configMaps: [configMap(going(1), "issues", "c")] },
      removes: [],
      keepsFinalizer: true,
    },
    "takes the rest and the policy away when the last pod has ended": {
      changes: { configMaps: [configMap(going(1), "issues", "c")] },
      removes: ["ConfigMap c"],
      keepsFinalizer: false,
      policy: "goes",
    },
    "leaves the policy to the other Workloads of the namespace": {
      changes: { needsSandboxPolicy: true },
      removes: [],
      keepsFinalizer: false,
      policy: "stays",
    },
  };
  for (const [sentence, { seconds = 1, changes, removes, keepsFinalizer, policy = "stays" }] of Object.entries(deletions)) {
    test(`a Workload that is deleted ${sentence}`, () => {
      const result = plan(seen(going(seconds), { components: [], ...changes }));
      assert.deepEqual(removed(result), removes);
      assert.equal(result.finalizer, keepsFinalizer);
      assert.equal(result.sandboxPolicy, policy);
      assert.deepEqual(result.components, []);
    });
  }
});
