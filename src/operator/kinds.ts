import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { Workload } from "../api/generated/workload.ts";
import type { ClusterObject } from "../kube/object.ts";

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
      readonly state?: { readonly running?: object; readonly waiting?: { readonly reason?: string } };
    }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}
