import { Refused } from "../api/errors.ts";
import type { WitImport } from "../api/wit.ts";

/** Refuses a component that imports what no one provides, naming all of it. Imports of types alone need no provider. */
export const checkImports = (imports: readonly WitImport[]): void => {
  const missing = imports.flatMap(missingFrom);
  if (missing.length === 0) return;
  throw new Refused("ImportNotGranted", `the component imports what it isn't granted: ${missing.join(", ")}`);
};

const missingFrom = ({ id, kind, functions, resources }: WitImport): string[] => {
  if (kind === "type") return [];
  if (kind !== "instance") return [`${id} (${kind})`];
  return [...functions, ...resources].map((name) => `${id}#${name}`);
};
