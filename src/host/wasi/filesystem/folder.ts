import { closeSync, constants, lstatSync, openSync, readlinkSync } from "node:fs";
import { fileError, system } from "./error-code.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/** Longest path, most symbolic links followed in one look-up (as Linux has them) and deepest folder below a mount. */
const mostPathBytes = 4096;
const mostLinks = 40;
const mostDepth = 256;

/** Linux resolves a name below this against the folder that the descriptor holds, whatever became of its path since. */
const isHeldByDescriptor = process.platform === "linux";

/** An open folder: where a name is looked up. */
export interface Folder {
  readonly descriptor: number;
  /** Only used where the system has no `/proc/self/fd`: there, another process that swaps folders for links while we look can mislead us. */
  readonly path: string;
}

export const openFolder = (path: string): Folder => ({
  descriptor: openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
  path,
});

export const closeFolder = (folder: Folder): void => closeSync(folder.descriptor);

/** The path by which the system finds an entry of the folder itself. `name` is one name, or `.` for the folder. */
export const entryPath = (folder: Folder, name: string): string =>
  isHeldByDescriptor ? `/proc/self/fd/${folder.descriptor}/${name}` : `${folder.path}/${name}`;

/** Where a path led: the folder that holds its last name. Close it by leaving the callback of `locate`. */
export interface Place {
  readonly parent: Folder;
  /** One name, never `..`; `.` where the path named the folder itself. */
  readonly name: string;
  /** The path ended in `/`: it must be a folder. */
  readonly mustBeFolder: boolean;
  /** How many folders lie between the start of the look-up and this parent. */
  readonly depth: number;
}

/**
 * Walks a guest's path below `root`, one name at a time, each opened relative to the folder before it and never through a symbolic link that the system
 * would follow: links are read and walked by the same rules, so none leads out. Absolute paths and links, and `..` above `root`, are `not-permitted`.
 *
 * A last name that is a link is followed only if `followLast`.
 */
export const locate = <T>(root: Folder, path: string, followLast: boolean, use: (place: Place) => T): T => {
  const walk = new Walk(root);
  try {
    return use(walk.to(path, followLast));
  } finally {
    walk.close();
  }
};

class Walk {
  readonly #root: Folder;
  /** The folders between the root and where we are; we opened them, so we close them. */
  readonly #below: Folder[] = [];
  #links = 0;

  constructor(root: Folder) {
    this.#root = root;
  }

  to(path: string, followLast: boolean): Place {
    const pending = namesOf(path);
    let mustBeFolder = path.endsWith("/");
    for (;;) {
      const name = pending.shift();
      if (name === undefined) return this.#at(".", true);
      if (name === "..") {
        this.#up();
        continue;
      }
      if (pending.length > 0) {
        const link = this.#enter(name);
        if (link !== null) pending.unshift(...this.#namesOfLink(link));
        continue;
      }
      const link = followLast || mustBeFolder ? this.#linkAt(name) : null;
      if (link === null) return this.#at(name, mustBeFolder);
      mustBeFolder ||= link.endsWith("/");
      pending.unshift(...this.#namesOfLink(link));
    }
  }

  close(): void {
    for (const folder of this.#below) closeFolder(folder);
    this.#below.length = 0;
  }

  get #here(): Folder {
    return this.#below.at(-1) ?? this.#root;
  }

  #at(name: string, mustBeFolder: boolean): Place {
    return { parent: this.#here, name, mustBeFolder, depth: this.#below.length };
  }

  #up(): void {
    const left = this.#below.pop();
    if (left === undefined) throw fileError("not-permitted");
    closeFolder(left);
  }

  /** Goes into a folder; gives where it points if it is a link instead. */
  #enter(name: string): string | null {
    if (this.#below.length >= mostDepth) throw fileError("name-too-long");
    const link = this.#linkAt(name);
    if (link !== null) return link;
    const opened = system(() => openFolder(entryPath(this.#here, name)));
    this.#below.push({ descriptor: opened.descriptor, path: `${this.#here.path}/${name}` });
    return null;
  }

  #linkAt(name: string): string | null {
    const path = entryPath(this.#here, name);
    return system(() => (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : null));
  }

  #namesOfLink(link: string): string[] {
    this.#links++;
    if (this.#links > mostLinks) throw fileError("loop");
    return namesOf(link);
  }
}

const namesOf = (path: string): string[] => {
  if (path === "") throw fileError("no-entry");
  if (Buffer.byteLength(path) > mostPathBytes) throw fileError("name-too-long");
  if (path.includes("\0")) throw fileError("invalid");
  if (path.startsWith("/")) throw fileError("not-permitted");
  return path.split("/").filter((name) => name !== "" && name !== ".");
};
