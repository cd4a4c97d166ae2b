import { parentPort, workerData } from "node:worker_threads";
import { AmbitError, Invalid, messageOf, Refused } from "../api/errors.ts";
import { decodeComponent } from "../wit/decode.ts";
import type { CompiledFiles } from "./compiled-cache.ts";
import { checkImports } from "./granted-imports.ts";
import { transpile } from "./transpile.ts";
import { createWasi } from "./wasi/create.ts";

/** What the transpiling thread is given, and gives. It lives for one component, so that jco's memory goes with it. */
export interface TranspileJob {
  readonly component: Uint8Array;
  readonly memoryBytes: number;
}

export type TranspileOutcome =
  | { readonly kind: "compiled"; readonly files: CompiledFiles }
  | { readonly kind: "refused" | "invalid"; readonly code: string; readonly message: string; readonly at: string | undefined };

const providedByHost = createWasi({
  environment: {},
  mounts: [],
  allowedHosts: [],
  dial: () => Promise.reject(new Error("nothing is dialled while imports are checked")),
  log: () => {},
}).provides;

const run = async ({ component, memoryBytes }: TranspileJob): Promise<TranspileOutcome> => {
  try {
    const decoded = decodeComponent(component);
    checkImports(decoded.imports, providedByHost);
    const { source, modules } = await transpile(component, decoded, memoryBytes);
    return { kind: "compiled", files: { decoded, source, modules } };
  } catch (error) {
    if (error instanceof Refused) return { kind: "refused", code: error.code, message: error.message, at: undefined };
    if (error instanceof Invalid) return { kind: "invalid", code: error.code, message: error.message, at: error.at };
    if (error instanceof AmbitError) throw error;
    // jco's own refusals are plain errors, or values whose text is all they say.
    return { kind: "invalid", code: "ComponentUnsupported", message: `jco can't run the component: ${messageOf(error)}`, at: undefined };
  }
};

parentPort?.postMessage(await run(workerData as TranspileJob));
