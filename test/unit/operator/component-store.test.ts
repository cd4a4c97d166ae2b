import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { sha256Of } from "../../../src/api/digest.ts";
import { Transient } from "../../../src/api/errors.ts";
import type { WorkloadComponent, WorkloadSpec } from "../../../src/api/generated/workload.ts";
import { systemClock } from "../../../src/kube/clock.ts";
import { openContentCache } from "../../../src/oci/content-cache.ts";
import { parseDockerConfig } from "../../../src/oci/docker-config.ts";
import type { RegistryRequest, RegistryResponse } from "../../../src/oci/transport.ts";
import { type ComponentStoreOptions, openComponentStore } from "../../../src/operator/component-store.ts";
import { ManualClock } from "../kube/manual-clock.ts";
import { component, workload } from "./workload-world.ts";

const bytes = readFileSync(new URL("../../fixtures/components/mission.wasm", import.meta.url));
const otherBytes = readFileSync(new URL("../../fixtures/components/collections.wasm", import.meta.url));

/** A registry with one repository: what it has can be changed, and everything that was asked is kept. */
class FakeRegistry {
  readonly asked: string[] = [];
  readonly #content = new Map<string, Uint8Array>();
  isDown = false;

  /** Puts a component, and gives the digest of its manifest. */
  push(layer: Uint8Array, tag?: string): string {
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: { mediaType: "application/vnd.wasm.config.v0+json", digest: sha256Of("{}"), size: 2 },
        layers: [{ mediaType: "application/wasm", digest: sha256Of(layer), size: layer.length }],
      }),
    );
    this.#content.set(`blobs/${sha256Of(layer)}`, layer);
    this.#content.set(`manifests/${sha256Of(manifest)}`, manifest);
    if (tag !== undefined) this.#content.set(`manifests/${tag}`, manifest);
    return sha256Of(manifest);
  }

  readonly transport = async ({ url }: RegistryRequest): Promise<RegistryResponse> => {
    const path = url.pathname.replace("/v2/tools/mission/", "");
    this.asked.push(path);
    const content = this.isDown ? undefined : this.#content.get(path);
    return {
      status: this.isDown ? 503 : content ? 200 : 404,
      header: (name) =>
        name.toLowerCase() === "content-type" && path.startsWith("manifests/") ? "application/vnd.oci.image.manifest.v1+json" : null,
      body: (async function* () {
        if (content) yield content;
      })(),
      discard: () => {},
    };
  };
}

