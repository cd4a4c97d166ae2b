import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Invalid } from "../api/errors.ts";
import { type ManifestFile, type ReadManifests, type ReadOptions, readManifests } from "./read.ts";

const extensions = /\.(?:ya?ml|json)$/;
const skipped = /^(?:\.|node_modules$|target$)/;

export interface LoadLimits {
  readonly maxFiles: number;
  readonly maxDepth: number;
  /** Of one file, in bytes; a larger one is not read. */
  readonly maxBytes: number;
}

export const defaultLoadLimits: LoadLimits = { maxFiles: 2000, maxDepth: 6, maxBytes: 512 * 1024 };

/** The manifests of a folder and its folders, or of one file. Throws what `manifestFiles` throws. */
export const loadManifests = async (
  path: string,
  options: ReadOptions = {},
  limits: LoadLimits = defaultLoadLimits,
): Promise<ReadManifests> => readManifests(await manifestFiles(path, limits), options);

/**
 * The texts of all `.yaml`, `.yml` and `.json` files, sorted by path. Links are not followed; names that start with a dot, `node_modules` and `target` are passed
 * over. Throws `Invalid` with code `NoSuchFolder`, `TooManyFiles` or `FileTooLarge`.
 */
export const manifestFiles = async (path: string, limits: LoadLimits = defaultLoadLimits): Promise<ManifestFile[]> => {
  const files = await namesIn(path, limits);
  return Promise.all(files.map(async (file) => ({ path: file, text: await readFile(file, "utf8") })));
};

const namesIn = async (path: string, limits: LoadLimits): Promise<string[]> => {
  const found: string[] = [];
  const walk = async (at: string, depth: number): Promise<void> => {
    const stat = await lstat(at).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      // A file that went away while the folder was read is simply not there any more.
      if (depth > 0) return null;
      throw new Invalid("NoSuchFolder", `there is no file or folder ${at}`, at, { cause: error });
    });
    if (stat?.isFile()) {
      if (stat.size > limits.maxBytes)
        throw new Invalid("FileTooLarge", `${at} has ${stat.size} bytes, more than the ${limits.maxBytes} that are read`, at);
      if (found.push(at) > limits.maxFiles) throw new Invalid("TooManyFiles", `${path} has more than ${limits.maxFiles} manifests`, path);
    } else if (stat?.isDirectory() && depth <= limits.maxDepth) {
      for (const entry of (await readdir(at, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const isWanted = entry.isDirectory() || (entry.isFile() && extensions.test(entry.name));
        if (isWanted && !skipped.test(entry.name)) await walk(join(at, entry.name), depth + 1);
      }
    }
  };
  await walk(path, 0);
  return found;
};
