import { LRUCache } from "lru-cache";
import { bridgeDigest, bridgeImage } from "../api/bridge-component.ts";
import type { Sha256Digest } from "../api/digest.ts";
import { Invalid, Stalled, Waiting } from "../api/errors.ts";
import type { Workload } from "../api/generated/workload.ts";
import type { ComponentInterface } from "../api/wit.ts";
import type { SandboxedComponent } from "../grants/sandboxed-component.ts";
import { abortScope } from "../kube/abort-scope.ts";
import type { Clock } from "../kube/clock.ts";
import { readBridge } from "../oci/bundled-bridge.ts";
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

/** Finds the components that Workloads name, and the bridge that comes with Ambit. All controllers share one, so that an image is pulled and read once. */
export interface ComponentStore {
  /**
   * Throws `Invalid`, `Stalled`, `Refused`, `Waiting` or `Transient`, as pulling and decoding do; `FileImageInCluster` for a `file:` image; `Waiting` (`Pulling`) where a registry takes
   * its time: the pull goes on, and whoever asks again gets what became of it.
   */
  fetch(workload: Workload, component: SandboxedComponent, signal?: AbortSignal): Promise<StoredComponent>;
}

export interface ComponentStoreOptions {
  readonly cache: ContentCache;
  readonly transport: RegistryTransport;
  /** Whether a registry is spoken to without TLS. */
  readonly isPlainHttp: (registry: string) => boolean;
  readonly clock: Clock;
  /** What the registry wants to know, from the component's pull secret. By default nothing. */
  readonly credentials?: (workload: Workload, component: SandboxedComponent) => Promise<RegistryCredentials>;
}

interface Known {
  readonly digest: Sha256Digest;
  readonly resolved: string;
}

interface Looked extends Known {
  /** Without the docs that a Workload adds. */
  readonly bare: ComponentInterface;
}

/** References whose digest is remembered. */
const referencesKept = 4096;

/** A registry that hangs must not keep who asks from looking after others: they wait for so long, and are to ask again after this. */
const patienceMs = 5_000;
const askAgainMs = 2_000;
/** For so long what became of a pull is there for those who ask again; longer than they take to. */
const outcomeKeptMs = 5_000;

export const openComponentStore = ({
  cache,
  transport,
  isPlainHttp,
  clock,
  credentials = async () => anonymous,
}: ComponentStoreOptions): ComponentStore => {
  const interfaces = new KnownInterfaces();
  /** By reference with a digest, which never comes to mean anything else. */
  const known = new LRUCache<string, Known>({ max: referencesKept });
  const lookings = new Map<string, Promise<Looked>>();
  /** Who was given which image by its registry, as `accessKey`. */
  const given = new LRUCache<string, true>({ max: referencesKept });

  const isTheirs = (resolved: string, asked: Asked): boolean => given.has(accessKey(resolved, asked)) || hadBefore(resolved, asked);

  const pull = async (reference: RegistryReference, asked: Asked): Promise<PulledComponent> => {
    const found = await credentials(asked.workload, asked.component);
    const pulled = await pullComponent(reference, {
      cache,
      transport,
      isPlainHttp,
      credentials: found,
      allowTags: reference.digest === null,
      // What another's credentials brought is not theirs before the registry gave it to them, too: the manifest where we pulled it from the very same repository; all of it
      // where it is only said to be the same, since a registry of theirs may say anything.
      manifestsFromCache: reference.digest !== null && isTheirs(formatReference(reference), asked),
      componentFromCache: (resolved) => known.has(resolved) || isTheirs(resolved, asked),
    });
    given.set(accessKey(pulled.resolved, asked), true);
    return pulled;
  };

  const pullAndRead = async (reference: RegistryReference, asked: Asked): Promise<Looked> => {
    const { bytes, digest, resolved } = await pull(reference, asked);
    known.set(resolved, { digest, resolved });
    return { digest, resolved, bare: interfaces.of(digest, bytes) };
  };

  /** Not ended by who asked first: others may wait for it by then. It has a deadline of its own. */
  const looking = (reference: RegistryReference, asked: Asked): Promise<Looked> => {
    // Who may pull differs by pull secret, and what a tag means by when it was asked: only those with the same share an answer.
    const { namespace, name, generation } = asked.workload.metadata;
    const when = reference.digest === null ? [name, generation] : [];
    const key = JSON.stringify([formatReference(reference), namespace, asked.component.imagePullSecret?.name, ...when]);
    const underWay = lookings.get(key);
    if (underWay) return underWay;
    const started = pullAndRead(reference, asked);
    lookings.set(key, started);
    const forget = (): void => void clock.after(outcomeKeptMs, () => lookings.delete(key));
    started.then(forget, forget);
    return started;
  };

  const look = async (reference: RegistryReference, asked: Asked): Promise<Looked> => {
    const before = reference.digest === null ? undefined : known.get(formatReference(reference));
    const bare = before && interfaces.get(before.digest);
    if (before && bare && isTheirs(before.resolved, asked)) return { ...before, bare };
    const scope = abortScope(asked.signal);
    const cancel = clock.after(patienceMs, () =>
      scope.abort(new Waiting("Pulling", `${formatReference(reference)} is being pulled, which takes its time`, askAgainMs)),
    );
    try {
      return await unlessAborted(looking(reference, asked), scope.signal);
    } finally {
      cancel();
      scope.release();
    }
  };

  const bridge = async (): Promise<StoredComponent> => ({
    digest: bridgeDigest,
    resolved: bridgeImage,
    interface: interfaces.get(bridgeDigest) ?? interfaces.of(bridgeDigest, await readBridge()),
    bytes: readBridge,
  });

  return {
    fetch: async (workload, component, signal) => {
      if (component.bridge) return bridge();
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
  readonly component: SandboxedComponent;
  readonly signal?: AbortSignal;
}

/** Who may have an image: whoever pulls with the same secret of the same namespace. */
const accessKey = (resolved: string, { workload, component }: Asked): string =>
  JSON.stringify([workload.metadata.namespace, component.imagePullSecret?.name ?? null, resolved]);

/** Whether the Workload had the image before, as its status says, which the operator alone writes: a registry that is away takes nothing from who had it. */
const hadBefore = (resolved: string, { workload }: Asked): boolean =>
  (workload.status?.components ?? []).some((component) => component.resolved === resolved);

/**
 * The image to run. A tag that this generation of the Workload was resolved by stays what it was then: a registry where it moves does not change what runs, nor does a restart
 * of the operator.
 */
const imageOf = (workload: Workload, component: SandboxedComponent): RegistryReference => {
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
