import { readFileSync } from "node:fs";
import { $init, generate } from "@bytecodealliance/jco-transpile/component";
import type { ComponentInterface, WitFunction } from "../../../src/api/wit.ts";
import { withExactChars } from "../../../src/translate/jco-chars.ts";
import { jcoName } from "../../../src/translate/jco-names.ts";
import type { Settled } from "../../../src/translate/result.ts";
import { decodeComponent } from "../../../src/wit/decode.ts";

export interface RunningComponent {
  readonly decoded: ComponentInterface;
  /** Calls the export as jco generated it, in an instance of its own where `fresh` is asked for. */
  call(fn: WitFunction, values: readonly unknown[]): Promise<Settled>;
}

type Exports = Readonly<Record<string, unknown>>;
type Instantiate = (
  core: (name: string) => WebAssembly.Module,
  imports: object,
  make: (module: WebAssembly.Module, imports?: WebAssembly.Imports) => WebAssembly.Instance,
) => unknown;

/** Transpiles a component that imports nothing and runs it in this process. */
export const runComponent = async (file: URL): Promise<RunningComponent> => {
  const bytes = new Uint8Array(readFileSync(file));
  const decoded = decodeComponent(bytes);
  await $init;
  const { files } = generate(bytes, {
    name: "component",
    noTypescript: true,
    noNodejsCompat: true,
    base64Cutoff: 0,
    noComponentErrorWrapping: false,
    instantiation: { tag: "sync" },
    map: [],
    asyncMode: { tag: "jspi", val: { imports: [], exports: [] } },
  });
  const modules = new Map<string, WebAssembly.Module>();
  let source = "";
  for (const [name, content] of files) {
    if (name.endsWith(".wasm")) modules.set(name, new WebAssembly.Module(new Uint8Array(content)));
    else source = withExactChars(new TextDecoder().decode(content));
  }
  const module = (await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`)) as { instantiate: Instantiate };
  const moduleNamed = (name: string): WebAssembly.Module => {
    const found = modules.get(name);
    if (!found) throw new Error(`no core module ${name}`);
    return found;
  };
  const exports = module.instantiate(moduleNamed, {}, (core, imports) => new WebAssembly.Instance(core, imports)) as Exports;
  return {
    decoded,
    call: async (fn, values) => {
      const scope = (fn.interface === null ? exports : exports[fn.interface]) as Exports;
      const exported = scope[jcoName(fn.name)];
      if (typeof exported !== "function") throw new Error(`no export ${fn.interface}#${fn.name}`);
      try {
        return { returned: await exported(...values) };
      } catch (thrown) {
        return { thrown };
      }
    },
  };
};
