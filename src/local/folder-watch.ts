import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";

/** Editors write in several steps; what follows within this time is one change. */
const settleMs = 60;

export interface FolderWatch {
  /** The files outside the folder that matter as well, such as components named by `file:`; replaces what was said before. */
  readonly alsoWatch: (files: readonly string[]) => void;
  readonly close: () => void;
}

/**
 * Calls `changed` after something below `folder`, or one of the other files, changed, and once things have settled. Files are watched through their
 * folders, since tools replace files rather than write into them. `failed` is told when a watch ends by itself: the caller may then read anew.
 */
export const watchFolder = (folder: string, changed: () => void, failed: (error: Error) => void): FolderWatch => {
  let timer: NodeJS.Timeout | undefined;
  const settle = () => {
    clearTimeout(timer);
    timer = setTimeout(changed, settleMs);
  };
  const open = (path: string, recursive: boolean, matters: (name: string | null) => boolean): FSWatcher => {
    const watcher = watch(path, { recursive, persistent: true }, (_event, name) => {
      if (matters(name)) settle();
    });
    watcher.on("error", failed);
    return watcher;
  };
  const main = open(folder, true, (name) => name === null || !ignored(name));
  const others = new Map<string, FSWatcher>();
  return {
    alsoWatch: (files) => {
      const folders = new Set(files.map((file) => dirname(file)).filter((path) => path !== folder && !path.startsWith(`${folder}/`)));
      for (const [path, watcher] of others) {
        if (folders.has(path)) continue;
        watcher.close();
        others.delete(path);
      }
      for (const path of folders) {
        if (!others.has(path))
          others.set(
            path,
            open(path, false, (name) => name === null || name.endsWith(".wasm")),
          );
      }
    },
    close: () => {
      clearTimeout(timer);
      main.close();
      for (const watcher of others.values()) watcher.close();
    },
  };
};

const ignored = (name: string): boolean => name.split("/").some((part) => part === "node_modules" || part === ".git" || part === "target");
