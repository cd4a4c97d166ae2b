import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Stalled } from "../../src/api/errors.ts";
import { exclusively } from "./exclusive.ts";
import { buildCache } from "./places.ts";

/**
 * The programs that a test cluster is made of, each built by Go from the module that `tools/NAME/go.mod` and `go.sum` pin, into a folder of the cache that
 * is named after the version and the recipe. A module each, since their requirements disagree.
 */
interface Recipe {
  /** The module whose version names the build; none where the source is in the folder itself. */
  readonly module?: string;
  /** Package of each program, by the program's name. */
  readonly programs: Readonly<Record<string, string>>;
  readonly tags?: string;
  /** Flags of the linker for that version. */
  readonly link?: (version: string) => string;
  /** Said while it is built, for two cores. */
  readonly takes: string;
}

const kubernetes = "k8s.io/kubernetes/cmd";
const containerd = "github.com/containerd/containerd/v2";
const registry = "github.com/google/go-containerregistry";

/** Programs ask Kubernetes for its version, which its own build scripts write with the linker. */
const kubernetesVersion = (version: string): string => {
  const [major, minor] = version.replace(/^v/, "").split(".");
  const set = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: "clean" };
  return ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
    .flatMap((path) => Object.entries(set).map(([name, value]) => `-X ${path}.${name}=${value}`))
    .join(" ");
};

const recipes = {
  kubernetes: {
    module: "k8s.io/kubernetes",
    programs: Object.fromEntries(
      ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"].map((name) => [
        name,
        `${kubernetes}/${name}`,
      ]),
    ),
    link: kubernetesVersion,
    takes: "about seven minutes",
  },
  etcd: { module: "go.etcd.io/etcd/server/v3", programs: { etcd: "go.etcd.io/etcd/server/v3" }, takes: "about half a minute" },
  containerd: {
    module: containerd,
    programs: {
      containerd: `${containerd}/cmd/containerd`,
      "containerd-shim-runc-v2": `${containerd}/cmd/containerd-shim-runc-v2`,
      ctr: `${containerd}/cmd/ctr`,
    },
    tags: "no_btrfs no_devmapper no_zfs",
    takes: "about a minute",
  },
  "kube-router": {
    module: "github.com/cloudnativelabs/kube-router/v2",
    programs: { "kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router" },
    takes: "about two minutes",
  },
  coredns: { module: "github.com/coredns/coredns", programs: { coredns: "github.com/coredns/coredns" }, takes: "about two minutes" },
  helm: { module: "helm.sh/helm/v4", programs: { helm: "helm.sh/helm/v4/cmd/helm" }, takes: "about two minutes" },
  "go-containerregistry": {
    module: registry,
    programs: { crane: `${registry}/cmd/crane`, registry: `${registry}/cmd/registry` },
    takes: "a few seconds",
  },
  pause: { programs: { pause: "." }, takes: "a few seconds" },
} satisfies Record<string, Recipe>;

export type ToolName = keyof typeof recipes;

/** What an API server alone needs. */
export const apiTools = { kubernetes: ["kube-apiserver", "kubectl"], etcd: ["etcd"] } as const;

/** What a node needs, and the clients that suites on it use. */
export const nodeTools: Readonly<Record<ToolName, readonly string[]>> = Object.fromEntries(
  Object.entries(recipes).map(([name, { programs }]) => [name, Object.keys(programs)]),
) as Record<ToolName, string[]>;

type Wanted = Readonly<Partial<Record<ToolName, readonly string[]>>>;

const recipeOf = (name: ToolName): Recipe => recipes[name];

const sourceFolder = (name: ToolName): string => join(import.meta.dirname, "tools", name);

/** The version in the tool's go.mod; `source` for what is written here. */
export const toolVersion = (name: ToolName): string => {
  const { module } = recipeOf(name);
  if (module === undefined) return "source";
  const text = readFileSync(join(sourceFolder(name), "go.mod"), "utf8");
  const version = text.split("\n").flatMap((line) => {
    const words = line
      .trim()
      .replace(/^require /, "")
      .split(/\s+/);
    return words[0] === module && words[1]?.startsWith("v") ? [words[1]] : [];
  })[0];
  if (version === undefined) throw new Error(`test/cluster/tools/${name}/go.mod does not require ${module}`);
  return version;
};

/** Folder of the tool's programs, whether they are built yet or not. Changes with whatever changes their bytes: the pinned modules and how they are built. */
export const toolFolder = (name: ToolName): string => {
  const version = toolVersion(name);
  const hash = createHash("sha256").update(
    JSON.stringify([linkerFlags(name, version), recipeOf(name).tags, process.platform, process.arch]),
  );
  for (const file of ["go.mod", "go.sum", "main.go"]) {
    const path = join(sourceFolder(name), file);
    if (existsSync(path)) hash.update(readFileSync(path));
  }
  return join(buildCache(), `${name}-${version}-${hash.digest("hex").slice(0, 12)}`);
};

