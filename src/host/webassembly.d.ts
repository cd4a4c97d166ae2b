// The part of the WebAssembly JavaScript API that the host uses. TypeScript has it only in its libraries for browsers, which would declare
// hundreds of globals that Node has not.

declare namespace WebAssembly {
  interface Module {
    readonly __module: never;
  }
  const Module: { new (bytes: Uint8Array): Module; imports(module: Module): { module: string; name: string; kind: string }[] };

  interface Instance {
    readonly exports: Readonly<Record<string, unknown>>;
  }
  const Instance: { new (module: Module, imports?: Imports): Instance };

  interface Memory {
    readonly buffer: ArrayBuffer;
  }
  const Memory: { new (descriptor: { initial: number; maximum?: number }): Memory };

  type Imports = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

  const CompileError: { new (message?: string): Error };
  const RuntimeError: { new (message?: string): Error };

  function compile(bytes: Uint8Array): Promise<Module>;
}
