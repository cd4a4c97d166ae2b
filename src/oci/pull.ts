import { type Sha256Digest, sha256Of } from "../api/digest.ts";
import { Invalid, Stalled, Transient } from "../api/errors.ts";
import { readComponentFile } from "./component-file.ts";
import type { ContentCache } from "./content-cache.ts";
import { anonymous, type RegistryCredentials } from "./docker-config.ts";
import { unpackLayer } from "./layer.ts";
import { type Descriptor, type ManifestContent, manifestMediaTypes, maxManifestBytes, readManifest } from "./manifest.ts";
import { formatReference, parseImageReference, type RegistryReference } from "./reference.ts";
import { isLoopbackRegistry, openRepository, type Repository } from "./registry.ts";
import type { RegistryTransport } from "./transport.ts";

/** A component's bytes and what they are known by. */
export interface PulledComponent {
  readonly bytes: Uint8Array;
  /** Of the bytes: what a review names and what a host is started with. */
  readonly digest: Sha256Digest;
  /** The reference with the digest it was resolved to: of the manifest for a registry, of the bytes for a file. */
  readonly resolved: string;
  /** Whether the network was left alone. */
  readonly fromCache: boolean;
}

export interface PullProgress {
  readonly reference: string;
  readonly received: number;
  readonly total: number;
}

export interface PullOptions {
  readonly transport: RegistryTransport;
  readonly cache: ContentCache;
  /** None by default. */
  readonly credentials?: RegistryCredentials;
  /** Whether a registry is spoken to without TLS; by default those on loopback. */
  readonly isPlainHttp?: (registry: string) => boolean;
  /** Whether a reference may leave the digest out; what the tag means is then asked at every pull. */
  readonly allowTags?: boolean;
  /** Whether manifests are taken from the cache, without asking the registry whether these credentials may read them; so by default. */
  readonly manifestsFromCache?: boolean;
  /** Whether the component of the image, by its reference with a digest, is taken from the cache; so by default. */
  readonly componentFromCache?: (resolved: string) => boolean;
  readonly maxBytes?: number;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: PullProgress) => void;
}

/** Four times what the largest toolchain of today makes. */
export const defaultMaxComponentBytes = 128 * 1024 * 1024;
const defaultTimeoutMs = 300_000;

/**
 * The component that a Workload's `image` names: `file:` paths are read from `folder`, everything else is pulled. Throws what `parseImageReference`,
 * `readComponentFile` and `pullComponent` throw.
 */
export const fetchComponent = async (image: string, folder: string, options: PullOptions): Promise<PulledComponent> => {
  const reference = parseImageReference(image);
  if (reference.kind === "registry") return pullComponent(reference, options);
  const bytes = await readComponentFile(reference, folder, options.maxBytes ?? defaultMaxComponentBytes);
  const digest = sha256Of(bytes);
  return { bytes, digest, resolved: formatReference({ ...reference, digest }), fromCache: true };
};

/**
 * Pulls the one component of an artifact; with a digest and everything cached, without the network. Throws `Invalid` (`ImageNotPinned`,
 * `NotAComponentImage`, `ImageTooLarge`), `Stalled` (`DigestMismatch`, and as `Repository.read` says), `Refused`, `Waiting` or `Transient`
 * (`RegistryTimeout`, and as `Repository.read` and `ContentCache.write` say).
 */
export const pullComponent = async (reference: RegistryReference, options: PullOptions): Promise<PulledComponent> => {
  const name = formatReference(reference);
  if (reference.digest === null && !(options.allowTags ?? false)) {
    throw new Invalid("ImageNotPinned", `${name} has no digest: write ${name}@sha256:…, or set allowTags`);
  }
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  const deadline = AbortSignal.timeout(timeoutMs);
  const signal = options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]);
  try {
    return await pull(reference, name, options, signal);
  } catch (thrown) {
    if (thrown === deadline.reason && deadline.aborted) {
      throw new Transient("RegistryTimeout", `${name} was not here after ${timeoutMs} ms`, { cause: thrown });
    }
    throw thrown;
  }
};

