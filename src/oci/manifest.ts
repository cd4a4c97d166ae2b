import { isSha256Digest, type Sha256Digest } from "../api/digest.ts";
import { Invalid } from "../api/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../api/json.ts";

/** Content in a registry: what it should hash to and how long it is (OCI image specification, "Content Descriptors"). */
export interface Descriptor {
  readonly digest: Sha256Digest;
  readonly size: number;
}

/** How the component lies in its layer. */
export type Packing = "bare" | "tar" | "tar+gzip" | "tar+zstd";

/** What a manifest says about the one component it is for: the layer that holds it, or the manifest to read instead. */
export type ManifestContent =
  | { readonly kind: "layer"; readonly layer: Descriptor; readonly packing: Packing }
  | { readonly kind: "manifest"; readonly manifest: Descriptor };

/** Registries have to take manifests of 4 MiB (OCI distribution specification), so nobody publishes larger ones. */
export const maxManifestBytes = 4 * 1024 * 1024;

export const manifestMediaTypes: readonly string[] = [
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
];

/** Media types of a layer that is the component itself: today's of the CNCF wasm working group first, then those of older publishers. */
const bareTypes: ReadonlySet<string> = new Set([
  "application/wasm",
  "application/vnd.wasm.content.layer.v1+wasm",
  "application/vnd.module.wasm.content.layer.v1+wasm",
  "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
]);

const archiveTypes: ReadonlyMap<string, Packing> = new Map([
  ["application/vnd.oci.image.layer.v1.tar", "tar"],
  ["application/vnd.oci.image.layer.v1.tar+gzip", "tar+gzip"],
  ["application/vnd.oci.image.layer.v1.tar+zstd", "tar+zstd"],
  ["application/vnd.docker.image.rootfs.diff.tar", "tar"],
  ["application/vnd.docker.image.rootfs.diff.tar.gzip", "tar+gzip"],
]);

/** More layers than any tool artifact has; a manifest of 4 MiB could list 20,000. */
const maxEntries = 128;

/**
 * Finds the component of an image manifest or image index. A manifest with one wasm layer is that layer's, whatever else it carries; an image without one has to
 * have a single layer, an archive; an index has to have one manifest for the architecture `wasm`. The config is publisher's prose and not read. Throws
 * `Invalid` with code `NotAComponentImage`.
 */
export const readManifest = (bytes: Uint8Array, name: string): ManifestContent => {
  const manifest = manifestObject(bytes, name);
  if (manifest.manifests !== undefined) return { kind: "manifest", manifest: wasmManifest(manifest.manifests, name) };
  const layers = entries(manifest.layers, name, "layers");
  const bare = layers.filter((layer) => bareTypes.has(mediaType(layer)));
  if (bare.length > 1) throw notAComponent(name, `${bare.length} of its layers are wasm, and which one is the component is not said`);
  const [wasm] = bare;
  if (wasm !== undefined) return { kind: "layer", layer: descriptor(wasm, name), packing: "bare" };
  const [only] = layers;
  if (only === undefined || layers.length > 1) throw notAComponent(name, `it has no wasm layer and ${layers.length} other layers, not one`);
  const packing = archiveTypes.get(mediaType(only));
  if (packing === undefined) throw notAComponent(name, `its layer has the media type ${JSON.stringify(mediaType(only).slice(0, 100))}`);
  return { kind: "layer", layer: descriptor(only, name), packing };
};

const manifestObject = (bytes: Uint8Array, name: string): JsonObject => {
  let value: JsonValue;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    value = parseJson(text, { maxLength: maxManifestBytes, maxDepth: 32 });
  } catch (thrown) {
    throw notAComponent(name, "its manifest is not JSON", { cause: thrown });
  }
  if (!isJsonObject(value)) throw notAComponent(name, "its manifest is not an object");
  if (value.schemaVersion !== 2) throw notAComponent(name, "its manifest does not have schemaVersion 2");
  return value;
};

/** An image for several platforms names each one's manifest; attestations stand beside them with the architecture `unknown`. */
const wasmManifest = (manifests: JsonValue, name: string): Descriptor => {
  const forWasm = entries(manifests, name, "manifests").filter(
    ({ platform }) => isJsonObject(platform) && platform.architecture === "wasm",
  );
  const [only] = forWasm;
  if (only === undefined || forWasm.length > 1) {
    throw notAComponent(name, `it is an index with ${forWasm.length} manifests for the architecture wasm, not one`);
  }
  return descriptor(only, name);
};

const entries = (value: JsonValue | undefined, name: string, key: string): readonly JsonObject[] => {
  if (!Array.isArray(value)) throw notAComponent(name, `its manifest has no list of ${key}`);
  if (value.length > maxEntries) throw notAComponent(name, `its manifest has ${value.length} ${key}, more than ${maxEntries}`);
  return value.map((entry: JsonValue) => {
    if (!isJsonObject(entry)) throw notAComponent(name, `its manifest has an entry of ${key} that is no object`);
    return entry;
  });
};

const mediaType = (entry: JsonObject): string => (typeof entry.mediaType === "string" ? entry.mediaType : "");

const descriptor = ({ digest, size }: JsonObject, name: string): Descriptor => {
  if (typeof digest !== "string" || !isSha256Digest(digest))
    throw notAComponent(name, "its manifest names content by something other than sha256");
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0)
    throw notAComponent(name, "its manifest has a size that is no length");
  return { digest, size };
};

const notAComponent = (name: string, why: string, options?: ErrorOptions): Invalid =>
  new Invalid("NotAComponentImage", `${name} is no component image: ${why}`, undefined, options);
