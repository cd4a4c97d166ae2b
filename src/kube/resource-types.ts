import type { ResourceType } from "./object.ts";

/** Kinds that more than one part of Ambit reads or writes, as the API server's paths need them. */
export const toolGrants: ResourceType = {
  group: "ambit.dev",
  version: "v1alpha1",
  kind: "ToolGrant",
  plural: "toolgrants",
  namespaced: true,
};
export const workloads: ResourceType = { group: "ambit.dev", version: "v1alpha1", kind: "Workload", plural: "workloads", namespaced: true };
export const pods: ResourceType = { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };
export const deployments: ResourceType = { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true };
export const services: ResourceType = { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true };
export const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };
export const secrets: ResourceType = { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };
export const namespaces: ResourceType = { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false };
export const events: ResourceType = { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true };
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
