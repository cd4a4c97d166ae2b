import { lstat, readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { Invalid } from "../api/errors.ts";
import type { WitFile } from "../wit/parse-wit-docs.ts";

const mostFiles = 500;
const mostBytes = 4 * 1024 * 1024;
const deepest = 8;

/** A `.wit` file, or all of a folder with `deps/` and the like, paths relative to it. Throws `Invalid` `WitUnreadable`. */
export const readWitFiles = async (path: string): Promise<WitFile[]> => {
  const found = await lstat(path).catch((cause: unknown) => {
    throw new Invalid("WitUnreadable", `there is no WIT file or folder ${path}`, undefined, { cause });
  });
  if (found.isFile()) return [{ path: basename(path), text: await readFile(path, "utf8") }];
  const files: WitFile[] = [];
  let bytes = 0;
  const walk = async (folder: string, relative: string, depth: number): Promise<void> => {
    for (const entry of (await readdir(folder, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const name = relative === "" ? entry.name : `${relative}/${entry.name}`;
      if (entry.isDirectory() && depth < deepest) await walk(join(folder, entry.name), name, depth + 1);
      if (!entry.isFile() || !entry.name.endsWith(".wit")) continue;
      const text = await readFile(join(folder, entry.name), "utf8");
      bytes += text.length;
      if (files.push({ path: name, text }) > mostFiles || bytes > mostBytes) {
        throw new Invalid("WitUnreadable", `${path} has more than ${mostFiles} WIT files or ${mostBytes} bytes of them`);
      }
    }
  };
  await walk(path, "", 0);
  if (files.length === 0) throw new Invalid("WitUnreadable", `there is no .wit file below ${path}`);
  return files;
};
