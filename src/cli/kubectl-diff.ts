import { changeLines } from "./approval.ts";
import { type ClusterOptions, changesOf, phaseOf, whyOf, withClusterGrants } from "./cluster-grants.ts";
import { Exit, exitCodes, printable, type Terminal, tone } from "./terminal.ts";

export interface KubectlDiffOptions extends ClusterOptions {
  readonly json?: boolean;
}

/** Tells what changed since each grant of a cluster was approved, as the operator found it. Exits 1 where anything did. */
export const kubectlDiff = async (terminal: Terminal, names: readonly string[], options: KubectlDiffOptions): Promise<void> => {
  const grants = (await withClusterGrants(options, ({ list }) => list(names))).filter(({ spec }) => spec.review !== undefined);
  if (options.json) {
    const report = grants.map((grant) => ({
      namespace: grant.metadata.namespace,
      grant: grant.metadata.name,
      phase: phaseOf(grant),
      why: whyOf(grant),
      changes: changesOf(grant),
    }));
    terminal.out(`${JSON.stringify({ grants: report }, null, 2)}\n`);
  } else if (grants.length === 0) terminal.err("There is no approved grant here.\n");
  else {
    for (const grant of grants) {
      const name = options.allNamespaces ? `${grant.metadata.namespace}/${grant.metadata.name}` : grant.metadata.name;
      const phase = phaseOf(grant);
      if (phase === "Active") terminal.out(`${tone(terminal, "good", "unchanged")} ${name}\n`);
      else {
        const lines = [
          `${tone(terminal, "warn", phase)} ${name}: ${printable(whyOf(grant))}`,
          ...changeLines(terminal, changesOf(grant), "  "),
        ];
        terminal.out(`${lines.join("\n")}\n`);
      }
    }
  }
  if (grants.some((grant) => phaseOf(grant) !== "Active")) throw new Exit(exitCodes.negative);
};
