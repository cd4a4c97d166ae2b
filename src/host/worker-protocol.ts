import type { HopReach, HostLimits, HostMount, HostSecretFolder, HostUse } from "../api/host.ts";
import type { ComponentInterface } from "../api/wit.ts";
import type { MemoryPages } from "./core-module.ts";
import type { Failure } from "./failure.ts";
import type { ServedCall } from "./serving/served-messages.ts";
import type { LiftedPage } from "./untyped-calls.ts";
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
  readonly secretFolders: readonly HostSecretFolder[];
  readonly mounts: readonly HostMount[];
  readonly allowedHosts: readonly string[];
  readonly resolver: "table" | "system";
  readonly hostOverrides: Readonly<Record<string, string>>;
  readonly privateRanges: readonly string[];
  /** The one label under which a bridge reaches its server. */
  readonly hopAuthority: string | null;
}

/** Work for an instance. `call-tool` and `list-tools` are of components that list their own tools, `watch` of those that tell of changes. */
export type GuestCall =
  | { readonly kind: "call"; readonly interface: string | null; readonly function: string; readonly arguments: string }
  | {
      readonly kind: "call-tool";
      readonly name: string;
      readonly arguments: string;
      /** JSON, as the reviewed definition has it. */
      readonly inputSchema: string;
    }
  | { readonly kind: "list-tools"; readonly cursor: string | null }
  | { readonly kind: "watch" }
  | ServedCall;

export type ToWorker =
  | GuestCall
  /** To be answered at once by whoever is not computing. */
  | { readonly kind: "ping" }
  | Whereabouts;

/** Where a guest's requests may be dialled, as the host was told last. */
export type Whereabouts =
  | { readonly kind: "addresses"; readonly table: Readonly<Record<string, readonly string[]>> }
  | { readonly kind: "hop"; readonly reach: HopReach };

export type FromWorker =
  /** The component's code is loaded; instances are made next, which runs code of the guest. */
  | { readonly kind: "loaded" }
  | { readonly kind: "ready" }
  /** The component can't be instantiated. */
  | { readonly kind: "unstartable"; readonly failure: Failure }
  | { readonly kind: "reply"; readonly reply: WorkerReply }
  | { readonly kind: "pong" }
  | { readonly kind: "log"; readonly line: GuestLine };

/**
 * How a call ended. `json` is the reply's JSON object without its closing brace, so that the host can add its figures without parsing a result that
 * may be large.
 */
export type WorkerReply =
  | { readonly kind: "answer"; readonly json: string; readonly use?: HostUse }
  | { readonly kind: "failed"; readonly code: string; readonly text: string; readonly ran: boolean; readonly use?: HostUse }
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  | { readonly kind: "page"; readonly page: LiftedPage }
  | { readonly kind: "news"; readonly hasChanged: boolean }
  /** A request was served; its response has gone out by itself. */
  | { readonly kind: "served"; readonly use?: HostUse }
  /** The component could not list its tools, or watch them, and says why. */
  | { readonly kind: "unlisted"; readonly why: string };
