import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { BuiltComponent } from "./inventory.ts";

/** Files and folders that a component is made from, relative to the repository, sorted. */
export const sourcesOf = (component: BuiltComponent): string[] => {
  switch (component.kind) {
    case "rust": {
      const isText = (share: string) => share.endsWith(".wit");
      const crates = [component.folder, ...component.shares.filter((share) => !isText(share))];
      const parts = crates.flatMap((crate) => [join(crate, "Cargo.toml"), join(crate, "src"), join(crate, "wit")]);
      return ["Cargo.toml", "Cargo.lock", ...component.shares.filter(isText), ...parts].sort();
    }
    case "qjs":
      return [component.source, component.wit].sort();
    case "wat":
    case "made-text":
      return [component.source];
  }
};

/** Sha256 over the names and contents of the sources: tells that a component was built from what is here, without a compiler. */
export const digestOfSources = (root: string, component: BuiltComponent): string => {
  const hash = createHash("sha256");
  for (const path of sourcesOf(component).flatMap((source) => filesBelow(root, source))) {
    hash.update(`${path}\0${digestOf(readFileSync(join(root, path)))}\n`);
  }
  return hash.digest("hex");
};

export const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

const filesBelow = (root: string, path: string): string[] => {
  const stat = statSync(join(root, path), { throwIfNoEntry: false });
  if (!stat) return [];
  if (!stat.isDirectory()) return [path];
  return readdirSync(join(root, path))
    .sort()
    .flatMap((name) => filesBelow(root, `${path}/${name}`));
};
