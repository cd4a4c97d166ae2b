import { resolve } from "node:path";
import { farName } from "../grants/granted-tool.ts";
import type { JudgedGrant } from "../local/desired.ts";
import { problemText } from "../manifests/problem.ts";
import { subjectsText } from "./approval.ts";
import { type LookOptions, look } from "./look.ts";
import { printable, type Terminal, table, tone } from "./terminal.ts";

interface ReviewOptions extends LookOptions {
  readonly json?: boolean;
}

/** Lists what every grant of a folder is worth now. */
export const review = async (terminal: Terminal, folder: string, options: ReviewOptions): Promise<void> => {
  const found = await look(terminal, resolve(terminal.folder, folder), options);
  if (options.json) {
    const { problems, plan } = found;
    terminal.out(`${JSON.stringify({ problems, grants: plan.grants.map(grantReport), ungranted: plan.ungranted }, null, 2)}\n`);
    return;
  }
  for (const problem of found.problems) terminal.err(`${printable(problemText(problem))}\n`);
  const rows = found.plan.grants.map(({ written, judgement }) => [
    judgement.phase,
    written.object.spec.declaration.name || "(no name)",
    written.object.metadata.name,
    subjectsText(written.object.spec.subjects ?? []),
    judgement.reasons.map(({ code, message }) => `${code}: ${message}`).join("; "),
  ]);
  if (rows.length > 0) terminal.out(printable(table([["PHASE", "TOOL", "GRANT", "FOR", "WHY"], ...rows])));
  for (const { key, fault } of found.plan.components) {
    if (fault) terminal.out(`${tone(terminal, "bad", `${key.workload}/${key.component}`)} ${fault.code}: ${printable(fault.message)}\n`);
  }
  for (const { key, tool } of found.plan.ungranted)
    terminal.out(`No grant  ${printable(farName(tool))} of ${key.workload}/${key.component}: \`ambit draft\` writes one\n`);
  if (rows.length === 0 && found.plan.ungranted.length === 0) terminal.out("There is no grant and no tool here.\n");
};

export const grantReport = ({ written, judgement }: JudgedGrant) => ({
  namespace: written.object.metadata.namespace ?? "default",
  grant: written.object.metadata.name,
  file: written.file,
  line: written.line,
  name: written.object.spec.declaration.name,
  phase: judgement.phase,
  reasons: judgement.reasons,
  changes: judgement.changes,
});
