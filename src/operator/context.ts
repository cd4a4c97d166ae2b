import type { ClusterClient } from "../kube/client.ts";
import type { Clock, Random } from "../kube/clock.ts";
import type { EventRecorder } from "../kube/events.ts";
import type { MetricsRegistry } from "../kube/metrics.ts";
import type { ClusterObject } from "../kube/object.ts";
import type { Store } from "../kube/store.ts";
import type { ComponentStore } from "./component-store.ts";
import type { ClusterToolGrant, ClusterWorkload, Pod } from "./kinds.ts";
import type { ConfigMap, Deployment, DisruptionBudget, NetworkPolicy, Service } from "./workload/kinds.ts";

/**
 * What all controllers of the operator share while it leads. The stores are synced before any of them begins; those of objects that Ambit makes hold only objects with
 * its label.
 */
export interface OperatorContext {
  /** Writes nothing once leading is lost. */
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly stores: OperatorStores;
  readonly components: ComponentStore;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly metrics: MetricsRegistry;
  /** Ambit's own namespace. */
  readonly namespace: string;
}

export interface OperatorStores {
  readonly workloads: Store<ClusterWorkload>;
  /** Index `workload`: `namespace/name` of the Workload that a grant names. */
  readonly toolGrants: Store<ClusterToolGrant>;
  readonly namespaces: Store<ClusterObject>;
  /** Index `workload`: `namespace/name` of the Workload that an object was made for; so for the following. */
  readonly pods: Store<Pod>;
  readonly deployments: Store<Deployment>;
  readonly services: Store<Service>;
  readonly configMaps: Store<ConfigMap>;
  readonly networkPolicies: Store<NetworkPolicy>;
  readonly disruptionBudgets: Store<DisruptionBudget>;
}

/** One JSON object a line. */
export type Log = (line: { readonly message: string; readonly [field: string]: unknown }) => void;

/** Something that works until the signal aborts: a `Controller`, or a loop with a clock. */
export interface Runs {
  run(signal: AbortSignal): Promise<void>;
}
