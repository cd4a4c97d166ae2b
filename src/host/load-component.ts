import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { Invalid, Refused, Stalled } from "../api/errors.ts";
import type { HostConfig } from "../api/host.ts";
import type { CompiledCache, CompiledComponent, CompiledFiles } from "./compiled-cache.ts";
import { type MemoryPages, wantedMemory } from "./core-module.ts";
import type { TranspileJob, TranspileOutcome } from "./transpile-worker.ts";
import type { WorkerSetup } from "./worker-protocol.ts";

/** Longest time that jco may take for one component; the largest known (18 MB, Python) takes 2 s. */
const transpileMs = 120_000;

const longestComplaint = 1000;

/** JavaScript heap of the transpiling thread. */
const transpileHeapMegabytes = 1024;

/**
 * Brings a component to where workers can run it: from the cache, or transpiled now and cached.
 *
 * Throws `Refused` (`ImportNotGranted`, `ComponentNeedsMoreMemory`), `Invalid` (what the decoder and jco refuse), `Stalled` (`TranspileTimedOut`) and
 * `Transient` (`CacheUnwritable`).
 */
export const loadComponent = async (config: HostConfig, cache: CompiledCache, component: Uint8Array): Promise<WorkerSetup> => {
  const compiled = (await cache.readCompiled()) ?? (await compileAndCache(config, cache, component));
  const modules = await Promise.all(compiled.modules.map(compileModule));
  return {
    source: pathToFileURL(compiled.sourceFile).href,
    modules: new Map(modules),
    memories: new Map(compiled.modules.flatMap(({ name, bytes }) => memoryOf(name, bytes))),
    component: compiled.decoded,
    limits: config.limits,
    callsPerInstance: config.callsPerInstance,
    ready: 1,
    wasi: {
      environment: config.environment,
      secretFolders: config.secretFolders ?? [],
      mounts: config.mounts,
      allowedHosts: config.allowedHosts,
      resolver: config.resolver,
      hostOverrides: config.hostOverrides,
      privateRanges: config.privateRanges ?? [],
      hopAuthority: config.hop?.authority ?? null,
    },
  };
};

const memoryOf = (name: string, bytes: Uint8Array): [string, MemoryPages][] => {
  const wanted = wantedMemory(bytes);
  return wanted === null ? [] : [[name, wanted]];
};

const compileAndCache = async (config: HostConfig, cache: CompiledCache, component: Uint8Array): Promise<CompiledComponent> => {
  const files = await transpileApart({ component, memoryBytes: config.limits.memoryBytes });
  return cache.writeCompiled(files);
};

const compileModule = async ({ name, bytes }: { name: string; bytes: Uint8Array }): Promise<[string, WebAssembly.Module]> => {
  try {
    return [name, await WebAssembly.compile(new Uint8Array(bytes))];
  } catch (error) {
    if (!(error instanceof WebAssembly.CompileError)) throw error;
    throw new Invalid("ComponentUnsupported", `a core module of the component does not validate: ${error.message}`, undefined, {
      cause: error,
    });
  }
};

/** Transpiles in a thread of its own: it takes seconds, and memory that should go away with it. */
const transpileApart = (job: TranspileJob): Promise<CompiledFiles> =>
  new Promise((done, failed) => {
    const worker = new Worker(new URL(`./transpile-worker${import.meta.url.slice(-3)}`, import.meta.url), {
      workerData: job,
      env: {},
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: transpileHeapMegabytes },
    });
    const tooLate = setTimeout(() => {
      failed(new Stalled("TranspileTimedOut", `the component was not transpiled within ${transpileMs / 1000} s; a smaller one may be`));
      void worker.terminate();
    }, transpileMs);
    worker.once("message", (outcome: TranspileOutcome) => {
      if (outcome.kind === "compiled") done(outcome.files);
      else if (outcome.kind === "refused") failed(new Refused(outcome.code, outcome.message));
      else failed(new Invalid(outcome.code, [outcome.message, complaint.trim()].filter((part) => part !== "").join(": "), outcome.at));
      void worker.terminate();
    });
    // jco reports a panic of its own there, and traps; that text is all that says why.
    let complaint = "";
    worker.stderr.setEncoding("utf8").on("data", (text: string) => {
      complaint = (complaint + text).slice(0, longestComplaint);
    });
    worker.once("error", (error: Error) =>
      failed(new Invalid("ComponentUnsupported", `jco fails on the component: ${error.message}`, undefined, { cause: error })),
    );
    worker.once("exit", () => {
      clearTimeout(tooLate);
      failed(new Invalid("ComponentUnsupported", "jco ended while it transpiled the component"));
    });
  });
