import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { sha256Of } from "../../src/api/digest.ts";
import { AmbitError } from "../../src/api/errors.ts";
import { openContentCache } from "../../src/oci/content-cache.ts";
import { fetchComponent, type PullOptions, type PullProgress } from "../../src/oci/pull.ts";
import { createTransport } from "../../src/oci/transport.ts";
import {
  type Artifact,
  descriptor,
  imageIndex,
  imageManifest,
  pushArtifact,
  pushBlob,
  pushManifest,
  wasmArtifact,
} from "../registry/push.ts";
import { type RunningRegistry, startRegistry, whyNoRegistry } from "../registry/serve.ts";
import { tarOf } from "../registry/tar.ts";

const noRegistry = await whyNoRegistry();

const component = Buffer.concat([Buffer.from("\0asm\x0d\0\x01\0"), Buffer.alloc(300_000, 7)]);

const failsWith = (code: string) => (thrown: unknown) => thrown instanceof AmbitError && thrown.code === code;

describe("a real registry", { skip: noRegistry ?? false }, () => {
  let running: RunningRegistry;
  let folder: string;
  before(async () => {
    running = await startRegistry();
    folder = await mkdtemp(join(tmpdir(), "ambit-oci-"));
  });
  after(async () => {
    await running[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  const newCache = () => mkdtemp(join(folder, "cache-"));
  const target = (repository: string) => ({ registry: running.registry, repository });
  const options = async (more: Partial<PullOptions> = {}): Promise<PullOptions> => ({
    transport: createTransport({ refusedAddress: () => null }),
    cache: openContentCache(await newCache()),
    ...more,
  });
  const archive = gzipSync(tarOf({ name: "tool.wasm", content: component }));

  const kinds: Record<string, Artifact> = {
    "a wasm artifact of today": wasmArtifact(component),
    "a wasm artifact of an older kind": {
      config: { mediaType: "application/vnd.wasm.config.v1+json", content: "{}" },
      layers: [{ mediaType: "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm", content: component }],
    },
    "an image with a single layer": {
      config: { mediaType: "application/vnd.oci.image.config.v1+json", content: '{"architecture":"wasm","os":"wasip2"}' },
      layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", content: archive }],
    },
  };
  for (const [kind, artifact] of Object.entries(kinds)) {
    test(`pulls ${kind} by its digest`, async () => {
      const digest = await pushArtifact(target("kinds/tool"), "v1", artifact);
      const image = `${running.registry}/kinds/tool@${digest}`;
      const pulled = await fetchComponent(image, ".", await options());
      assert.deepEqual(Buffer.from(pulled.bytes), component);
      assert.equal(pulled.digest, sha256Of(component));
      assert.equal(pulled.resolved, image);
      assert.equal(pulled.fromCache, false);
    });
  }

  test("pulls an image index by the manifest for wasm", async () => {
    const config = Buffer.from("{}");
    const where = target("index/tool");
    await pushBlob(where, component);
    await pushBlob(where, config);
    const layers = [descriptor("application/wasm", component)];
    const manifest = {
      schemaVersion: 2,
      mediaType: imageManifest,
      config: descriptor("application/vnd.wasm.config.v0+json", config),
      layers,
    };
    await pushManifest(where, "wasm", manifest);
    const entry = { ...descriptor(imageManifest, Buffer.from(JSON.stringify(manifest))), platform: { os: "wasi", architecture: "wasm" } };
    const digest = await pushManifest(where, "all", { schemaVersion: 2, mediaType: imageIndex, manifests: [entry] });
    const pulled = await fetchComponent(`${running.registry}/index/tool@${digest}`, ".", await options());
    assert.equal(pulled.digest, sha256Of(component));
  });

  test("what was pulled once is there without the registry", async () => {
    await using short = await startRegistry();
    const digest = await pushArtifact({ registry: short.registry, repository: "tool" }, "v1", wasmArtifact(component));
    const image = `${short.registry}/tool@${digest}`;
    const cached = await options();
    await fetchComponent(image, ".", cached);
    await short[Symbol.asyncDispose]();
    const pulled = await fetchComponent(image, ".", cached);
    assert.equal(pulled.digest, sha256Of(component));
    assert.equal(pulled.fromCache, true);
    await assert.rejects(fetchComponent(image, ".", await options()), failsWith("RegistryUnavailable"));
  });

  test("a damaged cache entry is pulled anew", async () => {
    const digest = await pushArtifact(target("damaged"), "v1", wasmArtifact(component));
    const cache = await newCache();
    const pulling = await options({ cache: openContentCache(cache) });
    await fetchComponent(`${running.registry}/damaged@${digest}`, ".", pulling);
    await writeFile(join(cache, "sha256", sha256Of(component).slice("sha256:".length)), "damaged");
    const pulled = await fetchComponent(`${running.registry}/damaged@${digest}`, ".", pulling);
    assert.equal(pulled.fromCache, false);
    assert.equal(pulled.digest, sha256Of(component));
  });

  test("two processes that pull into one cache at once both get the component and leave it whole", async () => {
    const digest = await pushArtifact(target("twice"), "v1", wasmArtifact(component));
    const cache = await newCache();
    const script = resolve(import.meta.dirname, "../registry/pull-once.ts");
    const pulling = () => promisify(execFile)(process.execPath, [script, `${running.registry}/twice@${digest}`, cache]);
    const outputs = await Promise.all([pulling(), pulling()]);
    assert.deepEqual(
      outputs.map(({ stdout }) => stdout.trim()),
      [sha256Of(component), sha256Of(component)],
    );
    assert.deepEqual(await readdir(join(cache, "partial")), []);
    assert.deepEqual(await openContentCache(cache).read(sha256Of(component), component.length), component);
  });

  test("a tag is refused unless tags are allowed, and then is asked for each time", async () => {
    const image = `${running.registry}/moving:v1`;
    await pushArtifact(target("moving"), "v1", wasmArtifact(component));
    await assert.rejects(fetchComponent(image, ".", await options()), failsWith("ImageNotPinned"));
    const tags = await options({ allowTags: true });
    const before = await fetchComponent(image, ".", tags);
    const other = Buffer.from("\0asm other");
    const digest = await pushArtifact(target("moving"), "v1", wasmArtifact(other));
    const after = await fetchComponent(image, ".", tags);
    assert.deepEqual([before.digest, after.digest], [sha256Of(component), sha256Of(other)]);
    assert.equal(after.resolved, `${running.registry}/moving:v1@${digest}`);
  });

  test("what the registry does not have is named", async () => {
    const nowhere = `${running.registry}/none@${sha256Of("none")}`;
    await assert.rejects(
      fetchComponent(nowhere, ".", await options()),
      (thrown: unknown) => failsWith("ImageNotFound")(thrown) && String(thrown).includes(nowhere),
    );
  });

  test("a component larger than the limit is refused before it is fetched", async () => {
    const digest = await pushArtifact(target("large"), "v1", wasmArtifact(component));
    let received = 0;
    const limited = await options({ maxBytes: 1000, onProgress: (progress) => (received = progress.received) });
    await assert.rejects(fetchComponent(`${running.registry}/large@${digest}`, ".", limited), failsWith("ImageTooLarge"));
    assert.equal(received, 0);
  });

  test("an artifact that is something else is refused", async () => {
    const chart: Artifact = {
      config: { mediaType: "application/vnd.cncf.helm.config.v1+json", content: "{}" },
      layers: [{ mediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", content: archive }],
    };
    const digest = await pushArtifact(target("chart"), "v1", chart);
    await assert.rejects(fetchComponent(`${running.registry}/chart@${digest}`, ".", await options()), failsWith("NotAComponentImage"));
  });

  test("progress goes up to the whole of it", async () => {
    const digest = await pushArtifact(target("progress"), "v1", wasmArtifact(component));
    const seen: PullProgress[] = [];
    await fetchComponent(`${running.registry}/progress@${digest}`, ".", await options({ onProgress: (progress) => seen.push(progress) }));
    assert.deepEqual(seen.at(-1)?.received, component.length);
    assert.ok(seen.every(({ total }) => total === component.length));
  });
});

test("a file is fetched without any registry", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-oci-"));
  try {
    await writeFile(join(folder, "tool.wasm"), component);
    const transport = () => Promise.reject(new Error("no network is needed"));
    const fetched = await fetchComponent("file:tool.wasm", folder, { transport, cache: openContentCache(join(folder, "cache")) });
    assert.equal(fetched.digest, sha256Of(component));
    assert.equal(fetched.resolved, `file:tool.wasm@${sha256Of(component)}`);
  } finally {
    await rm(folder, { recursive: true });
  }
});
