import { Invalid } from "../api/errors.ts";
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

/** Entries copied from included worlds, over all worlds of some WIT text. */
const maxCopied = 200_000;

/**
 * Each world's docs with those of the worlds that it includes. A world that is not among the packages adds nothing. Throws `Invalid`:
 * `WitTooLarge` where worlds include each other so often that the result would be far larger than the text.
 */
export const resolveIncludes = (packages: Packages): ((packageId: string, name: string) => WorldDocs) => {
  let copied = 0;
  const spend = (entries: number): void => {
    copied += entries;
    if (copied > maxCopied) throw new Invalid("WitTooLarge", `included worlds add more than the ${maxCopied} documented items allowed`);
  };
  const resolve = (id: string, world: string, depth: number): WorldDocs | null => {
    const draft = packages.get(id)?.worlds.get(world);
    if (!draft) return null;
    spend(sizeOf(draft));
    const functions = new Map(draft.functions);
    const types = new Map(draft.types);
    const interfaces = new Map(draft.interfaces);
    for (const { world: path, renames } of draft.includes) {
      if (depth >= maxIncludeDepth) break;
      const place = splitInterfaceId(path) ?? { package: id, name: path };
      const included = resolve(place.package, place.name, depth + 1);
      if (!included) continue;
      spend(sizeOf(included));
      addRenamed(functions, included.functions, renames);
      addRenamed(types, included.types, renames);
      addRenamed(interfaces, included.interfaces, renames);
    }
    return { docs: draft.docs, functions, types, interfaces };
  };
  return (packageId, name) => resolve(packageId, name, 0) ?? { docs: "", functions: new Map(), types: new Map(), interfaces: new Map() };
};

const sizeOf = (world: WorldDocs): number => 1 + world.functions.size + world.types.size + world.interfaces.size;

const addRenamed = <T>(into: Map<string, T>, more: ReadonlyMap<string, T>, renames: ReadonlyMap<string, string>): void => {
  for (const [name, value] of more) {
    const renamed = renames.get(name) ?? name;
    if (!into.has(renamed)) into.set(renamed, value);
  }
};
