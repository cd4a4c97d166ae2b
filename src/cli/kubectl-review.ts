import { subjectsText } from "./approval.ts";
import { type ClusterOptions, changesOf, phaseOf, whyOf, withClusterGrants } from "./cluster-grants.ts";
import { printable, type Terminal, table } from "./terminal.ts";

export interface KubectlReviewOptions extends ClusterOptions {
  readonly json?: boolean;
}

/** Lists grants of a cluster: which wait for a review, which drifted, which are offered, and why. */
export const kubectlReview = async (terminal: Terminal, names: readonly string[], options: KubectlReviewOptions): Promise<void> => {
  const grants = await withClusterGrants(options, ({ list }) => list(names));
  if (options.json) {
    const report = grants.map((grant) => ({
      namespace: grant.metadata.namespace,
      grant: grant.metadata.name,
      name: grant.spec.declaration.name,
      phase: phaseOf(grant),
      why: whyOf(grant),
      changes: changesOf(grant),
    }));
    terminal.out(`${JSON.stringify({ grants: report }, null, 2)}\n`);
    return;
  }
  if (grants.length === 0) {
    terminal.err("There is no ToolGrant here.\n");
    return;
  }
  const rows = grants.map((grant) => [
    ...(options.allNamespaces ? [grant.metadata.namespace ?? ""] : []),
    phaseOf(grant),
    grant.spec.declaration.name || "(no name)",
    grant.metadata.name,
    subjectsText(grant.spec.subjects ?? []),
    whyOf(grant),
  ]);
  const heads = [...(options.allNamespaces ? ["NAMESPACE"] : []), "PHASE", "TOOL", "GRANT", "FOR", "WHY"];
  terminal.out(printable(table([heads, ...rows])));
};
