import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * What each committed component was built from and by what.
 *
 *   { "examples/fetch/fetch.wasm": { "sha256": "…", "sources": "…", "compiler": "rustc 1.96.0 …" } }
 *
 * `sources` is the digest of everything it was made from. `compiler` is there where the bytes depend on one that npm does not pin.
 */
export type ComponentLock = Record<string, LockedComponent>;

export interface LockedComponent {
  readonly sha256: string;
  readonly sources: string;
  readonly compiler?: string;
}

const path = "examples/components.lock.json";

export const readLock = (root: string): ComponentLock => {
  try {
    return JSON.parse(readFileSync(join(root, path), "utf8")) as ComponentLock;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return {};
    throw thrown;
  }
};

/** Sorted by path, so that a change of one component is a change of its lines alone. */
export const writeLock = (root: string, lock: ComponentLock): void => {
  const sorted = Object.fromEntries(Object.entries(lock).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(join(root, path), `${JSON.stringify(sorted, null, 2)}\n`);
};
