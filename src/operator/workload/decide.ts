import { changesExport } from "../../api/untyped.ts";
import type { ClusterObject, ResourceType } from "../../kube/object.ts";
import { configMaps, deployments, services } from "../../kube/resource-types.ts";
import type { StoredComponent } from "../component-store.ts";
import { labels } from "../names.ts";
import { type ComponentObjects, componentObjects, type HostSettings } from "./desired.ts";
import { controlled, isFault, isRun, type Seen } from "./gather.ts";
import type { Deployment } from "./kinds.ts";
import type { Code } from "./pod-template.ts";

/** Keeps a Workload until its tools are withdrawn and its sandboxes have ended. */
export const workloadFinalizer = "ambit.dev/workload";

/** Withdrawing a tool takes a moment; a reviewer's or a controller's fault must not keep a sandbox running for longer. */
const withdrawWithinMs = 30_000;

/** What should be done, in this order. */
export interface Plan {
  /** Whether the Workload is to have the finalizer after all of this. */
  readonly finalizer: boolean;
  /** The policy before all sandboxes of the namespace: there before anything else, gone after everything else. */
  readonly sandboxPolicy: "stands" | "goes" | "stays";
  readonly components: readonly PlannedComponent[];
  /** What is not wanted any more. */
  readonly remove: readonly { readonly type: ResourceType; readonly object: ClusterObject }[];
  /** What has to happen before the rest can be done, and when to look again even if nothing is heard. */
  readonly waiting: Wait | null;
}

export interface Wait {
  readonly reason: string;
  readonly message: string;
  readonly retryAfterMs: number;
  /** Whether what serves goes on serving meanwhile. */
  readonly goesOn?: boolean;
}

export interface PlannedComponent {
  readonly name: string;
  readonly objects: ComponentObjects;
  readonly replicas: number;
}

/** Pure: `now` is wall time in milliseconds. */
export const decide = (seen: Seen, settings: HostSettings, now: number): Plan =>
  seen.workload.metadata.deletionTimestamp === undefined ? decideRunning(seen, settings, now) : decideDeletion(seen, now);

const decideRunning = (seen: Seen, settings: HostSettings, now: number): Plan => {
  const { workload } = seen;
  const isWithdrawing = workload.spec.suspend && seen.activeGrants > 0 && now - suspendedSince(seen, now) < withdrawWithinMs;
  const waiting = isWithdrawing ? withdrawal(seen.activeGrants) : judging(seen);
  // What may do more than was reviewed must not be there before the tool is withdrawn.
  if (waiting && seen.unjudgedGrants > 0) return { finalizer: true, sandboxPolicy: "stands", components: [], remove: [], waiting };
  const components = seen.components.flatMap(({ component, found }): PlannedComponent[] => {
    if (isFault(found) || !isRun(component, found)) return [];
    const running = deploymentOf(seen, component.name)?.spec?.replicas ?? 0;
    const replicas = !workload.spec.suspend ? workload.spec.replicas : isWithdrawing ? running : 0;
    return [{ name: component.name, replicas, objects: componentObjects(workload, component, codeOf(found.stored), replicas, settings) }];
  });
  return {
    finalizer: true,
    sandboxPolicy: "stands",
    components,
    remove: unwanted(seen, components),
    waiting,
  };
};

/** Tools first, then sandboxes, then what is around them. */
const decideDeletion = (seen: Seen, now: number): Plan => {
  const { metadata } = seen.workload;
  const nothing: Plan = { finalizer: true, sandboxPolicy: "stays", components: [], remove: [], waiting: null };
  const sinceMs = now - Date.parse(metadata.deletionTimestamp ?? "");
  if (seen.activeGrants > 0 && sinceMs < withdrawWithinMs) {
    return { ...nothing, waiting: withdrawal(seen.activeGrants) };
  }
  const all = controlled(seen);
  if (seen.deployments.length > 0 || seen.pods.length > 0) {
    return {
      ...nothing,
      remove: all.filter(({ type, object }) => type === deployments && object.metadata.deletionTimestamp === undefined),
      waiting: { reason: "Ending", message: `its ${seen.pods.length} sandboxes are ending`, retryAfterMs: 10_000 },
    };
  }
  return { ...nothing, finalizer: false, sandboxPolicy: seen.needsSandboxPolicy ? "stays" : "goes", remove: all };
};

const withdrawal = (grants: number): Wait => ({
  reason: "Withdrawing",
  message: `${grants} of its tools are being withdrawn before its sandboxes stop`,
  retryAfterMs: 5_000,
});

const codeOf = ({ digest, interface: described }: StoredComponent): Code => ({ digest, watches: changesExport(described) !== null });

/** What is to stop need not wait to be judged. */
const judging = ({ workload, unjudgedGrants }: Seen): Wait | null =>
  workload.spec.suspend || unjudgedGrants === 0
    ? null
    : {
        reason: "JudgingGrants",
        message: `${unjudgedGrants} of its tools are being judged by the new spec before anything of it runs`,
        retryAfterMs: 5_000,
        goesOn: true,
      };

/** When it began to be reconciled towards its suspension, as its status says; now, where that has not been written yet. */
const suspendedSince = ({ workload }: Seen, now: number): number => {
  const reconciling = workload.status?.conditions?.find(({ type }) => type === "Reconciling");
  return reconciling?.status === "True" && reconciling.reason === "Withdrawing" ? Date.parse(reconciling.lastTransitionTime) : now;
};

export const deploymentOf = (seen: Pick<Seen, "deployments">, component: string): Deployment | undefined =>
  seen.deployments.find(({ metadata }) => metadata.labels?.[labels.component] === component);

/**
 * Objects of components that are gone or have no tools any more, and of those that run what a new configuration has replaced. A component that can't be read now keeps all it has:
 * what ran goes on.
 */
const unwanted = (seen: Seen, planned: readonly PlannedComponent[]): Plan["remove"] => {
  const faulty = new Set(seen.components.filter(({ found }) => isFault(found)).map(({ component }) => component.name));
  return controlled(seen).filter(({ type, object }) => {
    const name = object.metadata.labels?.[labels.component] ?? "";
    if (faulty.has(name)) return false;
    const plan = planned.find((one) => one.name === name);
    if (!plan) return true;
    const { configMap, service, deployment, disruptionBudget } = plan.objects;
    if (type === configMaps) {
      const isOld = object.metadata.name !== configMap.metadata.name;
      return isOld && runsOnly(deploymentOf(seen, name), configMap.metadata.name, plan.replicas);
    }
    const wanted = type === deployments ? deployment : type === services ? service : disruptionBudget;
    return wanted?.metadata.name !== object.metadata.name;
  });
};

/** Whether all pods are there, and all with this configuration: the Deployment may not have heard of it yet. */
const runsOnly = (deployment: Deployment | undefined, config: string, replicas: number): boolean =>
  isRolledOut(deployment, replicas) &&
  (deployment?.spec?.template?.spec?.volumes ?? []).some(({ configMap }) => configMap?.name === config);

/** Whether all pods are of the Deployment's newest template, and as many as wanted can be called. */
export const isRolledOut = (deployment: Deployment | undefined, replicas: number): boolean => {
  const { metadata, status } = deployment ?? {};
  return (
    status !== undefined &&
    (status.observedGeneration ?? 0) >= (metadata?.generation ?? 0) &&
    (status.updatedReplicas ?? 0) === replicas &&
    (status.replicas ?? 0) === replicas &&
    (status.availableReplicas ?? 0) === replicas
  );
};
