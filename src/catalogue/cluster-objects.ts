import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { ClusterObject } from "../kube/object.ts";

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
