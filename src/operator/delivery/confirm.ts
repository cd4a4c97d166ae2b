import { Refused, Transient } from "../../api/errors.ts";
import { isNotFound } from "../../kube/api-error.ts";
import { type ClusterObject, isControlledBy, keyText, type OwnerReference, type ResourceType } from "../../kube/object.ts";
import { pods } from "../../kube/resource-types.ts";
import type { OperatorContext } from "../context.ts";
import type { Pod } from "../kinds.ts";
import { labels } from "../names.ts";
import { type HostPod, hostPodOf, isSamePlace } from "./host-pod.ts";

export const replicaSets: ResourceType = { group: "apps", version: "v1", kind: "ReplicaSet", plural: "replicasets", namespaced: true };

/**
 * Asks the API server, not a store that may be behind, whether a pod is still where it was seen, and whether it belongs to a Deployment that its Workload made: labels alone
 * are anybody's to write.
 *
 * Throws `Transient` (`PodMoved`) and `Refused` (`PodForeign`).
 */
export const confirmPod =
  ({ client, stores }: Pick<OperatorContext, "client" | "stores">) =>
  async (pod: HostPod, signal: AbortSignal): Promise<void> => {
    const { namespace } = pod.key;
    const now = await client.get<Pod>(pods, pod.key, signal).catch(missing("the pod"));
    if (!isSamePlace(pod, hostPodOf(now))) throw new Transient("PodMoved", "the pod is not any more what it was when it was seen");
    const setName = controllerOf(now, "ReplicaSet");
    const set = await client
      .get<ClusterObject>(replicaSets, { namespace, name: setName.name }, signal)
      .catch(missing("the pod's ReplicaSet"));
    if (set.metadata.uid !== setName.uid) throw foreign();
    const { name, uid } = controllerOf(set, "Deployment");
    const deployment = stores.deployments.get(keyText({ namespace, name }));
    const workload = stores.workloads.get(keyText({ namespace, name: pod.of.workload }));
    // Stores may be behind what the pod is made of; they will come.
    if (deployment === undefined || workload === undefined)
      throw new Transient("PodMoved", "the pod's Workload or Deployment is not known");
    const isMade = deployment.metadata.uid === uid && isControlledBy(deployment, workload.metadata.uid ?? "");
    if (!isMade || deployment.metadata.labels?.[labels.component] !== pod.of.component) throw foreign();
  };

const controllerOf = (object: ClusterObject, kind: string): OwnerReference => {
  const found = object.metadata.ownerReferences?.find((reference) => reference.controller === true && reference.kind === kind);
  if (found === undefined) throw foreign();
  return found;
};

const foreign = (): Refused =>
  new Refused(
    "PodForeign",
    "the pod has the labels of a tool's pod and was not made for a Workload: it gets no certificate and no component",
  );

const missing =
  (what: string) =>
  (thrown: unknown): never => {
    throw isNotFound(thrown) ? new Transient("PodMoved", `${what} is gone`) : thrown;
  };
