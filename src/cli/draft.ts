import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { stringify } from "yaml";
import { Invalid } from "../api/errors.ts";
import type { Subject, ToolGrant } from "../api/generated/toolgrant.ts";
import { grantedTool, toolText } from "../grants/granted-tool.ts";
import { proposeGrants } from "../grants/proposals.ts";
import { sandboxedComponents } from "../grants/sandboxed-component.ts";
import type { Look } from "../local/look.ts";
import { seenComponent } from "../local/observe.ts";
import { problemText } from "../manifests/problem.ts";
import { type LookOptions, look } from "./look.ts";
import { parseSubject } from "./subjects.ts";
import { printable, type Terminal } from "./terminal.ts";

interface DraftOptions extends LookOptions {
  readonly component?: string;
  readonly out?: string;
  readonly subject: readonly string[];
  readonly json?: boolean;
}

/** Writes drafts for tools without a grant: to standard output, or a file each, never over one that exists. */
export const draft = async (terminal: Terminal, folder: string, options: DraftOptions): Promise<void> => {
  const found = await look(terminal, resolve(terminal.folder, folder), options);
  for (const problem of found.problems) terminal.err(`${printable(problemText(problem))}\n`);
  for (const { key, fault } of found.plan.components) {
    if (fault) terminal.err(`${key.workload}/${key.component} ${fault.code}: ${printable(fault.message)}\n`);
  }
  const { drafts, skipped } = draftsOf(found, options.component, options.subject.map(parseSubject));
  for (const line of skipped) terminal.err(`${printable(line)}\n`);
  if (options.out === undefined) {
    if (options.json)
      terminal.out(
        `${JSON.stringify(
          drafts.map(({ grant }) => grant),
          null,
          2,
        )}\n`,
      );
    else if (drafts.length > 0) terminal.out(drafts.map(draftYaml).join("---\n"));
  } else {
    const target = resolve(terminal.folder, options.out);
    await mkdir(target, { recursive: true });
    for (const one of drafts) {
      const file = join(target, `${one.grant.metadata.name}.yaml`);
      await writeFile(file, draftYaml(one), { flag: "wx" }).catch((cause: unknown) => {
        throw new Invalid("FileExists", `${file} is not written: it exists, or its folder cannot be written`, undefined, { cause });
      });
      terminal.out(options.json ? `${JSON.stringify({ file })}\n` : `${join(options.out, `${one.grant.metadata.name}.yaml`)}\n`);
    }
  }
  if (drafts.length === 0) terminal.err("Every tool has a grant: nothing to draft.\n");
};

interface Draft {
  readonly grant: ToolGrant;
  /** What a person has to do before it can be approved. */
  readonly asks: readonly string[];
}

const draftsOf = (found: Look, component: string | undefined, subjects: readonly Subject[]): { drafts: Draft[]; skipped: string[] } => {
  const drafts: Draft[] = [];
  const skipped: string[] = [];
  const ungranted = new Set(found.plan.ungranted.map(({ key, tool }) => JSON.stringify([key.namespace, toolText(tool)])));
  for (const { written, components } of found.workloads) {
    const { metadata } = written.object;
    const [namespace, workload] = [metadata.namespace ?? "default", metadata.name];
    const sources = sandboxedComponents(written.object.spec);
    const offered = [...components].map(([name, observation]) => ({
      source: sources.find((one) => one.name === name) ?? { name },
      offered: seenComponent(observation)?.offered ?? [],
    }));
    for (const { source, fn, grant, asks } of proposeGrants({ namespace, workload, components: offered })) {
      if (!ungranted.has(JSON.stringify([namespace, toolText(grantedTool(workload, source, fn))]))) continue;
      if (component !== undefined && component !== `${workload}/${source.name}`) continue;
      if (grant) drafts.push({ grant: subjects.length > 0 ? { ...grant, spec: { ...grant.spec, subjects } } : grant, asks });
      else skipped.push(`${workload}/${source.name} ${fn.name}: ${asks.join("; ")}`);
    }
  }
  return { drafts, skipped };
};

const draftYaml = ({ grant, asks }: Draft): string => {
  const comments = asks.map((ask) => `# Before approval: ${printable(ask).replaceAll("\n", " ")}\n`).join("");
  // A field named `y` or a text `no` is put in quotes: our own reader refuses it otherwise, since YAML 1.1 reads it as a boolean.
  return `${comments}${stringify(grant, { lineWidth: 120, compat: "yaml-1.1" })}`;
};
