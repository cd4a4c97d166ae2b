import { dirname } from "node:path";
import { bridgeDigest } from "../api/bridge-component.ts";
import type { Reach } from "../api/definition.ts";
import type { Sha256Digest } from "../api/digest.ts";
import { AmbitError, Invalid, Stalled, Transient, Waiting } from "../api/errors.ts";
import type { Workload } from "../api/generated/workload.ts";
import { incomingHandlerExport, servesNoHttp } from "../api/http-server.ts";
import { type ToolDefinition, untypedExport } from "../api/untyped.ts";
import type { ComponentInterface, WitImport } from "../api/wit.ts";
import { reachOf } from "../grants/reach.ts";
import { type SandboxedComponent, sandboxedComponents, serverOf } from "../grants/sandboxed-component.ts";
import type { Written } from "../manifests/read.ts";
import { readBridge } from "../oci/bundled-bridge.ts";
import { KnownInterfaces } from "../wit/known-interfaces.ts";
import { type NotOffered, offeredFunctions } from "../wit/offered.ts";
import { withDocs } from "../wit/with-docs.ts";

/** A component's bytes, wherever its image says they are. */
export interface FetchedComponent {
  readonly digest: Sha256Digest;
  /** Reads the bytes; they hash to `digest` or it throws. */
  readonly read: () => Promise<Uint8Array>;
  /** The file of a `file:` image, to be watched; null for one from a registry. */
  readonly file: string | null;
}

/** Finds the bytes of `image`; a relative `file:` path is meant from `folder`. Throws `Stalled`, `Invalid`, `Refused` or `Transient`. */
export type FetchComponent = (image: string, folder: string, allowTags: boolean) => Promise<FetchedComponent>;

/** What one component of a Workload turned out to be. */
export interface ComponentSeen {
  readonly digest: Sha256Digest;
  /** What a review names for it, where that is not `digest` (`ObservedCode`). */
  readonly code?: Sha256Digest | "any";
  readonly bytes: () => Promise<Uint8Array>;
  readonly file: string | null;
  readonly interface: ComponentInterface;
  readonly offered: readonly ToolDefinition[];
  readonly notOffered: readonly NotOffered[];
  readonly unmatchedExclusions: readonly string[];
  readonly reach: Reach;
  /** Whether it lists tools itself besides its functions: then they are in `offered` once its host has told them. */
  readonly listing: "none" | "awaited" | "known";
}

/** Why nothing is known of a component. `passing` faults may go away by themselves. */
export interface ComponentFault {
  readonly code: string;
  readonly message: string;
  readonly passing: boolean;
}

export type ComponentObservation = { readonly seen: ComponentSeen } | { readonly fault: ComponentFault };

export interface WorkloadObservation {
  readonly written: Written<"Workload", Workload>;
  /** By the component's name. */
  readonly components: ReadonlyMap<string, ComponentObservation>;
}

/** A server's tools are its bridge's. */
const offeringNothing = { offered: [], notOffered: [], unmatchedExclusions: [] };

const bundledBridge: FetchedComponent = { digest: bridgeDigest, read: readBridge, file: null };

/** Components read at once: each holds its bytes while it is decoded. */
const readAtOnce = 4;

/** Reads what components are, and remembers by digest what it read. */
export class ComponentObserver {
  readonly #fetch: FetchComponent;
  readonly #interfaces = new KnownInterfaces();

  constructor(fetch: FetchComponent) {
    this.#fetch = fetch;
  }

  /** Never rejects for what a component or a registry does: that is the component's fault in the result. */
  async observe(workloads: readonly Written<"Workload", Workload>[]): Promise<WorkloadObservation[]> {
    const jobs = workloads.flatMap((written) => sandboxedComponents(written.object.spec).map((component) => ({ written, component })));
    const found = new Map<(typeof jobs)[number], ComponentObservation>();
    const pending = jobs.values();
    const worker = async () => {
      for (const job of pending) found.set(job, await this.#observeOne(job.written, job.component));
    };
    await Promise.all(Array.from({ length: Math.min(readAtOnce, jobs.length) }, worker));
    return workloads.map((written) => {
      const components = new Map<string, ComponentObservation>();
      for (const job of jobs) {
        const observation = found.get(job);
        if (job.written === written && observation) components.set(job.component.name, observation);
      }
      return { written, components };
    });
  }

  async #observeOne(written: Written<"Workload", Workload>, component: SandboxedComponent): Promise<ComponentObservation> {
    const { object } = written;
    try {
      const fetched = component.bridge ? bundledBridge : await this.#fetchWritten(written, component);
      const bare = await this.#interfaceOf(fetched);
      const described = component.wit ? withDocs(bare, component.wit.inline) : bare;
      const functions = component.serves === undefined ? offeredFunctions(described, component.tools?.exclude ?? []) : offeringNothing;
      const behind = await this.#behindBridge(written, component);
      const reach = reachOf(object.spec, component.name, behind?.imports ?? described.imports);
      const listing = component.serves !== undefined || untypedExport(described) === null ? "none" : "awaited";
      if (component.serves !== undefined && incomingHandlerExport(described) === null)
        throw new Stalled(servesNoHttp.code, servesNoHttp.message);
      return {
        seen: {
          digest: fetched.digest,
          ...(behind && { code: behind.code }),
          bytes: fetched.read,
          file: fetched.file,
          interface: described,
          ...functions,
          reach,
          listing,
        },
      };
    } catch (error) {
      if (!(error instanceof AmbitError)) throw error;
      const at = error instanceof Invalid && error.at ? ` (at ${error.at})` : "";
      return {
        fault: { code: error.code, message: `${error.message}${at}`, passing: error instanceof Transient || error instanceof Waiting },
      };
    }
  }

  #fetchWritten({ object, file }: Written<"Workload", Workload>, { image }: SandboxedComponent): Promise<FetchedComponent> {
    return this.#fetch(image, dirname(file), object.spec.allowTags === true);
  }

  /** What answers behind a bridge; null for a component that answers itself. */
  async #behindBridge(
    written: Written<"Workload", Workload>,
    component: SandboxedComponent,
  ): Promise<{ readonly code: Sha256Digest | "any"; readonly imports: readonly WitImport[] } | null> {
    if (!component.bridge) return null;
    const server = serverOf(written.object.spec, component);
    if (!server) return { code: "any", imports: [] };
    const fetched = await this.#fetchWritten(written, server);
    return { code: fetched.digest, imports: (await this.#interfaceOf(fetched)).imports };
  }

  async #interfaceOf(fetched: FetchedComponent): Promise<ComponentInterface> {
    return this.#interfaces.get(fetched.digest) ?? this.#interfaces.of(fetched.digest, await fetched.read());
  }
}

export const seenComponent = (observation: ComponentObservation | undefined): ComponentSeen | null =>
  observation && "seen" in observation ? observation.seen : null;
