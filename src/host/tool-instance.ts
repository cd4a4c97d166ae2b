import type { WitFunction } from "../api/wit.ts";
import { jcoName } from "../translate/jco-names.ts";
import { hostMemory } from "./core-module.ts";
import { LiftingGuard } from "./lifting-budget.ts";
import type { MemoryShelf } from "./memory-shelf.ts";

/** The transpiled module's only export that we use. */
export type Instantiate = (
  getCoreModule: (name: string) => WebAssembly.Module,
  imports: object,
  instantiateCore: (module: WebAssembly.Module, imports?: WebAssembly.Imports) => WebAssembly.Instance,
  guard: LiftingGuard,
) => unknown;

type Exported = (...parameters: readonly unknown[]) => unknown;

/** One instance of the component, all of it made at once: stepping through it with promises would cost five times as much. */
export class ToolInstance {
  readonly guard: LiftingGuard;
  readonly #memories: { readonly module: WebAssembly.Module; readonly memory: WebAssembly.Memory }[] = [];
  readonly #exports: Readonly<Record<string, unknown>>;
  calls = 0;

  constructor(
    instantiate: Instantiate,
    modules: ReadonlyMap<string, WebAssembly.Module>,
    shelf: MemoryShelf<WebAssembly.Module>,
    imports: object,
    liftingLimit: number,
  ) {
    this.guard = new LiftingGuard(liftingLimit);
    const getCoreModule = (name: string): WebAssembly.Module => {
      const module = modules.get(name);
      if (module === undefined) throw new Error(`the transpiled component asks for a core module ${name} that it doesn't have`);
      return module;
    };
    const instantiateCore = (module: WebAssembly.Module, wanted?: WebAssembly.Imports): WebAssembly.Instance => {
      const memory = shelf.take(module);
      if (memory === null) return new WebAssembly.Instance(module, wanted);
      this.#memories.push({ module, memory });
      return new WebAssembly.Instance(module, { ...wanted, [hostMemory.module]: { [hostMemory.name]: memory } });
    };
    // Never awaited: a component may export a function named `then`.
    this.#exports = instantiate(getCoreModule, imports, instantiateCore, this.guard) as Record<string, unknown>;
  }

  /** The exported function, by its full id: jco's short aliases name only the first of several. */
  find(fn: Pick<WitFunction, "interface" | "name">): Exported | undefined {
    const scope = fn.interface === null ? this.#exports : this.#exports[fn.interface];
    if (typeof scope !== "object" || scope === null) return undefined;
    const found = (scope as Record<string, unknown>)[jcoName(fn.name)];
    return typeof found === "function" ? (found as Exported) : undefined;
  }

  /** Bytes of linear memory in use now. */
  get memoryBytes(): number {
    let sum = 0;
    for (const { memory } of this.#memories) sum += memory.buffer.byteLength;
    return sum;
  }
  /**
   * Gives the memories back for another instance, and tells how many bytes were not taken. Only for an instance whose code can never run again: one that
   * awaits nothing, and that nobody will call.
   */
  giveBack(shelf: MemoryShelf<WebAssembly.Module>): number {
    let left = 0;
    for (const { module, memory } of this.#memories.splice(0)) if (!shelf.giveBack(module, memory)) left += memory.buffer.byteLength;
    return left;
  }
}
