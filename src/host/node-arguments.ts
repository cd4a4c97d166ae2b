import { fileURLToPath } from "node:url";
import type { HostConfig } from "../api/host.ts";
import { pathsForMounts } from "./wasi/filesystem/mount-paths.ts";

/** Pages of 64 KiB that any one memory in the process may have: a second fence behind the clamped maxima, and a cap on jco's own memory. */
const maxMemoryPages = 16_384;

/**
 * The flags of Node under which a host runs, the same in a pod and as a child of the embedded runtime: no file but Ambit's own code, the cache and the
 * mounts, no child process, no native addon, no inspector, no code from strings.
 */
export const hostArguments = (config: Pick<HostConfig, "cacheFolder" | "mounts">): string[] => [
  "--permission",
  "--allow-worker",
  "--allow-net",
  ...[packageFolder, config.cacheFolder, ...pathsForMounts(config.mounts).read].map((path) => `--allow-fs-read=${path}`),
  ...[config.cacheFolder, ...pathsForMounts(config.mounts).write].map((path) => `--allow-fs-write=${path}`),
  "--disallow-code-generation-from-strings",
  `--wasm-max-mem-pages=${maxMemoryPages}`,
  "--disable-warning=ExperimentalWarning",
];

/** Script that a host process runs, after the arguments above. */
export const hostEntry = fileURLToPath(new URL(`./process${import.meta.url.slice(-3)}`, import.meta.url));

/** Folder that holds our source and `node_modules`. */
const packageFolder = fileURLToPath(new URL("../../", import.meta.url));
