import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { $init, generate } from "@bytecodealliance/jco-transpile/component";
import type { HostUse } from "../../../src/api/host.ts";
import type { WitImport } from "../../../src/api/wit.ts";
import { publicAddressesOnly } from "../../../src/egress/address.ts";
import { parseAllowedHost } from "../../../src/egress/allowed-host.ts";
import { systemResolver } from "../../../src/egress/resolver.ts";
import type { GuestLine, WasiOptions } from "../../../src/host/wasi/call-context.ts";
import { createWasi } from "../../../src/host/wasi/create.ts";
import { asyncImportNames } from "../../../src/host/wasi/provided.ts";
import { decodeComponent } from "../../../src/wit/decode.ts";

/** An export of the probe (test/fixtures/wasi), called with what the transpiled component takes. A WIT error is thrown with its `payload`. */
export type ProbeCall = (name: string, ...parameters: readonly unknown[]) => Promise<unknown>;

export interface ProbeRun {
  readonly call: ProbeCall;
  readonly lines: GuestLine[];
  readonly denied: { target: string; detail: string }[];
  /** What it used up in calls that began then. */
  readonly useSince: (since: number) => HostUse | null;
  readonly dispose: () => void;
}

interface Generated {
  readonly instantiate: (
    getCoreModule: (name: string) => WebAssembly.Module,
    imports: object,
    instantiateCore: (module: WebAssembly.Module, imports: WebAssembly.Imports) => WebAssembly.Instance,
  ) => Record<string, (...parameters: readonly unknown[]) => unknown>;
}

/** Transpiles a component for tests and gives a maker of fresh instances with WASI of their own. */
export const probeOf = async (path: string): Promise<(options?: Partial<WasiOptions>) => ProbeRun> => {
  const bytes = await readFile(new URL(`../../fixtures/wasi/${path}`, import.meta.url));
  const { imports, functions } = decodeComponent(bytes);
  await $init;
  const suspends = asyncImportNames(imports);
  const { files } = generate(bytes, {
    name: "probe",
    noTypescript: true,
    noNodejsCompat: true,
    base64Cutoff: 0,
    noComponentErrorWrapping: false,
    instantiation: { tag: "sync" },
    map: imports.map(({ id }) => [id, id]),
    asyncMode: { tag: "jspi", val: { imports: suspends, exports: suspends.length > 0 ? functions.map(({ name }) => name) : [] } },
  });
  const modules = new Map<string, WebAssembly.Module>();
  const folder = await mkdtemp(join(tmpdir(), "ambit-probe-"));
  const file = join(folder, "probe.mjs");
  for (const [name, content] of files) {
    if (name.endsWith(".wasm")) modules.set(name, new WebAssembly.Module(new Uint8Array(content)));
    else await writeFile(file, content);
  }
  const generated: Generated = await import(file);
  await rm(folder, { recursive: true });
  return (options = {}) => instanceOf(generated, modules, imports, options);
};

const instanceOf = (
  generated: Generated,
  modules: ReadonlyMap<string, WebAssembly.Module>,
  imports: readonly WitImport[],
  options: Partial<WasiOptions>,
): ProbeRun => {
  const lines: GuestLine[] = [];
  const denied: { target: string; detail: string }[] = [];
  const wasi = createWasi({
    environment: {},
    mounts: [],
    allowedHosts: [],
    dial: systemResolver(async () => [], publicAddressesOnly),
    log: (line) => lines.push(line),
    denied: (request) => denied.push(request),
    ...options,
  });
  const exports = generated.instantiate(
    (name) => {
      const module = modules.get(name);
      if (module === undefined) throw new Error(`the transpiled component has no module ${name}`);
      return module;
    },
    wasi.importsFor(imports),
    (module, given) => new WebAssembly.Instance(module, given),
  );
  return {
    call: async (name, ...parameters) => {
      const fn = exports[name];
      if (fn === undefined) throw new Error(`the probe exports no ${name}`);
      return await fn(...parameters);
    },
    lines,
    denied,
    useSince: wasi.useSince,
    dispose: wasi.dispose,
  };
};

/** Allows these hosts and dials `host:port` at the given addresses. */
export const reaching = (hosts: readonly string[], overrides: Readonly<Record<string, string>> = {}): Partial<WasiOptions> => ({
  allowedHosts: hosts.map((host) => parseAllowedHost(host)),
  dial: systemResolver(async () => [], publicAddressesOnly, overrides),
});

/** A request as the probe's `fetch` takes it. */
export const probeRequest = (given: Record<string, unknown> = {}) => ({
  method: "GET",
  scheme: "http",
  authority: "api.test",
  path: "/",
  headers: [],
  body: undefined,
  firstByteTimeout: undefined,
  ...given,
});
