import { resolve } from "node:path";
import type { Declaration } from "../api/declaration.ts";
import type { ToolGrantSpec } from "../api/generated/toolgrant.ts";
import { type ProviderFormat, providerFormats } from "../declaration/formats.ts";
import { crowdedProviders, providerFindings } from "../declaration/provider-findings.ts";
import { hiddenCharactersIn } from "../grants/hidden-characters.ts";
import { loadManifests } from "../manifests/load.ts";
import type { problemText } from "../manifests/problem.ts";
import { assertUsableSchema } from "../translate/schema-usable.ts";
import { type LookOptions, look } from "./look.ts";
import { Exit, exitCodes, printable, type Terminal, tone } from "./terminal.ts";

interface CheckOptions extends LookOptions {
  readonly schemasOnly?: boolean;
  /** All where there is none. */
  readonly provider: readonly ProviderFormat[];
  readonly json?: boolean;
}

/** One thing that a person should mend. `where` is `file:line:column`, or the component. */
interface Finding {
  readonly where: string;
  readonly code: string;
  readonly message: string;
  readonly severity: "error" | "notice";
}

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
    const providers = options.provider.length > 0 ? options.provider : providerFormats;
    for (const { written } of found.plan.grants)
      findings.push(...declarationFindings(`${written.file}:${written.line}:1`, written.object.spec.declaration, providers));
    findings.push(
      ...crowdingFindings(
        found.plan.grants.map(({ written }) => written.object.spec),
        providers,
      ),
    );
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

const declarationFindings = (where: string, declaration: Declaration, providers: readonly ProviderFormat[]): Finding[] => [
  ...providerFindings(declaration, providers).map(
    ({ providers: refusing, message }): Finding => ({
      where,
      code: "ProviderRefuses",
      message: `${refusing.join(", ")} would refuse ${declaration.name || "the tool"}: ${message}`,
      severity: "error",
    }),
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

/** Subjects that more grants name than a provider's list holds. What each caller is offered, only a catalogue knows: several subjects may name the same one. */
const crowdingFindings = (specs: readonly Pick<ToolGrantSpec, "subjects">[], providers: readonly ProviderFormat[]): Finding[] => {
  const counts = new Map<string, number>();
  for (const { subjects = [] } of specs) {
    for (const { kind, namespace, name } of subjects) {
      const subject = `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
      counts.set(subject, (counts.get(subject) ?? 0) + 1);
    }
  }
  return [...counts].flatMap(([subject, tools]) =>
    crowdedProviders(tools, providers).map(
      ({ provider, most }): Finding => ({
        where: subject,
        code: "TooManyTools",
        message: `${tools} grants name it, and ${provider} takes ${most} tools in a request; the rest is left to search`,
        severity: "notice",
      }),
    ),
  );
};
