import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const entry = join(root, "src/cli/main.ts");

/** A folder with one component, its tools drafted and approved as a person would, and `ambit up` serving it. */
export interface ServedFolder {
  readonly folder: string;
  readonly cache: string;
  readonly start: () => Promise<Served>;
  readonly remove: () => Promise<void>;
}

export interface Served {
  readonly url: string;
  readonly token: string;
  readonly process: ChildProcess;
  readonly hostPids: readonly number[];
  readonly stop: () => Promise<void>;
}

export const prepareFolder = async (component: string): Promise<ServedFolder> => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-bench-"));
  const cache = join(folder, "cache");
  const manifests = join(folder, "manifests");
  await mkdir(manifests);
  await cp(component, join(manifests, "tool.wasm"));
  await writeFile(
    join(manifests, "workload.yaml"),
    "apiVersion: ambit.dev/v1alpha1\nkind: Workload\nmetadata: {name: bench, namespace: agents}\nspec:\n  components:\n  - {name: tool, image: 'file:tool.wasm'}\n",
  );
  await ambit("draft", manifests, "--out", join(manifests, "grants"), "--subject", "ServiceAccount:agents/bench", "--cache", cache);
  for (const file of (await ambit("review", manifests, "--json", "--cache", cache)).grants ?? []) {
    await ambit("approve", file.file, "--yes", "--read-only", "--reviewer", "bench", "--cache", cache);
  }
  return { folder, cache, start: () => serve(manifests, cache), remove: () => rm(folder, { recursive: true, force: true }) };
};

const ambit = async (...args: string[]): Promise<{ grants?: { file: string }[] }> => {
  const child = spawn(process.execPath, [entry, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`ambit ${args[0]} exited with ${code}`);
  return text.trimStart().startsWith("{") ? JSON.parse(text) : {};
};

const serve = async (manifests: string, cache: string): Promise<Served> => {
  const child = spawn(
    process.execPath,
    [entry, "up", manifests, "--port", "0", "--token", "bench", "--json", "--cache", cache, "--journal", "/dev/null"],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const hostPids: number[] = [];
  let url = "";
  for await (const line of createInterface({ input: child.stdout })) {
    const event = JSON.parse(line) as { event: string; url?: string; pid?: number };
    if (event.event === "listening") url = event.url ?? "";
    if (event.event === "host-ready" && event.pid) hostPids.push(event.pid);
    if (event.event === "settled") break;
  }
  child.stdout.resume();
  return {
    url,
    token: "bench",
    process: child,
    hostPids,
    stop: async () => {
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
};

/** Resident memory of a process in MB (Linux). */
export const residentMegabytes = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1024;
};
