import type { ComponentInterface } from "../api/wit.ts";
import type { InterfaceDocs, TypeDocs, WitDocs, WorldDocs } from "./docs.ts";

/** A component does not say which world it was built for. It may be each of those whose documented exports it has. */
export const worldsThatFit = (docs: WitDocs, component: ComponentInterface): WorldDocs[] => {
  const exported = new Set(component.exports.map((one) => one.id));
  const fits = (world: WorldDocs): boolean => [...world.functions.keys(), ...world.interfaces.keys()].every((name) => exported.has(name));
  return [...docs.packages.values()].flatMap((one) => [...one.worlds.values()]).filter(fits);
};

/** One world of several, with the docs that all who have any agree on; elsewhere the empty string. */
export const agreedWorld = (worlds: readonly WorldDocs[]): WorldDocs => ({
  ...agreedInterface(worlds),
  interfaces: mergedBy(
    worlds.map((world) => world.interfaces),
    agreedInterface,
  ),
});

const agreedInterface = (places: readonly InterfaceDocs[]): InterfaceDocs => ({
  docs: agreedText(places.map((place) => place.docs)),
  functions: mergedBy(
    places.map((place) => place.functions),
    agreedText,
  ),
  types: mergedBy(
    places.map((place) => place.types),
    agreedType,
  ),
});

const agreedType = (types: readonly TypeDocs[]): TypeDocs => ({
  docs: agreedText(types.map((type) => type.docs)),
  members: mergedBy(
    types.map((type) => type.members),
    agreedText,
  ),
});

const agreedText = (texts: readonly string[]): string => {
  const distinct = new Set(texts.filter((text) => text !== ""));
  const [only = ""] = distinct;
  return distinct.size === 1 ? only : "";
};

const mergedBy = <T>(maps: readonly ReadonlyMap<string, T>[], merge: (items: readonly T[]) => T): Map<string, T> => {
  const grouped = Map.groupBy(
    maps.flatMap((map) => [...map]),
    ([name]) => name,
  );
  return new Map([...grouped].map(([name, entries]) => [name, merge(entries.map(([, item]) => item))]));
};
