import type { ClusterClient } from "../kube/client.ts";
import type { Clock, Random } from "../kube/clock.ts";
import { Informer } from "../kube/informer.ts";
import type { MetricsRegistry } from "../kube/metrics.ts";
import type { ClusterObject, ResourceType } from "../kube/object.ts";
import {
  configMaps,
  deployments,
  disruptionBudgets,
  namespaces,
  networkPolicies,
  pods,
  services,
  toolGrants,
  workloads,
} from "../kube/resource-types.ts";
import type { Index } from "../kube/store.ts";
import type { Log, OperatorStores } from "./context.ts";
import type { ClusterToolGrant, ClusterWorkload, Pod } from "./kinds.ts";
import { labels, managedByAmbit } from "./names.ts";
import { grantIndexes } from "./toolgrant/indexes.ts";
import type { ConfigMap, Deployment, DisruptionBudget, NetworkPolicy, Service } from "./workload/kinds.ts";

export interface InformersOptions {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: MetricsRegistry;
}

/** Keeps the stores of the operator like the cluster. */
export interface Informers {
  readonly stores: OperatorStores;
  /** Resolves when every store holds its first list. */
  readonly synced: Promise<unknown>;
  run(signal: AbortSignal): Promise<void>;
}

export const operatorInformers = ({ client, clock, random, log, metrics }: InformersOptions): Informers => {
  const all: Pick<Informer<ClusterObject>, "synced" | "run">[] = [];
  const informer = <T extends ClusterObject>(type: ResourceType, indexes: Readonly<Record<string, Index<T>>>, labelSelector?: string) => {
    const made = new Informer<T>({
      client,
      clock,
      random,
      metrics,
      type,
      indexes,
      selection: { labelSelector },
      onTrouble: ({ error, next, inMs }) => log({ message: "watching failed", kind: type.kind, error, next, inMs }),
    });
    all.push(made);
    return made.store;
  };
  const ours = `${labels.managedBy}=${managedByAmbit}`;
  const made = <T extends ClusterObject>(type: ResourceType) => informer<T>(type, { workload: byWorkloadLabel }, ours);
  const stores: OperatorStores = {
    workloads: informer<ClusterWorkload>(workloads, {}),
    toolGrants: informer<ClusterToolGrant>(toolGrants, grantIndexes),
    namespaces: informer<ClusterObject>(namespaces, {}),
    pods: made<Pod>(pods),
    deployments: made<Deployment>(deployments),
    services: made<Service>(services),
    configMaps: made<ConfigMap>(configMaps),
    networkPolicies: made<NetworkPolicy>(networkPolicies),
    disruptionBudgets: made<DisruptionBudget>(disruptionBudgets),
  };
  return {
    stores,
    synced: Promise.all(all.map(({ synced }) => synced)),
    run: async (signal) => void (await Promise.all(all.map((one) => one.run(signal)))),
  };
};

/** `namespace/name` of the Workload that an object was made for, by its label; none for what no Workload has. */
export const byWorkloadLabel = ({ metadata }: ClusterObject): string[] => {
  const workload = metadata.labels?.[labels.workload];
  return workload === undefined ? [] : [`${metadata.namespace ?? ""}/${workload}`];
};