describe("the components that Workloads name", () => {
  const folder = mkdtempSync(join(tmpdir(), "ambit-store-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  let folders = 0;
  const newFolder = () => join(folder, String(folders++));
  const open = (registry: FakeRegistry, options: Partial<ComponentStoreOptions> = {}) =>
    openComponentStore({
      cache: openContentCache(newFolder()),
      transport: registry.transport,
      isPlainHttp: () => false,
      clock: systemClock,
      ...options,
    });
  const one = (image: string, spec: Partial<WorkloadSpec> = {}, changes: Partial<WorkloadComponent> = {}) => {
    const of = component({ image, ...changes });
    return [workload({ components: [of], ...spec }), of] as const;
  };

  test("are known by the digest of their bytes, and read once", async () => {
    const registry = new FakeRegistry();
    const store = open(registry);
    const [of, named] = one(`registry.test/tools/mission@${registry.push(bytes)}`);
    const [first, second] = await Promise.all([store.fetch(of, named), store.fetch(of, named)]);
    assert.equal(first.digest, sha256Of(bytes));
    assert.equal(first.interface, second.interface);
    assert.deepEqual(
      first.interface.functions.map(({ name }) => name),
      ["list-issues"],
    );
    assert.equal(sha256Of(await first.bytes()), first.digest);
    assert.equal(registry.asked.length, 2, "the manifest and the layer");
  });

  test("are there when their registry is down, also for an operator that starts anew", async () => {
    const registry = new FakeRegistry();
    const cache = openContentCache(newFolder());
    const [of, named] = one(`registry.test/tools/mission@${registry.push(bytes)}`);
    const { resolved } = await open(registry, { cache }).fetch(of, named);
    registry.isDown = true;
    const had = { ...of, status: { components: [{ name: named.name, resolved }] } };
    const again = await open(registry, { cache }).fetch(had, named);
    assert.equal(sha256Of(await again.bytes()), sha256Of(bytes));
  });

  test("stay what a tag meant when this generation was resolved by it", async () => {
    const registry = new FakeRegistry();
    const before = registry.push(bytes, "1.0");
    const [of, named] = one("registry.test/tools/mission:1.0", { allowTags: true });
    const found = await open(registry).fetch(of, named);
    assert.equal(found.resolved, `registry.test/tools/mission:1.0@${before}`);
    registry.push(otherBytes, "1.0");
    const status = { observedGeneration: of.metadata.generation ?? 0, components: [{ name: named.name, resolved: found.resolved }] };
    const kept = await open(registry).fetch({ ...of, status }, named);
    assert.equal(kept.digest, sha256Of(bytes));
    const edited = { ...of, status: { ...status, observedGeneration: status.observedGeneration - 1 } };
    assert.equal((await open(registry).fetch(edited, named)).digest, sha256Of(otherBytes), "an edit asks anew");
    const retagged = { ...named, image: "registry.test/tools/mission:2.0" };
    await assert.rejects(open(registry).fetch({ ...of, status }, retagged), { code: "ImageNotFound" });
  });

  test("are pulled with their own pull secret, and nobody's pull is shared with who has another", async () => {
    const registry = new FakeRegistry();
    const image = `registry.test/tools/mission@${registry.push(bytes)}`;
    const asked: string[] = [];
    const store = open(registry, {
      credentials: async ({ metadata }, { imagePullSecret }) => {
        asked.push(`${metadata.namespace}/${imagePullSecret?.name ?? ""}`);
        return parseDockerConfig("{}");
      },
    });
    const [of, named] = one(image, {}, { imagePullSecret: { name: "mine" } });
    const [, unnamed] = one(image);
    await Promise.all([store.fetch(of, named), store.fetch(of, unnamed)]);
    assert.deepEqual(asked.sort(), ["agents/", "agents/mine"]);
  });

  test("are not waited for longer than a moment; who asks again gets what became of the pull", async () => {
    const clock = new ManualClock();
    let end = (_: Error): void => {};
    let pulls = 0;
    const store = open(new FakeRegistry(), {
      clock,
      credentials: () => {
        pulls++;
        return new Promise((_, reject) => {
          end = reject;
        });
      },
    });
    const [of, named] = one(`registry.test/tools/mission@${sha256Of("x")}`);
    const first = store.fetch(of, named);
    clock.pass(5_000);
    await assert.rejects(first, { code: "Pulling" });
    end(new Transient("RegistryTimeout", "it was not here"));
    await assert.rejects(store.fetch(of, named), { code: "RegistryTimeout" });
    assert.equal(pulls, 1);
    clock.pass(5_000);
    const again = store.fetch(of, named);
    end(new Transient("RegistryTimeout", "it was not here"));
    await assert.rejects(again, { code: "RegistryTimeout" });
    assert.equal(pulls, 2, "then it is tried anew");
  });

  test("keep nobody waiting who was told to end", async () => {
    const registry = new FakeRegistry();
    const image = `registry.test/tools/mission@${registry.push(bytes)}`;
    let answer = (): void => {};
    const store = open(registry, {
      credentials: () =>
        new Promise((resolve) => {
          answer = () => resolve(parseDockerConfig("{}"));
        }),
    });
    const ending = new AbortController();
    const [of, named] = one(image);
    const first = store.fetch(of, named, ending.signal);
    const second = store.fetch(of, named);
    ending.abort(new Error("told to end"));
    await assert.rejects(first, /told to end/);
    answer();
    assert.equal((await second).digest, sha256Of(bytes), "who waits for the same pull gets it");
  });

  const refused: Record<string, { image: string; spec?: Partial<WorkloadSpec>; code: string }> = {
    "a file, which a cluster can't reach": { image: "file:mission.wasm", spec: { allowTags: true }, code: "FileImageInCluster" },
    "a tag where none is allowed": { image: "registry.test/tools/mission:1.0", code: "ImageNotPinned" },
    "an image that is not there": { image: `registry.test/tools/mission@${sha256Of("nothing")}`, code: "ImageNotFound" },
    "what is no reference": { image: "registry.test/Tools", spec: { allowTags: true }, code: "ImageReferenceInvalid" },
  };
  for (const [sentence, { image, spec, code }] of Object.entries(refused)) {
    test(`are not ${sentence}`, async () => {
      await assert.rejects(open(new FakeRegistry()).fetch(...one(image, spec)), { code });
    });
  }

  test("are not what carries no component", async () => {
    const registry = new FakeRegistry();
    const image = `registry.test/tools/mission@${registry.push(Buffer.from("no wasm"))}`;
    await assert.rejects(open(registry).fetch(...one(image)), { code: "NotWasm" });
  });
});
