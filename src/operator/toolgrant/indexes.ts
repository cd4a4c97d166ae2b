import { keyText } from "../../kube/object.ts";
import type { ClusterToolGrant } from "../kinds.ts";

/** `namespace/workload`. */
export const workloadKey = (namespace: string | undefined, workload: string): string =>
  keyText({ namespace: namespace ?? "", name: workload });

/** Indexes that the store of ToolGrants has. */
export const grantIndexes = {
  /** `namespace/name` of the Workload that a grant names. */
  workload: ({ metadata, spec }: ClusterToolGrant) => [workloadKey(metadata.namespace, spec.tool.workload)],
  declaredName: ({ spec }: ClusterToolGrant) => [spec.declaration.name],
  /** Namespaces whose acceptance decides whether it is offered. */
  subjectNamespace: ({ metadata, spec }: ClusterToolGrant) =>
    (spec.subjects ?? []).flatMap(({ kind, namespace }) => (kind === "ServiceAccount" ? [namespace ?? metadata.namespace ?? ""] : [])),
};
