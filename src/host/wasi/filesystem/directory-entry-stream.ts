import type { Dir } from "node:fs";
import type { CallContext } from "../call-context.ts";
import { system } from "./error-code.ts";
import { type DescriptorType, typeOf } from "./metadata.ts";

/** `wasi:filesystem/types`: the entries of a folder, without `.` and `..`. */
export class DirectoryEntryStream implements Disposable {
  readonly #context: CallContext;
  readonly #entries: Dir;
  #isClosed = false;

  constructor(context: CallContext, entries: Dir) {
    this.#context = context;
    this.#entries = entries;
  }

  readDirectoryEntry(): { readonly type: DescriptorType; readonly name: string } | undefined {
    const entry = system(() => this.#entries.readSync());
    return entry === null ? undefined : { type: typeOf(entry), name: entry.name };
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#entries.closeSync();
    this.#context.release(this);
  }
}
