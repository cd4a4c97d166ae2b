import { LRUCache } from "lru-cache";
import type { Sha256Digest } from "../api/digest.ts";
import { Invalid, Stalled } from "../api/errors.ts";
import type { Workload, WorkloadComponent } from "../api/generated/workload.ts";
import type { ComponentInterface } from "../api/wit.ts";
import type { ContentCache } from "../oci/content-cache.ts";
import { anonymous, type RegistryCredentials } from "../oci/docker-config.ts";
import { type PulledComponent, pullComponent } from "../oci/pull.ts";
import { formatReference, parseImageReference, type RegistryReference } from "../oci/reference.ts";
import type { RegistryTransport } from "../oci/transport.ts";
import { KnownInterfaces } from "../wit/known-interfaces.ts";
import { withDocs } from "../wit/with-docs.ts";
import { unlessAborted } from "./unless-aborted.ts";

/** A component of a Workload as its image is now. */
export interface StoredComponent {
  /** sha256 of the bytes: what a review names and what a host is started with. */
  readonly digest: Sha256Digest;
  /** The image with the digest that it was resolved to. */
  readonly resolved: string;
  /** What it exports and imports, with the docs that the Workload adds. */
  readonly interface: ComponentInterface;
  /** Reads the bytes, from the cache if they are there; they hash to `digest` or it throws. */
  bytes(): Promise<Uint8Array>;
}

/** Finds the components that Workloads name. All controllers share one, so that an image is pulled and read once. */
export interface ComponentStore {
  /** Throws `Invalid`, `Stalled`, `Refused`, `Waiting` or `Transient`, as pulling and decoding do; `FileImageInCluster` for a `file:` image. */
  fetch(workload: Workload, component: WorkloadComponent, signal?: AbortSignal): Promise<StoredComponent>;
}

export interface ComponentStoreOptions {
  readonly cache: ContentCache;
  readonly transport: RegistryTransport;
  /** Whether a registry is spoken to without TLS. */
  readonly isPlainHttp: (registry: string) => boolean;
  /** What the registry wants to know, from the component's pull secret. By default nothing. */
  readonly credentials?: (workload: Workload, component: WorkloadComponent) => Promise<RegistryCredentials>;
}

interface Known {
  readonly digest: Sha256Digest;
  readonly resolved: string;
}

/** References whose digest is remembered. */
const referencesKept = 4096;

export const openComponentStore = ({
  cache,
  transport,
  isPlainHttp,
  credentials = async () => anonymous,
}: ComponentStoreOptions): ComponentStore => {
  const interfaces = new KnownInterfaces();
  /** By reference with a digest, which never comes to mean anything else. */
  const known = new LRUCache<string, Known>({ max: referencesKept });
  const pulling = new Map<string, Promise<PulledComponent>>();

  const pull = async (reference: RegistryReference, asked: Asked): Promise<PulledComponent> => {
    const name = formatReference(reference);
    // Who may pull differs by pull secret, so only those with the same one share an answer.
    const shared = `${name} ${asked.workload.metadata.namespace} ${asked.component.imagePullSecret?.name ?? ""}`;
    const underWay = pulling.get(shared);
    if (underWay) return unlessAborted(underWay, asked.signal);
    // Not ended by who asked first: others may wait for it by then. It has a deadline of its own.
    const pulled = credentials(asked.workload, asked.component)
      .then((found) =>
        pullComponent(reference, { cache, transport, isPlainHttp, credentials: found, allowTags: reference.digest === null }),
      )
      .finally(() => pulling.delete(shared));
    pulling.set(shared, pulled);
    return unlessAborted(pulled, asked.signal);
  };

  const look = async (reference: RegistryReference, asked: Asked): Promise<Known & { readonly bare: ComponentInterface }> => {
    const before = reference.digest === null ? undefined : known.get(formatReference(reference));
    const decoded = before && interfaces.get(before.digest);
    if (before && decoded) return { ...before, bare: decoded };
    const { bytes, digest, resolved } = await pull(reference, asked);
    known.set(resolved, { digest, resolved });
    return { digest, resolved, bare: interfaces.of(digest, bytes) };
  };

  return {
    fetch: async (workload, component, signal) => {
      const asked = { workload, component, ...(signal ? { signal } : {}) };
      const reference = imageOf(workload, component);
      const { digest, resolved, bare } = await look(reference, asked);
      return {
        digest,
        resolved,
        interface: component.wit ? withDocs(bare, component.wit.inline) : bare,
        bytes: async () => {
          const again = await pull(parsedRegistry(resolved), asked);
          if (again.digest === digest) return again.bytes;
          throw new Stalled("DigestMismatch", `${resolved} gave other bytes than before: ${again.digest} instead of ${digest}`);
        },
      };
    },
  };
};

interface Asked {
  readonly workload: Workload;
  readonly component: WorkloadComponent;
  readonly signal?: AbortSignal;
}

/**
 * The image to run. A tag that this generation of the Workload was resolved by stays what it was then: a registry where it moves does not change what runs, nor does a restart
 * of the operator.
 */
const imageOf = (workload: Workload, component: WorkloadComponent): RegistryReference => {
  const reference = parsedRegistry(component.image);
  if (reference.digest !== null) return reference;
  if (!workload.spec.allowTags) {
    throw new Invalid("ImageNotPinned", `${component.image} has no digest: write ${component.image}@sha256:…, or set allowTags`);
  }
  if (workload.status?.observedGeneration !== workload.metadata.generation) return reference;
  const before = workload.status?.components?.find(({ name }) => name === component.name)?.resolved;
  if (before === undefined) return reference;
  const resolved = parsedRegistry(before);
  const isSame = formatReference({ ...resolved, digest: null }) === formatReference(reference);
  return isSame ? resolved : reference;
};

const parsedRegistry = (image: string): RegistryReference => {
  const reference = parseImageReference(image);
  if (reference.kind === "registry") return reference;
  throw new Invalid(
    "FileImageInCluster",
    `${image} is a file, which a cluster cannot reach: push the component to a registry and name it by digest`,
  );
};
