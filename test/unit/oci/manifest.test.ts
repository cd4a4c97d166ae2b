import assert from "node:assert/strict";
import { test } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { readManifest } from "../../../src/oci/manifest.ts";

const digest = `sha256:${"a".repeat(64)}`;
const otherDigest = `sha256:${"b".repeat(64)}`;
const read = (manifest: unknown) => readManifest(bytesOf(manifest), "r/a");
const bytesOf = (manifest: unknown): Uint8Array =>
  manifest instanceof Uint8Array ? manifest : Buffer.from(typeof manifest === "string" ? manifest : JSON.stringify(manifest));
const layer = (mediaType: string, more: object = {}) => ({ mediaType, digest, size: 10, ...more });
const image = (...layers: object[]) => ({ schemaVersion: 2, config: {}, layers });

for (const mediaType of [
  "application/wasm",
  "application/vnd.wasm.content.layer.v1+wasm",
  "application/vnd.module.wasm.content.layer.v1+wasm",
  "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
]) {
  test(`a layer of ${mediaType} is the component`, () =>
    assert.deepEqual(read(image(layer(mediaType))), { kind: "layer", layer: { digest, size: 10 }, packing: "bare" }));
}

for (const [mediaType, packing] of [
  ["application/vnd.oci.image.layer.v1.tar", "tar"],
  ["application/vnd.oci.image.layer.v1.tar+gzip", "tar+gzip"],
  ["application/vnd.oci.image.layer.v1.tar+zstd", "tar+zstd"],
  ["application/vnd.docker.image.rootfs.diff.tar.gzip", "tar+gzip"],
] as const) {
  test(`a single layer of ${mediaType} holds the component`, () =>
    assert.deepEqual(read(image(layer(mediaType))), { kind: "layer", layer: { digest, size: 10 }, packing }));
}

test("the wasm layer is found beside others, such as a policy", () => {
  const manifest = image(layer("application/vnd.example.policy+yaml", { digest: otherDigest }), layer("application/wasm"));
  assert.deepEqual(read(manifest), { kind: "layer", layer: { digest, size: 10 }, packing: "bare" });
});

test("an index names the manifest for wasm, and attestations beside it do not count", () => {
  const manifests = [
    layer("application/vnd.oci.image.manifest.v1+json", { platform: { os: "wasi", architecture: "wasm" } }),
    layer("application/vnd.oci.image.manifest.v1+json", { digest: otherDigest, platform: { os: "unknown", architecture: "unknown" } }),
  ];
  assert.deepEqual(read({ schemaVersion: 2, manifests }), { kind: "manifest", manifest: { digest, size: 10 } });
});

const refused: Record<string, { manifest: unknown; because: RegExp }> = {
  "text that is no JSON": { manifest: "<html>", because: /not JSON/ },
  "bytes that are no UTF-8": { manifest: Buffer.from([0x22, 0xff, 0x22]), because: /not JSON/ },
  "a list": { manifest: [], because: /not an object/ },
  "schema version 1": { manifest: { schemaVersion: 1, layers: [] }, because: /schemaVersion 2/ },
  "no layers": { manifest: image(), because: /no wasm layer and 0 other layers/ },
  "two wasm layers": { manifest: image(layer("application/wasm"), layer("application/wasm")), because: /2 of its layers are wasm/ },
  "an image of two layers": {
    manifest: image(layer("application/vnd.oci.image.layer.v1.tar"), layer("application/vnd.oci.image.layer.v1.tar")),
    because: /no wasm layer and 2 other layers/,
  },
  "a layer of another kind": {
    manifest: image(layer("application/vnd.cncf.helm.chart.content.v1.tar+gzip")),
    because: /media type "application\/vnd\.cncf/,
  },
  "an ordinary multi-platform image": {
    manifest: { schemaVersion: 2, manifests: [layer("x", { platform: { os: "linux", architecture: "amd64" } })] },
    because: /index with 0 manifests for the architecture wasm/,
  },
  "a digest of another algorithm": { manifest: image(layer("application/wasm", { digest: "sha512:00" })), because: /other than sha256/ },
  "a digest that is a path": { manifest: image(layer("application/wasm", { digest: "sha256:../../x" })), because: /other than sha256/ },
  "a negative size": { manifest: image(layer("application/wasm", { size: -1 })), because: /size that is no length/ },
  "a fractional size": { manifest: image(layer("application/wasm", { size: 1.5 })), because: /size that is no length/ },
  "a size beyond exact numbers": {
    manifest: `{"schemaVersion":2,"layers":[{"mediaType":"application/wasm","digest":"${digest}","size":18446744073709551615}]}`,
    because: /size/,
  },
  "layers that are no objects": { manifest: { schemaVersion: 2, layers: [null] }, because: /no object/ },
  "a thousand layers": { manifest: image(...Array.from({ length: 1000 }, () => layer("application/wasm"))), because: /1000 layers/ },
  "nesting without end": { manifest: "[".repeat(100_000), because: /not JSON/ },
  "two keys of one name": { manifest: '{"schemaVersion":2,"layers":[],"layers":[]}', because: /not JSON/ },
};

for (const [what, { manifest, because }] of Object.entries(refused)) {
  test(`refused: ${what}`, () => {
    assert.throws(
      () => read(manifest),
      (thrown: unknown) => thrown instanceof Invalid && thrown.code === "NotAComponentImage" && because.test(thrown.message),
    );
  });
}
