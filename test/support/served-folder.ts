import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ambit, type RunningUp, startUp } from "./ambit-command.ts";

/** A folder with one component, its tools drafted and approved as a person would, and `ambit up` to serve it. */
export interface ServedFolder {
  /** The folder of manifests; drafts and approved grants are in `grants` below. */
  readonly manifests: string;
  /** `more` are further arguments of `up`. */
  readonly start: (...more: readonly string[]) => Promise<RunningUp>;
  readonly remove: () => Promise<void>;
}

export const token = "bench";

/** `localResources` of the component, and the options by which commands run it. */
export interface Reach {
  readonly localResources: object;
  readonly hostOptions: readonly string[];
}

const workload = (spec: object): object => ({
  apiVersion: "ambit.dev/v1alpha1",
  kind: "Workload",
  metadata: { name: "bench", namespace: "agents" },
  spec,
});

/** `isWanted` chooses by the names of tools; the others stay drafts. */
export const prepareFolder = async (
  component: string,
  isWanted: (tool: string) => boolean = () => true,
  callsPerInstance = 1,
  reach: Reach = { localResources: {}, hostOptions: [] },
): Promise<ServedFolder> => {
  const { localResources, hostOptions } = reach;
  const tool = { name: "tool", image: "file:tool.wasm", reuse: { calls: callsPerInstance }, localResources };
  return prepareWorkload({ components: [tool] }, { "tool.wasm": component }, hostOptions, isWanted);
};

/** As `prepareFolder`, for a Workload with this spec; `files` are laid beside it, by their names there. */
export const prepareWorkload = async (
  spec: object,
  files: Readonly<Record<string, string>>,
  hostOptions: readonly string[],
  isWanted: (tool: string) => boolean = () => true,
): Promise<ServedFolder> => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-bench-"));
  const cache = ["--cache", join(folder, "cache")];
  const asUp = [...cache, ...hostOptions];
  const manifests = join(folder, "manifests");
  await mkdir(manifests);
  for (const [name, path] of Object.entries(files)) await cp(path, join(manifests, name));
  await writeFile(join(manifests, "workload.yaml"), JSON.stringify(workload(spec)));
  await run("draft", manifests, "--out", join(manifests, "grants"), "--subject", "ServiceAccount:agents/bench", ...asUp);
  const { grants } = JSON.parse(await run("review", manifests, "--json", ...asUp)) as { grants: { file: string; name: string }[] };
  const chosen = grants.filter(({ name }) => isWanted(name));
  await run("approve", "--yes", "--read-only", "--reviewer", "bench", ...asUp, ...chosen.map(({ file }) => file));
  return {
    manifests,
    start: (...more) => startUp(manifests, ["--token", token, "--journal", "/dev/null", ...asUp, ...more]),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
};

const run = async (...args: string[]): Promise<string> => {
  const { code, out, err } = await ambit(args);
  if (code !== 0) throw new Error(`ambit ${args[0]} exited with ${code}: ${err}`);
  return out;
};

/** Resident memory of a process in MB (Linux). */
export const residentMegabytes = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
};
