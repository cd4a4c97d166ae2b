import { type MemoryPages, pageBytes } from "./core-module.ts";

/** Kept for one core module: the next instance's is made while the last one's is still in use. */
const keptPerModule = 2;

/**
 * Memories for the core modules of one component. A memory that an ended instance left is emptied and given to the next one: the system has backed its pages
 * already, which costs a new memory more than all the rest of an instance.
 *
 * What is given is as new: zero throughout and of its first size. A memory that has grown can't shrink, and is never given again.
 */
export class MemoryShelf<Module> {
  readonly #wanted: ReadonlyMap<Module, MemoryPages>;
  readonly #kept = new Map<Module, WebAssembly.Memory[]>();

  /** `wanted`: what each core module imports of the host; modules without a memory are absent. */
  constructor(wanted: ReadonlyMap<Module, MemoryPages>) {
    this.#wanted = wanted;
  }

  /** Null for a module that has no memory of its own. */
  take(module: Module): WebAssembly.Memory | null {
    const pages = this.#wanted.get(module);
    if (pages === undefined) return null;
    return this.#kept.get(module)?.pop() ?? new WebAssembly.Memory({ initial: pages.initial, maximum: pages.maximum });
  }

  /** Whether the memory was taken; one that was not is garbage. */
  giveBack(module: Module, memory: WebAssembly.Memory): boolean {
    const kept = this.#kept.get(module) ?? [];
    const bytes = memory.buffer.byteLength;
    if (bytes !== (this.#wanted.get(module)?.initial ?? 0) * pageBytes || kept.length >= keptPerModule) return false;
    new Uint8Array(memory.buffer).fill(0);
    kept.push(memory);
    this.#kept.set(module, kept);
    return true;
  }
}
