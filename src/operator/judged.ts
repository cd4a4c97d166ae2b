import { createHash } from "node:crypto";
import { canonicalJson, type JsonValue } from "../api/json.ts";
import type { OperatorStores } from "./context.ts";
import type { ClusterWorkload } from "./kinds.ts";
import { workloadKey } from "./toolgrant/indexes.ts";

/**
 * What a grant is judged by: `uid/hash`, the same for the same Workload that runs the same with the same reach. How many pods there are, whether it is suspended and whether it is
 * drafted for don't count. What a tag means may be another with each generation.
 */
export const workloadVersion = ({ metadata, spec }: ClusterWorkload): string => {
  const { replicas: _, suspend: __, draftGrants: ___, ...runs } = spec;
  const judged = { runs, generation: spec.allowTags ? (metadata.generation ?? 0) : 0 };
  const hash = createHash("sha256")
    .update(canonicalJson(judged as unknown as JsonValue))
    .digest("hex");
  return `${metadata.uid ?? ""}/${hash.slice(0, 32)}`;
};

/**
 * How many live grants were not judged by what the Workload says now. Until there are none, nothing of it may come to be: what it adds could serve under a review of what it was before.
 */
export const unjudgedGrants = ({ toolGrants }: Pick<OperatorStores, "toolGrants">, workload: ClusterWorkload): number => {
  const version = workloadVersion(workload);
  return toolGrants
    .find("workload", workloadKey(workload.metadata.namespace, workload.metadata.name))
    .filter(({ status }) => status?.phase === "Active" && status.observed?.workload !== version).length;
};

/** Tells of the Workload, as `namespace/name`, one of whose grants was judged anew. The returned function ends that. */
export const onJudged = (grants: OperatorStores["toolGrants"], tell: (workload: string) => void): (() => void) =>
  grants.subscribe((change) => {
    const { metadata, spec, status } = change.object;
    const before = change.type === "updated" ? change.previous.status : undefined;
    const isJudged =
      change.type === "deleted" || before?.phase !== status?.phase || before?.observed?.workload !== status?.observed?.workload;
    if (isJudged) tell(workloadKey(metadata.namespace, spec.tool.workload));
  });