const pull = async (reference: RegistryReference, name: string, options: PullOptions, signal: AbortSignal): Promise<PulledComponent> => {
  const source = openSource(reference, name, options, signal);
  const root =
    reference.digest === null
      ? await source.taggedManifest(reference.tag ?? "latest")
      : await source.manifest({ digest: reference.digest, size: null });
  let content: ManifestContent = readManifest(root, name);
  if (content.kind === "manifest") content = readManifest(await source.manifest(content.manifest), name);
  if (content.kind === "manifest")
    throw new Invalid("NotAComponentImage", `${name} is no component image: its index refers to another index`);
  const maxBytes = options.maxBytes ?? defaultMaxComponentBytes;
  const resolved = formatReference({ ...reference, digest: sha256Of(root) });
  const isReused = options.componentFromCache?.(resolved) ?? true;
  const bytes = await unpackLayer(await source.layer(content.layer, maxBytes, isReused), content.packing, maxBytes, name);
  if (bytes.length > maxBytes) throw tooLarge(name, bytes.length, maxBytes);
  return {
    bytes,
    digest: sha256Of(bytes),
    resolved,
    fromCache: !source.usedNetwork(),
  };
};

interface Source {
  taggedManifest(tag: string): Promise<Uint8Array>;
  manifest(wanted: { readonly digest: Sha256Digest; readonly size: number | null }): Promise<Uint8Array>;
  layer(wanted: Descriptor, maxBytes: number, isReused: boolean): Promise<Uint8Array>;
  usedNetwork(): boolean;
}

/** The cache before the registry. Nothing enters the cache, and nothing is looked into, before its digest was compared. */
const openSource = (reference: RegistryReference, name: string, options: PullOptions, signal: AbortSignal): Source => {
  const { cache, onProgress } = options;
  let opened: Repository | null = null;
  const repository = (): Repository => {
    opened ??= openRepository(reference, {
      transport: options.transport,
      credentials: options.credentials ?? anonymous,
      isPlainHttp: options.isPlainHttp ?? isLoopbackRegistry,
      signal,
    });
    return opened;
  };

  const content = async (
    digest: Sha256Digest,
    size: number | null,
    maxBytes: number,
    isReused: boolean,
    fetch: () => Promise<Uint8Array>,
  ): Promise<Uint8Array> => {
    if (size !== null && size > maxBytes) throw tooLarge(name, size, maxBytes);
    return (isReused ? await cache.read(digest, maxBytes) : null) ?? (await fetched(digest, size, fetch));
  };

  const fetched = async (digest: Sha256Digest, size: number | null, fetch: () => Promise<Uint8Array>): Promise<Uint8Array> => {
    const bytes = await fetch();
    if (size !== null && bytes.length < size) {
      throw new Transient("RegistryUnavailable", `${reference.registry} sent ${bytes.length} of ${size} bytes of ${digest} for ${name}`);
    }
    const found = sha256Of(bytes);
    if (found !== digest)
      throw new Stalled("DigestMismatch", `${reference.registry} sent something else for ${name}: it hashes to ${found}, not to ${digest}`);
    await cache.write(digest, bytes);
    return bytes;
  };

  return {
    taggedManifest: async (tag) => {
      const bytes = await repository().read(`manifests/${tag}`, manifestMediaTypes, maxManifestBytes);
      await cache.write(sha256Of(bytes), bytes);
      return bytes;
    },
    manifest: ({ digest, size }) =>
      content(digest, size, maxManifestBytes, options.manifestsFromCache ?? true, () =>
        repository().read(`manifests/${digest}`, manifestMediaTypes, maxManifestBytes),
      ),
    layer: ({ digest, size }, maxBytes, isReused) =>
      content(digest, size, maxBytes, isReused, () =>
        repository().read(`blobs/${digest}`, ["*/*"], size, (received) => onProgress?.({ reference: name, received, total: size })),
      ),
    usedNetwork: () => opened !== null,
  };
};

const tooLarge = (name: string, size: number, maxBytes: number): Invalid =>
  new Invalid("ImageTooLarge", `${name} has ${size} bytes, more than the ${maxBytes} that a component may have`);
