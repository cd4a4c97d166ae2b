import type { ClusterObject } from "../../kube/object.ts";

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
