import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

/**
 * Drafts and approves the grants of the examples and of the demo anew, as their maintainers do after a component changed: read the diff of what it writes before committing it.
 * Who may call what, and which tools mutate, is decided here.
 */
const root = fileURLToPath(new URL("..", import.meta.url));
const ambit = join(root, "src/cli/main.ts");

interface Approval {
  readonly folder: string;
  readonly component: string;
  /** Grants are written to this file in `folder`. */
  readonly file: string;
  readonly subject: string;
  readonly decision: "--read-only" | "--accept-untrusted";
  /** What a component that lists its own tools reads. */
  readonly volume?: string;
}

const triage = "ServiceAccount:agents/triage";
const editor = "ServiceAccount:agents/editor";
const notices = `notices=${join(root, "examples/notices/notices")}`;
const approvals: readonly Approval[] = [
  { folder: "demo/manifests", component: "github/github", file: "github-grants.yaml", subject: triage, decision: "--read-only" },
  { folder: "demo/manifests", component: "fetch/fetch", file: "fetch-grants.yaml", subject: triage, decision: "--read-only" },
  { folder: "demo/manifests", component: "workspace/read", file: "workspace-read-grants.yaml", subject: editor, decision: "--read-only" },
  {
    folder: "demo/manifests",
    component: "workspace/write",
    file: "workspace-write-grants.yaml",
    subject: editor,
    decision: "--accept-untrusted",
  },
  { folder: "examples/github", component: "github/github", file: "grants.yaml", subject: triage, decision: "--read-only" },
  { folder: "examples/fetch", component: "fetch/fetch", file: "grants.yaml", subject: triage, decision: "--read-only" },
  {
    folder: "examples/workspace-read",
    component: "workspace-read/workspace-read",
    file: "grants.yaml",
    subject: editor,
    decision: "--read-only",
  },
  {
    folder: "examples/workspace-write",
    component: "workspace-write/workspace-write",
    file: "grants.yaml",
    subject: editor,
    decision: "--accept-untrusted",
  },
  {
    folder: "demo/manifests",
    component: "notices/notices",
    file: "notices-grants.yaml",
    subject: editor,
    decision: "--read-only",
    volume: notices,
  },
  {
    folder: "examples/notices",
    component: "notices/notices",
    file: "grants.yaml",
    subject: editor,
    decision: "--read-only",
    volume: notices,
  },
];

const run = (...args: string[]): string => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [ambit, ...args], { encoding: "utf8" });
  if (status !== 0) throw new Error(`ambit ${args.join(" ")} exited with ${status}: ${stderr}`);
  return stdout;
};

const wanted = process.argv.slice(2);
for (const { folder, component, file, subject, decision, volume } of approvals) {
  if (wanted.length > 0 && !wanted.includes(folder)) continue;
  const path = join(root, folder, file);
  const volumes = volume === undefined ? [] : ["--volume", volume];
  rmSync(path, { force: true });
  const drafts = run("draft", join(root, folder), "--component", component, "--subject", subject, ...volumes);
  writeFileSync(path, drafts);
  run("approve", path, "--yes", decision, "--reviewer", "maintainers", "--folder", join(root, folder), ...volumes);
  const count = parseAllDocuments(readFileSync(path, "utf8")).length;
  process.stdout.write(`${folder}/${file}: ${count} grants\n`);
}
