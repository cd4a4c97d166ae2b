import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { ClusterObject, ResourceType } from "../kube/object.ts";

/** The kinds that the catalogue reads; it writes none. */
export const toolGrants: ResourceType = {
  group: "ambit.dev",
  version: "v1alpha1",
  kind: "ToolGrant",
  plural: "toolgrants",
  namespaced: true,
};
export const pods: ResourceType = { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };
export const namespaces: ResourceType = { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false };
export const secrets: ResourceType = { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };
export const configMaps: ResourceType = { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };

export type GrantObject = ToolGrant & ClusterObject;

export interface PodObject extends ClusterObject {
  readonly status?: {
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** Values are base64. */
export interface SecretObject extends ClusterObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface ConfigMapObject extends ClusterObject {
  readonly data?: Readonly<Record<string, string>>;
}
