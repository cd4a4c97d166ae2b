import type { HostLimits, HostMount } from "../api/host.ts";
import type { ComponentInterface } from "../api/wit.ts";
import type { MemoryPages } from "./core-module.ts";
import type { Failure } from "./failure.ts";
import type { GuestLine } from "./wasi/call-context.ts";

/** What a worker starts with. Compiled modules are shared between threads, not copied. */
export interface WorkerSetup {
  /** File URL of the transpiled source. */
  readonly source: string;
  readonly modules: ReadonlyMap<string, WebAssembly.Module>;
  /** What the modules that have a memory want of the host, by the module's name. */
  readonly memories: ReadonlyMap<string, MemoryPages>;
  readonly component: ComponentInterface;
  readonly limits: HostLimits;
  readonly callsPerInstance: number;
  /** Fresh instances kept ready. */
  readonly ready: number;
  readonly wasi: WasiSetup;
}

export interface WasiSetup {
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly HostMount[];
  readonly allowedHosts: readonly string[];
  readonly resolver: "table" | "system";
  readonly hostOverrides: Readonly<Record<string, string>>;
  readonly privateRanges: readonly string[];
}

export type ToWorker =
  | { readonly kind: "call"; readonly interface: string | null; readonly function: string; readonly arguments: string }
  | { readonly kind: "addresses"; readonly table: Readonly<Record<string, readonly string[]>> };

export type FromWorker =
  /** The component's code is loaded; instances are made next, which runs code of the guest. */
  | { readonly kind: "loaded" }
  | { readonly kind: "ready" }
  /** The component can't be instantiated. */
  | { readonly kind: "unstartable"; readonly failure: Failure }
  | { readonly kind: "reply"; readonly reply: WorkerReply }
  | { readonly kind: "log"; readonly line: GuestLine };

/**
 * How a call ended. `json` is the reply's JSON object without its closing brace, so that the host can add its figures without parsing a result that
 * may be large.
 */
export type WorkerReply =
  | { readonly kind: "answer"; readonly json: string }
  | { readonly kind: "failed"; readonly code: string; readonly text: string; readonly ran: boolean }
  | { readonly kind: "refused"; readonly code: string; readonly message: string };
