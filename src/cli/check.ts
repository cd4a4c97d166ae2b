import { resolve } from "node:path";
import type { Declaration } from "../api/declaration.ts";
import { declarationFormats, type ProviderFormat } from "../declaration/formats.ts";
import { lintDeclaration } from "../declaration/provider-rules.ts";
import { hiddenCharactersIn } from "../grants/hidden-characters.ts";
import { loadManifests } from "../manifests/load.ts";
import type { problemText } from "../manifests/problem.ts";
import { assertUsableSchema } from "../translate/schema-usable.ts";
import { type LookOptions, look } from "./look.ts";
import { Exit, exitCodes, printable, type Terminal, tone } from "./terminal.ts";

interface CheckOptions extends LookOptions {
  readonly schemasOnly?: boolean;
  readonly json?: boolean;
}

/** One thing that a person should mend. `where` is `file:line:column`, or the component. */
interface Finding {
  readonly where: string;
  readonly code: string;
  readonly message: string;
  readonly severity: "error" | "notice";
}

const providers = declarationFormats.filter((format): format is ProviderFormat => format !== "neutral");

/** Checks a folder as an API server, a reviewer and the providers would. Nothing runs but components that list their own tools. Exits 1 on errors. */
export const check = async (terminal: Terminal, folder: string, options: CheckOptions): Promise<void> => {
  const path = resolve(terminal.folder, folder);
  const findings: Finding[] = [];
  let objects = 0;
  if (options.schemasOnly) {
    const read = await loadManifests(path, { assertUsableSchema });
    objects = read.objects.length;
    findings.push(...read.problems.map(problemFinding));
  } else {
    const found = await look(terminal, path, options);
    objects = found.objects.length;
    findings.push(...found.problems.map(problemFinding));
    for (const { key, fault, unmatchedExclusions, notOffered } of found.plan.components) {
      const where = `${key.namespace}/${key.workload}/${key.component}`;
      if (fault) findings.push({ where, ...fault, severity: "error" });
      for (const entry of unmatchedExclusions)
        findings.push({
          where,
          code: "ExclusionUnmatched",
          message: `tools.exclude names ${entry}, which is not exported`,
          severity: "error",
        });
      for (const one of notOffered)
        findings.push({ where, code: "NotOffered", message: `${one.function} is not offered: ${one.reason}`, severity: "notice" });
    }
    for (const { written, judgement } of found.plan.grants) {
      const where = `${written.file}:${written.line}:1`;
      for (const { code, message } of judgement.reasons)
        findings.push({ where, code, message, severity: judgement.phase === "Draft" ? "notice" : "error" });
    }
    for (const { written } of found.plan.grants)
      findings.push(...declarationFindings(`${written.file}:${written.line}:1`, written.object.spec.declaration));
  }
  const errors = findings.filter(({ severity }) => severity === "error");
  if (options.json) terminal.out(`${JSON.stringify({ objects, errors: errors.length, findings }, null, 2)}\n`);
  else {
    for (const { where, code, message, severity } of findings)
      terminal.out(`${tone(terminal, severity === "error" ? "bad" : "dim", severity)} ${printable(`${where}: ${message}`)} [${code}]\n`);
    terminal.out(`${objects} objects, ${errors.length} errors, ${findings.length - errors.length} notices\n`);
  }
  if (errors.length > 0) throw new Exit(exitCodes.negative);
};

const problemFinding = (problem: Parameters<typeof problemText>[0]): Finding => ({
  where: `${problem.file}:${problem.line}:${problem.column}`,
  code: problem.code,
  message: problem.path === "" ? problem.message : `${problem.message} (${problem.path})`,
  severity: problem.severity,
});

const declarationFindings = (where: string, declaration: Declaration): Finding[] => [
  ...providers.flatMap((provider) =>
    lintDeclaration(declaration, provider).map(
      (breach): Finding => ({
        where,
        code: "ProviderRefuses",
        message: `${provider} would refuse ${declaration.name}: ${breach.message}`,
        severity: "error",
      }),
    ),
  ),
  ...hiddenCharactersIn({ ...declaration }).map(
    ({ path, codePoint, name }): Finding => ({
      where,
      code: "HiddenCharacters",
      message: `${codePoint} ${name} in ${path}`,
      severity: "error",
    }),
  ),
];
