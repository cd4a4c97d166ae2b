import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { stringify } from "yaml";
import { Invalid } from "../api/errors.ts";
import type { Subject, ToolGrant } from "../api/generated/toolgrant.ts";
import { draftNames } from "../declaration/names.ts";
import { draftGrant } from "../grants/draft.ts";
import { type Look, lookAt } from "../local/look.ts";
import { seenComponent } from "../local/observe.ts";
import { problemText } from "../manifests/problem.ts";
import { cacheFolderOf, componentSource } from "./component-source.ts";
import { parseSubject } from "./subjects.ts";
import { printable, type Terminal } from "./terminal.ts";

interface DraftOptions {
  readonly component?: string;
  readonly out?: string;
  readonly subject: readonly string[];
  readonly cache?: string;
  readonly json?: boolean;
}

/** Writes drafts for tools without a grant: to standard output, or a file each, never over one that exists. */
export const draft = async (terminal: Terminal, folder: string, options: DraftOptions): Promise<void> => {
  const look = await lookAt(resolve(terminal.folder, folder), componentSource(terminal, cacheFolderOf(terminal, options.cache)));
  for (const problem of look.problems) terminal.err(`${printable(problemText(problem))}\n`);
  for (const { key, fault } of look.plan.components) {
    if (fault) terminal.err(`${key.workload}/${key.component} ${fault.code}: ${printable(fault.message)}\n`);
  }
  const { drafts, skipped } = draftsOf(look, options.component, options.subject.map(parseSubject));
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

const draftsOf = (look: Look, component: string | undefined, subjects: readonly Subject[]): { drafts: Draft[]; skipped: string[] } => {
  const drafts: Draft[] = [];
  const skipped: string[] = [];
  const ungranted = new Set(look.plan.ungranted.map((tool) => JSON.stringify([tool.key, tool.interface, tool.function])));
  for (const { written, components } of look.workloads) {
    const { metadata } = written.object;
    const namespace = metadata.namespace ?? "default";
    const all = [...components].flatMap(([name, observation]) =>
      (seenComponent(observation)?.offered ?? []).map((fn) => ({ name: fn.name, interface: fn.interface, fn, component: name })),
    );
    const names = draftNames(all);
    for (const tool of all) {
      const key = { namespace, workload: metadata.name, component: tool.component };
      if (!ungranted.has(JSON.stringify([key, tool.interface, tool.name]))) continue;
      if (component !== undefined && component !== `${key.workload}/${key.component}`) continue;
      try {
        const name = names.get(tool);
        const grant = draftGrant({ ...key, fn: tool.fn, name: name?.name ?? null });
        const asks = [
          ...(name?.name === null ? [name.message] : []),
          ...(tool.fn.docs === "" ? ["the component documents nothing here: write spec.declaration.description"] : []),
        ];
        drafts.push({ grant: subjects.length > 0 ? { ...grant, spec: { ...grant.spec, subjects } } : grant, asks });
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        skipped.push(`${key.workload}/${key.component} ${tool.name}: ${error.message}`);
      }
    }
  }
  return { drafts, skipped };
};

const draftYaml = ({ grant, asks }: Draft): string => {
  const comments = asks.map((ask) => `# Before approval: ${printable(ask).replaceAll("\n", " ")}\n`).join("");
  // A field named `y` or a text `no` is put in quotes: our own reader refuses it otherwise, since YAML 1.1 reads it as a boolean.
  return `${comments}${stringify(grant, { lineWidth: 120, compat: "yaml-1.1" })}`;
};
