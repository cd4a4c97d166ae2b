import { randomUUID } from "node:crypto";
import * as nodeFiles from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Sha256Digest, sha256Of } from "../api/digest.ts";
import { type AmbitError, messageOf, Stalled, Transient } from "../api/errors.ts";

/** Content by its digest, on disk. What it gives hashes to what was asked for; any number of processes may share the folder. */
export interface ContentCache {
  /** The content, or null if it is not here. Content that is damaged is removed and counts as not here. */
  read(digest: Sha256Digest, maxBytes: number): Promise<Uint8Array | null>;
  /** Keeps content that hashes to `digest`. Throws `Transient` (`CacheFull`, `CacheFailed`) or `Stalled` (`CacheUnwritable`); then nothing of it is kept. */
  write(digest: Sha256Digest, bytes: Uint8Array): Promise<void>;
}

export interface CacheOptions {
  /** Content that was not used for longest goes when all of it together is larger. */
  readonly maxBytes?: number;
  readonly now?: () => number;
  /** The file system; another one stands in where a test needs a full disk. */
  readonly files?: Pick<typeof nodeFiles, "mkdir" | "open" | "readdir" | "readFile" | "rename" | "rm" | "stat" | "utimes">;
}

const defaultMaxBytes = 4 * 1024 * 1024 * 1024;

/** Older than any write in progress: what a process that was killed left behind. */
const abandonedAfterMs = 3_600_000;

/**
 * Opens a cache in a folder, which is made when something is first written.
 *
 *   FOLDER/sha256/<64 hex digits>   content, complete: it got its name by a rename
 *   FOLDER/partial/<uuid>           content being written
 */
export const openContentCache = (
  folder: string,
  { maxBytes = defaultMaxBytes, now = Date.now, files = nodeFiles }: CacheOptions = {},
): ContentCache => {
  const complete = join(folder, "sha256");
  const partial = join(folder, "partial");
  const pathOf = (digest: Sha256Digest): string => join(complete, digest.slice("sha256:".length));

  const read = async (digest: Sha256Digest, limit: number): Promise<Uint8Array | null> => {
    const path = pathOf(digest);
    const found = await files.stat(path).catch(ignoring("ENOENT", "ENOTDIR"));
    if (!found?.isFile() || found.size > limit) return null;
    const bytes = await files.readFile(path).catch(ignoring("ENOENT"));
    if (bytes === undefined) return null;
    if (sha256Of(bytes) !== digest) {
      await files.rm(path, { force: true });
      return null;
    }
    // Marks the use, for the eviction below; a folder that may only be read serves all the same.
    await files.utimes(path, now() / 1000, now() / 1000).catch(ignoring("ENOENT", "EACCES", "EPERM", "EROFS"));
    return bytes;
  };

  const write = async (digest: Sha256Digest, bytes: Uint8Array): Promise<void> => {
    const scratch = join(partial, randomUUID());
    try {
      await files.mkdir(complete, { recursive: true, mode: 0o700 });
      await files.mkdir(partial, { recursive: true, mode: 0o700 });
      await writeDurably(scratch, bytes);
      await files.rename(scratch, pathOf(digest));
    } catch (thrown) {
      await files.rm(scratch, { force: true });
      throw writeFailure(thrown, folder);
    }
    await evict(digest);
  };

  /** Synced before it gets its name, so that a machine that loses power does not keep a name without the content. */
  const writeDurably = async (path: string, bytes: Uint8Array): Promise<void> => {
    const file = await files.open(path, "wx", 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
  };

  const evict = async (justWritten: Sha256Digest): Promise<void> => {
    for (const { path, usedAt } of await filesIn(partial)) {
      if (now() - usedAt > abandonedAfterMs) await files.rm(path, { force: true });
    }
    const kept = (await filesIn(complete)).sort((a, b) => a.usedAt - b.usedAt);
    let total = kept.reduce((sum, { size }) => sum + size, 0);
    for (const { path, size } of kept) {
      if (total <= maxBytes) return;
      if (path === pathOf(justWritten)) continue;
      await files.rm(path, { force: true });
      total -= size;
    }
  };

  const filesIn = async (directory: string): Promise<{ path: string; size: number; usedAt: number }[]> => {
    const found: { path: string; size: number; usedAt: number }[] = [];
    for (const name of await files.readdir(directory)) {
      const path = join(directory, name);
      // Another process may have moved or evicted it meanwhile.
      const stat = await files.stat(path).catch(ignoring("ENOENT"));
      if (stat?.isFile()) found.push({ path, size: stat.size, usedAt: stat.mtimeMs });
    }
    return found;
  };

  return { read, write };
};

const codeOf = (thrown: unknown): string => (thrown instanceof Error && "code" in thrown ? String(thrown.code) : "");

const ignoring =
  (...codes: readonly string[]) =>
  (thrown: unknown): undefined => {
    if (!codes.includes(codeOf(thrown))) throw thrown;
  };

const writeFailure = (thrown: unknown, folder: string): AmbitError => {
  const code = codeOf(thrown);
  if (["ENOSPC", "EDQUOT", "EFBIG"].includes(code)) {
    return new Transient(
      "CacheFull",
      `no space is left for the component cache in ${folder} (${code}): make room, or choose another folder`,
      { cause: thrown },
    );
  }
  if (["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST"].includes(code)) {
    return new Stalled(
      "CacheUnwritable",
      `the component cache in ${folder} cannot be written (${code}): make ${dirname(folder)} writable, or choose another folder`,
      {
        cause: thrown,
      },
    );
  }
  return new Transient("CacheFailed", `the component cache in ${folder} failed: ${messageOf(thrown)}`, { cause: thrown });
};
