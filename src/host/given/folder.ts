import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs";
import { join } from "node:path";
import { Transient } from "../../api/errors.ts";
import type { HostSecretFolder } from "../../api/host.ts";
import { type GivenFile, givenBounds } from "./variables.ts";

/** The link by which kubelet puts all files of a volume in place at once: to a folder beside it that never changes. */
const currentLink = "..data";

/** A folder whose files change while they are read is read again so often. */
const mostReads = 5;

/**
 * What of a folder's files changes when they do: for a volume of kubelet's where its link leads, which costs one call, else of each file what says that it is another. Throws `Transient`
 * (`GivenFolderUnreadable`).
 */
export const folderStamp = ({ name, folder }: HostSecretFolder): string =>
  reading(name, () => {
    const current = currentFolder(folder);
    if (current !== null) return current;
    return fileNames(folder)
      .slice(0, givenBounds.files + 1)
      .map((file) => {
        const seen = lstatSync(join(folder, file), { bigint: true, throwIfNoEntry: false });
        return seen ? `${file}:${seen.ino}:${seen.size}:${seen.mtimeNs}:${seen.ctimeNs}` : `${file}:gone`;
      })
      .join("\n");
  });

/**
 * The folder's files by name, all of the same moment, and what `folderStamp` said of it. Names that begin with a dot are none of them. Links are not followed: what they lead to
 * is not in the folder. Throws `Transient` (`GivenFolderUnreadable`).
 */
export const readGivenFolder = (given: HostSecretFolder): { readonly files: readonly GivenFile[]; readonly stamp: string } => {
  for (let reads = 0; reads < mostReads; reads++) {
    const stamp = folderStamp(given);
    const files = reading(given.name, () => {
      const folder = join(given.folder, currentFolder(given.folder) ?? "");
      const names = fileNames(folder).slice(0, givenBounds.files + 1);
      return names.map((name): GivenFile => ({ name, bytes: readPlain(join(folder, name)) }));
    });
    if (folderStamp(given) === stamp) return { files, stamp };
  }
  throw new Transient("GivenFolderUnreadable", `the files of ${given.name} change while they are read`);
};

/** Null where the folder is no volume of kubelet's. */
const currentFolder = (folder: string): string | null => {
  const link = lstatSync(join(folder, currentLink), { throwIfNoEntry: false });
  if (!link?.isSymbolicLink()) return null;
  const target = readlinkSync(join(folder, currentLink));
  return /^\.\.[^/]+$/.test(target) && lstatSync(join(folder, target), { throwIfNoEntry: false })?.isDirectory() ? target : null;
};

const fileNames = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => !name.startsWith("."))
    .sort();

/** Null for what is no plain file, is larger than any that is used, or has gone. */
const readPlain = (path: string): Uint8Array | null => {
  let file: number;
  try {
    // Opening a pipe must not wait for who writes to it.
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (["ELOOP", "ENOENT", "EACCES", "ENXIO"].includes(codeOf(error))) return null;
    throw error;
  }
  try {
    if (!fstatSync(file).isFile()) return null;
    const bytes = new Uint8Array(givenBounds.ofVariable + 1);
    let length = 0;
    for (let count = -1; count !== 0 && length < bytes.length; length += count)
      count = readSync(file, bytes, length, bytes.length - length, null);
    return length > givenBounds.ofVariable ? null : bytes.slice(0, length);
  } finally {
    closeSync(file);
  }
};

const reading = <T>(name: string, read: () => T): T => {
  try {
    return read();
  } catch (error) {
    throw new Transient("GivenFolderUnreadable", `the folder of ${name} can't be read (${codeOf(error)})`, { cause: error });
  }
};

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "unknown");