/** Path of one program, whether it is built yet or not. */
export const program = (tool: ToolName, name: string): string => join(toolFolder(tool), name);

const linkerFlags = (name: ToolName, version: string): string => ["-s -w", recipeOf(name).link?.(version)].filter(Boolean).join(" ");

const unbuilt = (wanted: Wanted): [ToolName, string[]][] =>
  (Object.entries(wanted) as [ToolName, readonly string[]][])
    .map(([tool, programs]): [ToolName, string[]] => [tool, programs.filter((name) => !existsSync(program(tool, name)))])
    .filter(([, programs]) => programs.length > 0);

/** Whether every one of these is there already. */
export const areBuilt = (wanted: Wanted): boolean => unbuilt(wanted).length === 0;

/** The sentence that says why these can't be built here, or null where they can or are. */
export const whyNotBuildable = async (wanted: Wanted): Promise<string | null> => {
  if (areBuilt(wanted)) return null;
  return promisify(execFile)("go", ["version"]).then(
    () => null,
    () =>
      `no \`go\` on the PATH to build ${unbuilt(wanted)
        .map(([tool]) => tool)
        .join(", ")} with: install Go 1.26 or newer`,
  );
};

/**
 * Builds what is not there yet, telling `say` what it does and, every half minute, that it still does. A second process that wants the same waits and then
 * finds it built. Throws `Stalled`: `GoMissing`, or `ToolNotBuilt` with the compiler's last lines.
 */
export const buildTools = async (wanted: Wanted, say: (line: string) => void): Promise<void> => {
  if (areBuilt(wanted)) return;
  const reason = await whyNotBuildable(wanted);
  if (reason !== null) throw new Stalled("GoMissing", reason);
  const waiting = (): void => say("another process is building the test cluster's tools: waiting for it");
  await exclusively(join(buildCache(), "build.lock"), waiting, async () => {
    for (const [tool, programs] of unbuilt(wanted)) await build(tool, programs, say);
  });
};

const build = async (tool: ToolName, programs: readonly string[], say: (line: string) => void): Promise<void> => {
  const { programs: packages, tags, takes } = recipeOf(tool);
  const version = toolVersion(tool);
  const folder = toolFolder(tool);
  say(`building ${programs.join(", ")} (${tool} ${version}) into ${folder}: ${takes} on two cores, once`);
  const started = Date.now();
  const elapsed = (): string => `${Math.round((Date.now() - started) / 1000)} s`;
  const progress = setInterval(() => say(`still building ${tool} ${version}: ${elapsed()}`), 30_000);
  await mkdir(folder, { recursive: true });
  const scratch = await mkdtemp(join(folder, "building-"));
  try {
    // Into a folder: one invocation compiles what they share once, and links them side by side.
    const args = ["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", linkerFlags(tool, version), "-o", `${scratch}/`];
    if (tags !== undefined) args.push("-tags", tags);
    await go(tool, [...args, ...programs.map((name) => packages[name] ?? name)]);
    for (const name of programs) {
      await chmod(join(scratch, outputName(tool, name)), 0o755);
      await rename(join(scratch, outputName(tool, name)), join(folder, name));
    }
    say(`built ${tool} ${version} in ${elapsed()}`);
  } finally {
    clearInterval(progress);
    await rm(scratch, { recursive: true, force: true });
  }
};

/** Go names a program after its package's last element, or the one before where that is a major version. */
const outputName = (tool: ToolName, name: string): string => {
  const path = recipeOf(tool).programs[name] ?? name;
  if (path === ".") return name;
  const elements = path.split("/");
  const last = elements.pop() ?? name;
  return /^v[0-9]+$/.test(last) ? (elements.pop() ?? last) : last;
};

/** How much of a failed build's output is kept for its message. */
const keptOutput = 4000;

const go = async (tool: ToolName, args: readonly string[]): Promise<void> => {
  // Without C: the programs then run in any image and need no compiler besides Go.
  const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "", GOWORK: "off" };
  const child = spawn("go", args, { cwd: sourceFolder(tool), env, stdio: ["ignore", "ignore", "pipe"] });
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-keptOutput);
  });
  const [code, signal] = await once(child, "close");
  if (code !== 0) throw new Stalled("ToolNotBuilt", `building ${tool} ended with ${code ?? signal}:\n${output}`);
};
