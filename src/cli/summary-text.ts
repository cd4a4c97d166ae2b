import { excludedReason } from "../api/untyped.ts";
import { componentKeyText } from "../catalogue/state.ts";
import { farName } from "../grants/granted-tool.ts";
import type { JudgedGrant } from "../local/desired.ts";
import type { Summary } from "../local/runtime.ts";
import { problemText } from "../manifests/problem.ts";
import { printable, type Terminal, tone } from "./terminal.ts";

/** Tools of one component that are told to be left out; a server may list thousands. */
const mostNotOffered = 10;

/** What `up` serves now, and what it does not and why, for a person. */
export const summaryText = (terminal: Terminal, { problems, plan }: Summary): string => {
  const lines = problems.map(
    (problem) => `${tone(terminal, problem.severity === "error" ? "bad" : "dim", problem.severity)} ${printable(problemText(problem))}`,
  );
  for (const { key, fault, notOffered, unmatchedExclusions } of plan.components) {
    if (fault) lines.push(`${tone(terminal, "bad", componentKeyText(key))} ${fault.code}: ${printable(fault.message)}`);
    for (const entry of unmatchedExclusions)
      lines.push(`${tone(terminal, "warn", componentKeyText(key))} tools.exclude names ${printable(entry)}, which it does not export`);
    const leftOut = notOffered.filter(({ reason }) => reason !== excludedReason);
    for (const { function: tool, reason } of leftOut.slice(0, mostNotOffered))
      lines.push(`${tone(terminal, "dim", componentKeyText(key))} does not offer ${printable(JSON.stringify(tool))}: ${printable(reason)}`);
    if (leftOut.length > mostNotOffered)
      lines.push(`${tone(terminal, "dim", componentKeyText(key))} does not offer ${leftOut.length - mostNotOffered} more`);
  }
  const live = plan.grants.filter(({ judgement }) => judgement.phase === "Active");
  lines.push(
    `${live.length} of ${plan.grants.length} grants are live${live.length > 0 ? `: ${live.map(({ written }) => written.object.spec.declaration.name).join(", ")}` : ""}`,
  );
  for (const judged of plan.grants) if (judged.judgement.phase !== "Active") lines.push(withheldLine(terminal, judged));
  if (plan.ungranted.length > 0)
    lines.push(
      `${plan.ungranted.length} tools have no grant: \`ambit draft\` writes drafts for ${plan.ungranted
        .slice(0, 5)
        .map(({ tool }) => printable(farName(tool)))
        .join(", ")}${plan.ungranted.length > 5 ? ", …" : ""}`,
    );
  return `${lines.join("\n")}\n`;
};

const withheldLine = (terminal: Terminal, { written, judgement }: JudgedGrant): string => {
  const reasons = judgement.reasons.map(({ code, message }) => `${code}: ${message}`).join("; ");
  return `${tone(terminal, "warn", judgement.phase)} ${written.object.metadata.name} (${printable(written.object.spec.declaration.name)}): ${printable(reasons)}`;
};
