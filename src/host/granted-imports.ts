import { Refused } from "../api/errors.ts";
import type { WitImport } from "../api/wit.ts";

/** Refuses a component that imports what no one provides, naming all of it. Imports of types alone need no provider. */
export const checkImports = (imports: readonly WitImport[], provides: (id: string, name: string) => boolean): void => {
  const missing = imports.flatMap((wanted) => missingFrom(wanted, provides));
  if (missing.length === 0) return;
  throw new Refused("ImportNotGranted", `the component imports what it isn't granted: ${missing.join(", ")}`);
};

const missingFrom = ({ id, kind, functions, resources }: WitImport, provides: (id: string, name: string) => boolean): string[] => {
  if (kind === "type") return [];
  if (kind !== "instance") return [`${id} (${kind})`];
  return [...functions, ...resources].filter((name) => !provides(id, name)).map((name) => `${id}#${name}`);
};
