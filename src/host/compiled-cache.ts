import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { type Sha256Digest, sha256Of } from "../api/digest.ts";
import { messageOf, Transient } from "../api/errors.ts";
import type { ComponentInterface } from "../api/wit.ts";
import { jcoVersion } from "./transpile.ts";

/** What a host needs to run a component: its interface, and its code transpiled and contained. */
export interface CompiledComponent {
  readonly decoded: ComponentInterface;
  /** File of the transpiled source. */
  readonly sourceFile: string;
  readonly modules: readonly { readonly name: string; readonly bytes: Uint8Array }[];
}

/** What goes into the cache. */
export interface CompiledFiles {
  readonly decoded: ComponentInterface;
  readonly source: string;
  readonly modules: readonly { readonly name: string; readonly bytes: Uint8Array }[];
}

/** Changes with anything that changes what is compiled from the same bytes: containment, guards, the interface's shape. */
const compiledFormat = 7;

/**
 * Files of one host, all named by what they hold:
 *
 *     <digest>.wasm                           the component
 *     <digest>-<format>-<memory>/index.json   digests of the files beside it
 *                               /component.mjs, interface.bin, *.core*.wasm
 *
 * A folder is written elsewhere and renamed into place, so that it is whole or absent, whoever else writes the same; digests are checked at each
 * reading, and what does not fit counts as absent.
 */
export class CompiledCache {
  readonly #folder: string;
  readonly #digest: Sha256Digest;
  readonly #compiled: string;

  constructor(folder: string, digest: Sha256Digest, memoryBytes: number) {
    const name = digest.slice("sha256:".length);
    this.#folder = folder;
    this.#digest = digest;
    this.#compiled = join(folder, `${name}-${compiledFormat}.${jcoVersion}-${memoryBytes}`);
  }

  get #componentFile(): string {
    return join(this.#folder, `${this.#digest.slice("sha256:".length)}.wasm`);
  }

  /** The component's bytes, if they are there and are what they should be. */
  async readComponent(): Promise<Uint8Array | undefined> {
    const bytes = await readIfThere(this.#componentFile);
    return bytes !== undefined && sha256Of(bytes) === this.#digest ? bytes : undefined;
  }

  /** Throws `Transient` with code `CacheUnwritable`. */
  async writeComponent(bytes: Uint8Array): Promise<void> {
    await this.#writing(async () => {
      await mkdir(this.#folder, { recursive: true });
      const temporary = this.#temporary();
      await writeFile(temporary, bytes);
      await rename(temporary, this.#componentFile);
    });
  }

  async readCompiled(): Promise<CompiledComponent | undefined> {
    const index = await readIfThere(join(this.#compiled, "index.json"));
    if (index === undefined) return undefined;
    try {
      const digests = JSON.parse(index.toString("utf8")) as Record<string, string>;
      const files = new Map<string, Buffer>();
      for (const [name, digest] of Object.entries(digests)) {
        const bytes = await readIfThere(join(this.#compiled, name));
        if (bytes === undefined || sha256Of(bytes) !== digest) return undefined;
        files.set(name, bytes);
      }
      const decoded = files.get("interface.bin");
      if (decoded === undefined || !files.has("component.mjs")) return undefined;
      return {
        decoded: deserialize(decoded) as ComponentInterface,
        sourceFile: join(this.#compiled, "component.mjs"),
        modules: [...files].filter(([name]) => name.endsWith(".wasm")).map(([name, bytes]) => ({ name, bytes })),
      };
    } catch (error) {
      // A damaged index is an absent one: the component is compiled again.
      if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
      throw error;
    }
  }

  /** Throws `Transient` with code `CacheUnwritable`. */
  async writeCompiled(compiled: CompiledFiles): Promise<CompiledComponent> {
    await this.#writing(async () => {
      const temporary = this.#temporary();
      await mkdir(temporary, { recursive: true });
      const files: [string, Uint8Array][] = [
        ["component.mjs", Buffer.from(compiled.source)],
        ["interface.bin", serialize(compiled.decoded)],
        ...compiled.modules.map(({ name, bytes }): [string, Uint8Array] => [name, bytes]),
      ];
      for (const [name, bytes] of files) await writeFile(join(temporary, name), bytes);
      const digests = Object.fromEntries(files.map(([name, bytes]) => [name, sha256Of(bytes)]));
      await writeFile(join(temporary, "index.json"), JSON.stringify(digests));
      await this.#moveIntoPlace(temporary);
    });
    return { decoded: compiled.decoded, sourceFile: join(this.#compiled, "component.mjs"), modules: compiled.modules };
  }

  /** Leaves what is there alone where it is whole: another process, or this one's workers, may be reading it. */
  async #moveIntoPlace(temporary: string): Promise<void> {
    if ((await this.readCompiled()) === undefined) {
      await rm(this.#compiled, { recursive: true, force: true });
      try {
        await rename(temporary, this.#compiled);
        return;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
      }
    }
    await rm(temporary, { recursive: true, force: true });
  }

  #temporary(): string {
    return join(this.#folder, `.partial-${process.pid}-${process.hrtime.bigint()}`);
  }

  async #writing(write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      throw new Transient("CacheUnwritable", `the host can't write to its cache folder ${this.#folder}: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }
}

const readIfThere = async (file: string): Promise<Buffer | undefined> => {
  try {
    return await readFile(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
};
