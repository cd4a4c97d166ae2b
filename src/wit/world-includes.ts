import { type InterfaceDocs, splitInterfaceId, type TypeDocs, type WorldDocs } from "./docs.ts";

/** A world as its own text has it, what it includes still to be added. */
export interface WorldDraft extends WorldDocs {
  readonly functions: Map<string, string>;
  readonly types: Map<string, TypeDocs>;
  readonly interfaces: Map<string, InterfaceDocs>;
  /** `world` is a name of the same package or `space:package/name@version`. */
  readonly includes: { readonly world: string; readonly renames: ReadonlyMap<string, string> }[];
}

type Packages = ReadonlyMap<string, { readonly worlds: ReadonlyMap<string, WorldDraft> }>;

/** Includes of includes followed this far; beyond it, as in a circle, nothing more is added. */
const maxIncludeDepth = 16;

/** Includes followed for one world in all. */
const maxIncludes = 256;

/** The docs of a world with those of the worlds that it includes. A world that is not among the packages adds nothing. */
export const resolveIncludes = (packages: Packages, packageId: string, name: string): WorldDocs => {
  let followed = 0;
  const resolve = (id: string, world: string, depth: number): WorldDocs | null => {
    const draft = packages.get(id)?.worlds.get(world);
    if (!draft) return null;
    const functions = new Map(draft.functions);
    const interfaces = new Map(draft.interfaces);
    for (const { world: path, renames } of draft.includes) {
      if (depth >= maxIncludeDepth || followed >= maxIncludes) break;
      followed++;
      const place = splitInterfaceId(path) ?? { package: id, name: path };
      const included = resolve(place.package, place.name, depth + 1);
      addRenamed(functions, included?.functions, renames);
      addRenamed(interfaces, included?.interfaces, renames);
    }
    return { docs: draft.docs, functions, types: draft.types, interfaces };
  };
  return resolve(packageId, name, 0) ?? { docs: "", functions: new Map(), types: new Map(), interfaces: new Map() };
};

const addRenamed = <T>(into: Map<string, T>, more: ReadonlyMap<string, T> | undefined, renames: ReadonlyMap<string, string>): void => {
  for (const [name, value] of more ?? []) {
    const renamed = renames.get(name) ?? name;
    if (!into.has(renamed)) into.set(renamed, value);
  }
};
