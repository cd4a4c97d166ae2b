import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { HostConfig } from "../api/host.ts";
import { pathsForMounts } from "./wasi/filesystem/mount-paths.ts";

/** Pages of 64 KiB that any one memory in the process may have: a second fence behind the clamped maxima, and a cap on jco's own memory. */
const maxMemoryPages = 16_384;

/**
 * How V8 collects garbage in a host. Left to itself it collects the whole heap for every few dozen megabytes of guests' memory, on all cores: more than all
 * else that a short call costs. Workers collect by themselves between calls (`GuestCalls.collect`), and their heaps are too small for help from other
 * threads to pay.
 */
export const engineFlags: readonly string[] = [
  "--expose-gc",
  "--single-threaded-gc",
  "--no-incremental-marking",
  "--external-memory-accounted-in-global-limit",
  "--external-memory-max-growing-factor=8",
];

/**
 * The flags of Node under which a host runs, the same in a pod and as a child of the embedded runtime: no file but Ambit's own code, the cache, the
 * mounts and, to read, the folders of secrets, no child process, no native addon, no inspector, no code from strings.
 */
export const hostArguments = (config: Pick<HostConfig, "cacheFolder" | "mounts" | "secretFolders">): string[] => [
  "--permission",
  "--allow-worker",
  "--allow-net",
  ...[
    packageFolder,
    dependencyFolder,
    config.cacheFolder,
    ...pathsForMounts(config.mounts).read,
    ...(config.secretFolders ?? []).map(({ folder }) => folder),
  ].map((path) => `--allow-fs-read=${path}`),
  ...[config.cacheFolder, ...pathsForMounts(config.mounts).write].map((path) => `--allow-fs-write=${path}`),
  "--disallow-code-generation-from-strings",
  `--wasm-max-mem-pages=${maxMemoryPages}`,
  ...engineFlags,
  "--disable-warning=ExperimentalWarning",
  // --allow-worker: the workers run under the same permissions, and the only code in them is ours and what jco made.
  "--disable-warning=PERM0006",
];

/**
 * The environment of a host process, and all of it. Node keeps compiled code (and TypeScript with its types stripped) in the cache folder: a host starts in
 * half the time and half the memory.
 */
export const hostEnvironment = (config: Pick<HostConfig, "cacheFolder">): Record<string, string> => ({
  NODE_COMPILE_CACHE: join(config.cacheFolder, "node"),
  // The C library keeps what transpiling had taken for ever otherwise: some 30 MB.
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "65536",
  MALLOC_TRIM_THRESHOLD_: "262144",
});

/** Script that a host process runs, after the arguments above. */
export const hostEntry = fileURLToPath(new URL(`./process${import.meta.url.slice(-3)}`, import.meta.url));

/** Folder of our `package.json`, which Node reads to know what our files are: two above in the sources, three in `dist`. */
const packageFolder = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "../../" : "../../../", import.meta.url));

/** Where our dependencies lie really: beside us, not below, where another package depends on us. */
const dependencyFolder = ((path: string): string => path.slice(0, path.lastIndexOf("node_modules") + "node_modules".length))(
  fileURLToPath(import.meta.resolve("@bytecodealliance/jco-transpile/component")),
);
