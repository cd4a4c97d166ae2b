import type { WorkloadStatus } from "../../api/generated/workload.ts";
import type { Applier } from "../../kube/apply.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Clock } from "../../kube/clock.ts";
import type { EventRecorder } from "../../kube/events.ts";
import { done, type Outcome, type Reconciler } from "../../kube/reconciler.ts";
import { workloads } from "../../kube/resource-types.ts";
import type { ComponentStore } from "../component-store.ts";
import { conditionTime } from "../conditions.ts";
import type { OperatorStores } from "../context.ts";
import type { EgressOf } from "../egress/egress.ts";
import { isEnding } from "../ending-namespace.ts";
import type { ClusterWorkload } from "../kinds.ts";
import type { ToolListings } from "../tool-listings.ts";
import { type AppliedPlan, apply } from "./apply.ts";
import { decide, type Plan } from "./decide.ts";
import type { HostSettings } from "./desired.ts";
import { gather, isFault, type Seen } from "./gather.ts";
import { askAgainMs } from "./not-started.ts";
import type { SandboxPolicies } from "./sandbox-policy.ts";
import { type FromOthers, statusOf } from "./summarise.ts";

export interface WorkloadDeps {
  readonly stores: OperatorStores;
  readonly components: ComponentStore;
  readonly listings: ToolListings;
  readonly client: ClusterClient;
  /** Under the field manager `ambit-workload`. */
  readonly applier: Applier;
  readonly sandboxPolicies: SandboxPolicies;
  readonly settings: HostSettings;
  readonly events: Pick<EventRecorder, "record">;
  readonly clock: Clock;
  readonly egress: WorkloadEgress;
}

/** What the resolver of allowed hosts tells of a component. */
export interface WorkloadEgress {
  readonly statusOf: (of: EgressOf, before: Parameters<FromOthers["egress"]>[1]) => ReturnType<FromOthers["egress"]>;
  readonly faultOf: (of: EgressOf) => ReturnType<FromOthers["egressFault"]>;
  readonly enforcementOf: (of: EgressOf) => ReturnType<FromOthers["enforcement"]>;
}

/** A registry that did not answer is asked again soon; what a person has to mend outside of the cluster, in a while. */
const retryPassingMs = 10_000;
const retryStalledMs = 120_000;

/** Brings one Workload's objects in the cluster to what its spec asks. */
export const workloadReconciler =
  (deps: WorkloadDeps): Reconciler =>
  async (key, signal) => {
    const seen = await gather(deps.stores, deps, key, signal);
    if (!seen) {
      deps.applier.forget(workloads, key);
      deps.applier.forget(workloads, key, "status");
      return done;
    }
    const { namespace, deletionTimestamp } = seen.workload.metadata;
    // What the namespace's end took is not to be made again; the Workload itself is deleted in a moment.
    if (deletionTimestamp === undefined && isEnding(deps.stores, namespace)) return done;
    const plan = decide(seen, deps.settings, deps.clock.now());
    const applied = await apply(deps, seen, plan, signal);
    // Without its finalizer a Workload that was deleted is gone.
    if (plan.finalizer) await summarise(deps, seen, plan, applied, signal);
    return outcomeOf(seen, plan, applied);
  };

const summarise = async (deps: WorkloadDeps, seen: Seen, plan: Plan, applied: AppliedPlan, signal: AbortSignal): Promise<void> => {
  const { workload } = seen;
  const { name, namespace = "default" } = workload.metadata;
  const others: FromOthers = {
    egress: (component, before) => deps.egress.statusOf({ namespace, workload: name, component }, before),
    egressFault: (component) => deps.egress.faultOf({ namespace, workload: name, component }),
    enforcement: (component) => deps.egress.enforcementOf({ namespace, workload: name, component }),
  };
  const status = statusOf(seen, plan, applied, others, conditionTime(deps.clock.now()));
  // Nobody else writes it, so whatever holds its fields is an older name of ours or a mistake.
  await deps.applier.apply(
    workloads,
    { metadata: { name, namespace }, status },
    { live: workload, subresource: "status", force: true, signal },
  );
  tell(deps, workload, status);
};

/** Of what changed for a person: that it serves, or why not. */
const tell = ({ events }: WorkloadDeps, workload: ClusterWorkload, { conditions = [] }: WorkloadStatus): void => {
  const is = (of: WorkloadStatus["conditions"], type: string) => of?.find((condition) => condition.type === type);
  const stalled = is(conditions, "Stalled");
  const stalledBefore = is(workload.status?.conditions, "Stalled");
  const isNews = stalled?.reason !== stalledBefore?.reason || stalled?.message !== stalledBefore?.message;
  if (stalled?.status === "True" && isNews) {
    events.record(workload, { type: "Warning", reason: stalled.reason, action: "Reconcile", note: stalled.message });
  }
  const ready = is(conditions, "Ready");
  if (ready?.status === "True" && is(workload.status?.conditions, "Ready")?.status !== "True") {
    events.record(workload, { type: "Normal", reason: ready.reason, action: "Reconcile", note: ready.message });
  }
};

const outcomeOf = (seen: Seen, { waiting }: Plan, applied: AppliedPlan): Outcome => {
  if (waiting) return { kind: "waiting", retryAfterMs: waiting.retryAfterMs, on: waiting.message };
  const found = seen.components.flatMap(({ found }) => (isFault(found) ? [found] : []));
  const faults = [...found, ...[...applied.values()].flatMap((result) => ("fault" in result ? [result.fault] : []))];
  const [first] = faults;
  const isAskedAgain = seen.notStarted.size > 0;
  if (!first) return isAskedAgain ? { kind: "waiting", retryAfterMs: askAgainMs, on: "pods that do not start" } : done;
  const retryAfterMs = Math.min(...faults.map((fault) => fault.retryAfterMs ?? (fault.passing ? retryPassingMs : retryStalledMs)));
  return { kind: "waiting", retryAfterMs: isAskedAgain ? Math.min(retryAfterMs, askAgainMs) : retryAfterMs, on: first.message };
};
