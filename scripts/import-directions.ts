import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/**
 * Dependencies between the folders of `src/` point one way. `node scripts/import-directions.ts` names every import that does not, and exits 1 if there is one;
 * docs/architecture.md says why the layers are what they are.
 */

/** Judged without a file system, a network, a clock or a process: what they need of those is passed in. In order, from what knows least. */
const pure = ["api", "wit", "egress", "tickets", "identity", "declaration", "translate", "grants"] as const;
const edges = ["oci", "kube", "telemetry", "manifests", "host", "catalogue"] as const;

/** What each folder may import besides itself. A folder that is not listed may not exist. */
export const mayImport: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ["api", []],
  ["wit", ["api"]],
  ["egress", ["api"]],
  ["client", ["api", "declaration"]],
  ["tickets", ["api"]],
  ["identity", ["api"]],
  ["declaration", ["api"]],
  ["translate", ["api", "declaration"]],
  ["grants", ["api", "egress", "declaration", "translate"]],
  ["oci", ["api"]],
  ["kube", ["api"]],
  ["telemetry", ["api", "kube"]],
  ["manifests", pure],
  ["host", pure],
  ["catalogue", [...pure, "kube", "telemetry"]],
  ["operator", [...pure, ...edges]],
  ["local", [...pure, ...edges]],
  ["cli", [...pure, ...edges, "operator", "local"]],
]);

/** What pure folders may import from Node and from packages: computing, and no effect. */
const pureModules: ReadonlySet<string> = new Set(["node:crypto", "node:net", "node:url", "ajv", "ipaddr.js", "re2js"]);

export interface SourceFile {
  /** Relative to the repository, with slashes: `src/wit/decode.ts`. */
  readonly path: string;
  readonly text: string;
}

/** The import that breaks a rule, with the rule. */
export interface Misdirection {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

export const misdirections = (files: readonly SourceFile[]): readonly Misdirection[] =>
  files.flatMap((file) =>
    importsOf(file.text).flatMap(({ specifier, line }) => {
      const message = objection(file.path, specifier);
      return message === null ? [] : [{ path: file.path, line, message }];
    }),
  );

const importPattern = /\b(?:from\s+|import\s+|import\s*\(\s*)["']([^"'\n]+)["']/g;

const importsOf = (text: string): { specifier: string; line: number }[] =>
  [...text.matchAll(importPattern)].map((match) => ({
    specifier: match[1] ?? "",
    line: text.slice(0, match.index).split("\n").length,
  }));

const objection = (path: string, specifier: string): string | null => {
  const from = folderOf(path) ?? "";
  const allowed = mayImport.get(from);
  if (allowed === undefined) return `src/${from} has no entry in scripts/import-directions.ts: say there what it may import`;
  if (!specifier.startsWith(".")) return isPure(from) ? impurity(from, specifier) : null;
  const to = folderOf(join(dirname(path), specifier));
  if (to === null) return `src/${from} imports ${specifier}, which is not in src`;
  if (to === from || allowed.includes(to)) return null;
  const rule = allowed.length === 0 ? "none of our other folders" : `only ${allowed.join(", ")}`;
  return `src/${from} may import ${rule}, not src/${to} (${specifier})`;
};

const isPure = (folder: string): boolean => pure.some((name) => name === folder);

const impurity = (from: string, specifier: string): string | null => {
  const name = specifier.startsWith("@") ? specifier.split("/").slice(0, 2).join("/") : (specifier.split("/")[0] ?? "");
  return pureModules.has(name) ? null : `src/${from} is pure and may import ${[...pureModules].join(", ")}, not ${name}`;
};

/** `src/wit/decode.ts` is of `wit`; null outside of `src`. */
const folderOf = (path: string): string | null => /^src\/([^/]+)\//.exec(path.replaceAll("\\", "/"))?.[1] ?? null;

if (import.meta.main) {
  const root = resolve(import.meta.dirname, "..");
  const paths = globSync("src/**/*.ts", { cwd: root }).sort();
  const files = await Promise.all(paths.map(async (path) => ({ path, text: await readFile(resolve(root, path), "utf8") })));
  const found = misdirections(files);
  for (const { path, line, message } of found) process.stdout.write(`${path}:${line}: ${message}\n`);
  process.stdout.write(`import directions: ${files.length} files, ${found.length} wrong\n`);
  process.exitCode = found.length > 0 ? 1 : 0;
}
