import { lstat } from "node:fs/promises";
import { resolve } from "node:path";
import { Invalid } from "../api/errors.ts";
import type { JudgedGrant } from "../local/desired.ts";
import { folderOfWorkloads } from "../local/look.ts";
import { loadManifests } from "../manifests/load.ts";
import { changeLines } from "./approval.ts";
import { type LookOptions, look } from "./look.ts";
import { grantReport } from "./review.ts";
import { Exit, exitCodes, printable, type Terminal, tone } from "./terminal.ts";

interface DiffOptions extends LookOptions {
  readonly folder?: string;
  readonly json?: boolean;
}

/** Tells, for each reviewed grant, what is otherwise than when it was approved. Exits 1 where anything is. */
export const diff = async (terminal: Terminal, path: string, options: DiffOptions): Promise<void> => {
  const grants = await grantsAt(terminal, path, options);
  const differing = grants.filter(({ written, judgement }) => written.object.spec.review && judgement.phase !== "Active");
  if (options.json) terminal.out(`${JSON.stringify({ grants: grants.map(grantReport) }, null, 2)}\n`);
  else if (grants.length === 0) terminal.err("There is no grant here.\n");
  else for (const judged of grants) terminal.out(diffText(terminal, judged));
  if (differing.length > 0) throw new Exit(exitCodes.negative);
};

/** The grants of a folder, or only those of one file, judged. */
export const grantsAt = async (terminal: Terminal, path: string, options: DiffOptions): Promise<readonly JudgedGrant[]> => {
  const absolute = resolve(terminal.folder, path);
  const found = await lstat(absolute).catch((cause: unknown) => {
    throw new Invalid("NoSuchFolder", `there is no file or folder ${path}`, undefined, { cause });
  });
  if (found.isDirectory()) return (await look(terminal, absolute, options)).plan.grants;
  const { objects } = await loadManifests(absolute);
  const own = objects.filter((object) => object.kind === "ToolGrant");
  const folder = options.folder ? resolve(terminal.folder, options.folder) : await folderOfWorkloads(absolute, own);
  const { plan } = await look(terminal, folder, options);
  return plan.grants.filter(({ written }) => resolve(written.file) === absolute);
};

const diffText = (terminal: Terminal, { written, judgement }: JudgedGrant): string => {
  const { name } = written.object.metadata;
  if (judgement.phase === "Active") return `${tone(terminal, "good", "unchanged")} ${name}\n`;
  const lines = [
    `${tone(terminal, "warn", judgement.phase)} ${name}: ${printable(judgement.reasons.map(({ code, message }) => `${code}: ${message}`).join("; "))}`,
  ];
  lines.push(...changeLines(terminal, judgement.changes, "  "));
  return `${lines.join("\n")}\n`;
};
