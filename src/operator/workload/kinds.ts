import type { ClusterObject, ResourceType } from "../../kube/object.ts";

export const deployments: ResourceType = { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true };
export const services: ResourceType = { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true };
export const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
export const networkPolicies: ResourceType = {
  group: "networking.k8s.io",
  version: "v1",
  kind: "NetworkPolicy",
  plural: "networkpolicies",
  namespaced: true,
};
export const disruptionBudgets: ResourceType = {
  group: "policy",
  version: "v1",
  kind: "PodDisruptionBudget",
  plural: "poddisruptionbudgets",
  namespaced: true,
};

/** What is read of a Deployment. */
export interface Deployment extends ClusterObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: { readonly spec?: { readonly volumes?: readonly { readonly configMap?: { readonly name?: string } }[] } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

export type Service = ClusterObject;
export type ConfigMap = ClusterObject & { readonly data?: Readonly<Record<string, string>> };
export type NetworkPolicy = ClusterObject;
export type DisruptionBudget = ClusterObject;
