import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { Workload } from "../api/generated/workload.ts";
import type { ClusterObject, ResourceType } from "../kube/object.ts";

/** The kinds that controllers read and write, as the API server's paths need them. */
export const toolGrants: ResourceType = {
  group: "ambit.dev",
  version: "v1alpha1",
  kind: "ToolGrant",
  plural: "toolgrants",
  namespaced: true,
};
export const workloads: ResourceType = { group: "ambit.dev", version: "v1alpha1", kind: "Workload", plural: "workloads", namespaced: true };
export const pods: ResourceType = { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };
export const namespaces: ResourceType = { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false };

export type ClusterToolGrant = ToolGrant & ClusterObject;
export type ClusterWorkload = Workload & ClusterObject;

/** What controllers read of a pod. */
export interface Pod extends ClusterObject {
  readonly spec?: { readonly hostNetwork?: boolean };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly containerID?: string;
      readonly state?: { readonly running?: object };
    }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}
