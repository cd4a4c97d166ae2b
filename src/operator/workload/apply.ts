import { Stalled } from "../../api/errors.ts";
import { ApiError, isConflict, isNotFound } from "../../kube/api-error.ts";
import type { Applier, Desired } from "../../kube/apply.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../kube/object.ts";
import { applyOwned, controlledBy } from "../../kube/owned.ts";
import { configMaps, deployments, disruptionBudgets, services, workloads } from "../../kube/resource-types.ts";
import type { OperatorStores } from "../context.ts";
import { fieldManagers } from "../names.ts";
import { type Plan, type PlannedComponent, workloadFinalizer } from "./decide.ts";
import { type Fault, faultOf, needsSandboxPolicy, type Seen } from "./gather.ts";
import type { Deployment } from "./kinds.ts";
import type { SandboxPolicies } from "./sandbox-policy.ts";

export interface ApplyTo {
  readonly client: ClusterClient;
  readonly applier: Applier;
  readonly stores: OperatorStores;
  readonly sandboxPolicies: SandboxPolicies;
}

/** What came of applying one component. */
export type AppliedComponent = { readonly deployment: Deployment } | { readonly fault: Fault };

/** By the component's name, of those that were planned. */
export type AppliedPlan = ReadonlyMap<string, AppliedComponent>;

/**
 * Does what the plan says. What is wrong with one component is in the result and keeps no other from being applied; what is wrong with the API server, or a change meanwhile by
 * somebody else, rejects.
 */
export const apply = async (to: ApplyTo, seen: Seen, plan: Plan, signal: AbortSignal): Promise<AppliedPlan> => {
  const namespace = seen.workload.metadata.namespace ?? "default";
  if (plan.finalizer) await keepFinalizer(to, seen, signal);
  const applied = plan.sandboxPolicy === "stands" ? await applyBehindPolicy(to, seen, plan, signal) : new Map();
  for (const { type, object } of plan.remove) await remove(to, type, object, signal);
  if (plan.sandboxPolicy === "goes") {
    await to.sandboxPolicies.goes(namespace, () => needsSandboxPolicy(to.stores, seen.workload), signal);
  }
  if (!plan.finalizer) await dropFinalizer(to, seen, signal);
  return applied;
};

const applyBehindPolicy = async (to: ApplyTo, seen: Seen, plan: Plan, signal: AbortSignal): Promise<AppliedPlan> => {
  try {
    await to.sandboxPolicies.stands(seen.workload.metadata.namespace ?? "default", signal);
  } catch (thrown) {
    const fault = applyFault(thrown, signal);
    return new Map(plan.components.map(({ name }) => [name, { fault }]));
  }
  const applied = new Map<string, AppliedComponent>();
  for (const component of plan.components) {
    try {
      applied.set(component.name, { deployment: await applyComponent(to, seen, component, signal) });
    } catch (thrown) {
      applied.set(component.name, { fault: applyFault(thrown, signal) });
    }
  }
  return applied;
};

const applyComponent = async (to: ApplyTo, seen: Seen, { objects }: PlannedComponent, signal: AbortSignal): Promise<Deployment> => {
  const owner = controlledBy(seen.workload);
  const one = async <T extends ClusterObject>(type: ResourceType, desired: Desired, live: readonly T[]): Promise<T> => {
    const { object } = await applyOwned<T>(
      to,
      { type, desired, owner, live: live.find(({ metadata }) => metadata.name === desired.metadata.name) },
      signal,
    );
    return object;
  };
  await one(configMaps, objects.configMap, seen.configMaps);
  await one(services, objects.service, seen.services);
  if (objects.disruptionBudget) await one(disruptionBudgets, objects.disruptionBudget, seen.disruptionBudgets);
  return one<Deployment>(deployments, objects.deployment, seen.deployments);
};

/** What the API server says of a field is for whoever wrote it into the Workload. */
const applyFault = (thrown: unknown, signal: AbortSignal): Fault => {
  signal.throwIfAborted();
  if (thrown instanceof Stalled) return faultOf(thrown);
  if (thrown instanceof ApiError && !isConflict(thrown) && [400, 403, 422].includes(thrown.status)) {
    return { reason: "ApplyRefused", message: thrown.message, passing: false };
  }
  throw thrown;
};

const remove = async (
  { client, applier }: ApplyTo,
  type: ResourceType,
  { metadata }: ClusterObject,
  signal: AbortSignal,
): Promise<void> => {
  await client.delete(type, metadata, metadata.uid ? { uid: metadata.uid } : {}, signal);
  applier.forget(type, metadata);
};

const keepFinalizer = async ({ applier }: ApplyTo, { workload }: Seen, signal: AbortSignal): Promise<void> => {
  // None can be added to what is being deleted.
  if (workload.metadata.finalizers?.includes(workloadFinalizer) || workload.metadata.deletionTimestamp !== undefined) return;
  const { name, namespace = "default" } = workload.metadata;
  await applier.apply(workloads, { metadata: { name, namespace, finalizers: [workloadFinalizer] } }, { live: workload, signal });
};

const dropFinalizer = async ({ client, applier }: ApplyTo, { workload }: Seen, signal: AbortSignal): Promise<void> => {
  const { name, namespace = "default", finalizers = [], resourceVersion } = workload.metadata;
  if (!finalizers.includes(workloadFinalizer)) return;
  const rest = finalizers.filter((one) => one !== workloadFinalizer);
  const patch = {
    method: "PATCH",
    path: objectPath(workloads, { namespace, name }),
    contentType: "application/merge-patch+json",
    body: { metadata: { finalizers: rest, resourceVersion } },
    query: { fieldManager: fieldManagers.workload },
    signal,
  } as const;
  await client.request(patch).catch((thrown: unknown) => {
    // The store may not have heard yet that it has gone.
    if (!isNotFound(thrown)) throw thrown;
  });
  applier.forget(workloads, workload.metadata);
  applier.forget(workloads, workload.metadata, "status");
};
