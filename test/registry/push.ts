import { strict as assert } from "node:assert";
import { type Sha256Digest, sha256Of } from "../../src/api/digest.ts";

/** What a test publishes: the media types say which kind of publisher it stands for. */
export interface Artifact {
  readonly config: { readonly mediaType: string; readonly content: string };
  readonly layers: readonly { readonly mediaType: string; readonly content: Uint8Array }[];
}

/** How `wkg` publishes a component today. */
export const wasmArtifact = (component: Uint8Array): Artifact => ({
  config: { mediaType: "application/vnd.wasm.config.v0+json", content: '{"architecture":"wasm","os":"wasip2"}' },
  layers: [{ mediaType: "application/wasm", content: component }],
});

/** A repository that a test writes to: `http://localhost:PORT/v2/NAME`. */
export interface PushTarget {
  readonly registry: string;
  readonly repository: string;
}

/** Pushes an artifact under a tag and gives its manifest's digest. */
export const pushArtifact = async (target: PushTarget, tag: string, { config, layers }: Artifact): Promise<Sha256Digest> => {
  const configBytes = Buffer.from(config.content);
  await pushBlob(target, configBytes);
  for (const { content } of layers) await pushBlob(target, content);
  return pushManifest(target, tag, {
    schemaVersion: 2,
    mediaType: imageManifest,
    config: descriptor(config.mediaType, configBytes),
    layers: layers.map(({ mediaType, content }) => descriptor(mediaType, content)),
  });
};

export const imageManifest = "application/vnd.oci.image.manifest.v1+json";
export const imageIndex = "application/vnd.oci.image.index.v1+json";

export const descriptor = (mediaType: string, content: Uint8Array): Record<string, unknown> => ({
  mediaType,
  digest: sha256Of(content),
  size: content.length,
});

export const pushManifest = async (
  target: PushTarget,
  tag: string,
  manifest: { readonly mediaType: string } & Record<string, unknown>,
): Promise<Sha256Digest> => {
  const body = JSON.stringify(manifest);
  const response = await fetch(`${baseOf(target)}/manifests/${tag}`, {
    method: "PUT",
    headers: { "content-type": manifest.mediaType },
    body,
  });
  assert.equal(response.status, 201, await response.text());
  return sha256Of(body);
};

export const pushBlob = async (target: PushTarget, content: Uint8Array): Promise<void> => {
  const begun = await fetch(`${baseOf(target)}/blobs/uploads/`, { method: "POST" });
  assert.equal(begun.status, 202);
  const location = new URL(begun.headers.get("location") ?? "", `http://${target.registry}`);
  location.searchParams.set("digest", sha256Of(content));
  const done = await fetch(location, { method: "PUT", body: Buffer.from(content) });
  assert.equal(done.status, 201, await done.text());
};

const baseOf = ({ registry, repository }: PushTarget): string => `http://${registry}/v2/${repository}`;
