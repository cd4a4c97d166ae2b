import type { ComponentInterface, WitFunction } from "../api/wit.ts";
import { clampCoreModule, coreModuleResources } from "./core-module.ts";
import { coreModuleNames, guardGeneratedSource, instantiationCounts } from "./generated-source.ts";
import { shareMemory } from "./memory-shares.ts";
import { asyncImportNames } from "./wasi/provided.ts";

/** A component as JavaScript and contained core modules. */
export interface Transpiled {
  /** Exports `instantiate(getCoreModule, imports, instantiateCore, guard)`. */
  readonly source: string;
  /** By the names that `source` asks for. */
  readonly modules: readonly { readonly name: string; readonly bytes: Uint8Array }[];
}

/** Which jco makes the code that `generated-source.ts` knows; part of what names a cached result. */
export const jcoVersion = "0.15.0";

/**
 * Transpiles a component with jco and contains it: memory and table maxima clamped to `memoryBytes` over all core instances, lifting guarded.
 *
 * Import keys are the decoded ids, each mapped to itself: jco would drop versions and merge them. Exports suspend only where an import can.
 * Throws `Invalid` (`ComponentUnsupported`, `ComponentMalformed`) and `Refused` (`ComponentNeedsMoreMemory`); what jco itself refuses is `ComponentUnsupported`.
 */
export const transpile = async (component: Uint8Array, decoded: ComponentInterface, memoryBytes: number): Promise<Transpiled> => {
  const files = await generateFiles(component, decoded);
  const source = new TextDecoder().decode(files.find(([name]) => name.endsWith(".js"))?.[1]);
  const counts = instantiationCounts(source);
  const modules = coreModuleNames(source).map((name, index) => {
    const bytes = files.find(([file]) => file === name)?.[1] ?? new Uint8Array();
    return { name, bytes, resources: coreModuleResources(bytes), instances: counts.get(index) ?? 0, size: bytes.length };
  });
  const limits = shareMemory(modules, memoryBytes);
  return {
    source: guardGeneratedSource(source),
    modules: modules.map(({ name, bytes }, index) => ({
      name,
      bytes: clampCoreModule(bytes, limits[index] ?? { memoryPages: [], tableElements: [] }),
    })),
  };
};

const generateFiles = async (component: Uint8Array, decoded: ComponentInterface): Promise<[string, Uint8Array][]> => {
  const { $init, generate } = await import("@bytecodealliance/jco-transpile/component");
  await $init;
  const suspends = asyncImportNames(decoded.imports);
  const { files } = generate(component, {
    name: "component",
    noTypescript: true,
    noNodejsCompat: true,
    base64Cutoff: 0,
    noComponentErrorWrapping: false,
    instantiation: { tag: "sync" },
    map: decoded.imports.map(({ id }) => [id, id]),
    asyncMode: { tag: "jspi", val: { imports: suspends, exports: suspends.length > 0 ? decoded.functions.map(exportName) : [] } },
  });
  return files;
};

const exportName = ({ interface: id, name }: WitFunction): string => (id === null ? name : `${id}#${name}`);
