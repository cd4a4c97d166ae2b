import { Refused } from "../api/errors.ts";
import { type CoreModuleLimits, type CoreModuleResources, pageBytes } from "./core-module.ts";

/** One core module of a component and how often the component instantiates it. */
export interface CountedModule {
  readonly resources: CoreModuleResources;
  readonly instances: number;
  /** Bytes of the module: the memory of the one with most code gets most of the room. */
  readonly size: number;
}

/** Table elements that one instance of a component may have in all; V8 keeps up to 32 bytes for each. */
export const tableElementsPerComponent = 1_000_000;

/**
 * Shares the memory cap of a component out over the memories of all its core instances, so that their sum can't pass it whatever each does. The same for
 * tables. A component with one growable memory gets it all; with several, each has a fixed part, larger for larger modules, because code can't be asked
 * at run time which of them grows.
 *
 * Throws `Refused` with code `ComponentNeedsMoreMemory` where the minima alone pass the cap.
 */
export const shareMemory = (modules: readonly CountedModule[], memoryBytes: number): CoreModuleLimits[] => {
  const pages = shares(
    modules,
    ({ memories }) => memories,
    Math.floor(memoryBytes / pageBytes),
    (needed) =>
      `it starts with ${mebibytes(needed * pageBytes)} MiB of memory, more than the ${mebibytes(memoryBytes)} MiB that limits.memory allows`,
  );
  const elements = shares(
    modules,
    ({ tables }) => tables,
    tableElementsPerComponent,
    (needed) => `it starts with ${needed} table elements, more than the ${tableElementsPerComponent} allowed`,
  );
  return modules.map((_, index) => ({ memoryPages: pages[index] ?? [], tableElements: elements[index] ?? [] }));
};

interface Claim {
  readonly module: number;
  readonly instances: number;
  readonly weight: number;
  readonly min: number;
  readonly max: number;
  granted: number;
}

const shares = (
  modules: readonly CountedModule[],
  of: (resources: CoreModuleResources) => readonly { min: number; max: number | undefined }[],
  cap: number,
  tooMuch: (needed: number) => string,
): number[][] => {
  const claims: Claim[] = modules.flatMap(({ resources, instances, size }, module) =>
    of(resources).map(({ min, max }) => ({
      module,
      instances,
      weight: (size + min * pageBytes) * instances,
      min,
      max: Math.min(max ?? cap, cap),
      granted: min,
    })),
  );
  const needed = claims.reduce((sum, claim) => sum + claim.min * claim.instances, 0);
  if (needed > cap) throw new Refused("ComponentNeedsMoreMemory", `the component can't be instantiated: ${tooMuch(needed)}`);
  shareOut(claims, cap - needed);
  return modules.map((_, module) => claims.filter((claim) => claim.module === module).map((claim) => claim.granted));
};

/** Gives `room` to those that may still grow: a quarter of it evenly, the rest by weight; what one can't use goes round again. */
const shareOut = (claims: readonly Claim[], room: number): void => {
  let left = room;
  for (;;) {
    const growing = claims.filter((claim) => claim.granted < claim.max && claim.instances > 0);
    const weights = growing.reduce((sum, claim) => sum + claim.weight, 0);
    let given = 0;
    for (const claim of growing) {
      const part = 0.25 / growing.length + 0.75 * (weights > 0 ? claim.weight / weights : 1 / growing.length);
      const extra = Math.min(claim.max - claim.granted, Math.floor((left * part) / claim.instances));
      claim.granted += extra;
      given += extra * claim.instances;
    }
    left -= given;
    if (given === 0) return;
  }
};

const mebibytes = (bytes: number): number => Math.round(bytes / (1024 * 1024));
