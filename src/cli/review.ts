import { resolve } from "node:path";
import { farName } from "../grants/granted-tool.ts";
import type { JudgedGrant } from "../local/desired.ts";
import { lookAt } from "../local/look.ts";
import { problemText } from "../manifests/problem.ts";
import { subjectsText } from "./approval.ts";
import { cacheFolderOf, componentSource } from "./component-source.ts";
import { printable, type Terminal, table, tone } from "./terminal.ts";

interface ReviewOptions {
  readonly cache?: string;
  readonly json?: boolean;
}

/** Lists what every grant of a folder is worth now. */
export const review = async (terminal: Terminal, folder: string, options: ReviewOptions): Promise<void> => {
  const look = await lookAt(resolve(terminal.folder, folder), componentSource(terminal, cacheFolderOf(terminal, options.cache)));
  if (options.json) {
    const { problems, plan } = look;
    terminal.out(`${JSON.stringify({ problems, grants: plan.grants.map(grantReport), ungranted: plan.ungranted }, null, 2)}\n`);
    return;
  }
  for (const problem of look.problems) terminal.err(`${printable(problemText(problem))}\n`);
  const rows = look.plan.grants.map(({ written, judgement }) => [
    judgement.phase,
    written.object.spec.declaration.name || "(no name)",
    written.object.metadata.name,
    subjectsText(written.object.spec.subjects ?? []),
    judgement.reasons.map(({ code, message }) => `${code}: ${message}`).join("; "),
  ]);
  if (rows.length > 0) terminal.out(printable(table([["PHASE", "TOOL", "GRANT", "FOR", "WHY"], ...rows])));
  for (const { key, fault } of look.plan.components) {
    if (fault) terminal.out(`${tone(terminal, "bad", `${key.workload}/${key.component}`)} ${fault.code}: ${printable(fault.message)}\n`);
  }
  for (const { key, tool } of look.plan.ungranted)
    terminal.out(`No grant  ${printable(farName(tool))} of ${key.workload}/${key.component}: \`ambit draft\` writes one\n`);
  if (rows.length === 0 && look.plan.ungranted.length === 0) terminal.out("There is no grant and no tool here.\n");
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
