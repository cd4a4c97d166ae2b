import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { sha256Of } from "../../src/api/digest.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { openContentCache } from "../../src/oci/content-cache.ts";
import { anonymous, parseDockerConfig } from "../../src/oci/docker-config.ts";
import { createTransport } from "../../src/oci/transport.ts";
import { type ComponentStore, openComponentStore } from "../../src/operator/component-store.ts";
import type { ClusterWorkload } from "../../src/operator/kinds.ts";
import { type Front, forwardTo, startFront } from "../registry/front.ts";
import { pushArtifact, wasmArtifact } from "../registry/push.ts";
import { type RunningRegistry, startRegistry, whyNoRegistry } from "../registry/serve.ts";
import { component as componentOf, workload as workloadOf } from "../unit/operator/workload-world.ts";
import { fixture } from "./host-under-test.ts";

const noRegistry = await whyNoRegistry();

/** A real registry behind a door that wants a password, and what was pulled through it kept in one cache for everybody. */
describe("what was pulled with a namespace's credentials", { skip: noRegistry ?? false }, () => {
  const bytes = fixture("mission.wasm");
  let registry: RunningRegistry;
  let door: Front;
  let folder: string;
  let image: string;
  let isAway = false;
  const passwords = new Map([
    ["agents", "right"],
    ["others", "wrong"],
    ["friends", "right"],
  ]);

  before(async () => {
    registry = await startRegistry();
    const forward = forwardTo(registry.registry);
    door = await startFront(async (request, response) => {
      if (isAway) return void response.writeHead(503).end();
      const isRight = request.authorization === `Basic ${Buffer.from("ambit:right").toString("base64")}`;
      if (isRight) return forward(request, response);
      response.writeHead(401, { "www-authenticate": 'Basic realm="tools"' }).end();
    });
    const digest = await pushArtifact({ registry: registry.registry, repository: "tools/mission" }, "v1", wasmArtifact(bytes));
    image = `${door.authority}/tools/mission@${digest}`;
  });
  after(async () => {
    await door?.[Symbol.asyncDispose]();
    await registry?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    isAway = false;
    folder = await mkdtemp(join(tmpdir(), "ambit-access-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** As an operator has it that starts with what one before it has kept on disk. */
  const open = (): ComponentStore =>
    openComponentStore({
      cache: openContentCache(folder),
      transport: createTransport({ refusedAddress: () => null }),
      isPlainHttp: () => true,
      clock: systemClock,
      credentials: async ({ metadata }) => {
        const password = passwords.get(metadata.namespace ?? "");
        const auth = Buffer.from(`ambit:${password}`).toString("base64");
        return password === undefined ? anonymous : parseDockerConfig(JSON.stringify({ auths: { [door.authority]: { auth } } }));
      },
    });
  const fetched = (store: ComponentStore, namespace: string, changes: Partial<ClusterWorkload> = {}, of = image) => {
    const component = componentOf({ image: of });
    const workload = workloadOf({ components: [component] }, { metadata: { ...workloadOf().metadata, namespace }, ...changes });
    return store.fetch(workload, component);
  };
  const status = () => ({ status: { components: [{ name: "issues", resolved: image, digest: sha256Of(bytes) }] } });
  const asked = (): string[] => door.requests.map(({ url }) => url.pathname.replace(/.*\/(manifests|blobs)\/.*/, "$1"));

  test("is not given to a namespace whose credentials the registry refuses, nor to one without", async () => {
    const store = open();
    assert.equal((await fetched(store, "agents")).digest, sha256Of(bytes));
    for (const namespace of ["others", "nobody"]) await assert.rejects(fetched(store, namespace), { code: "Unauthorized" });
    assert.equal((await fetched(store, "agents")).digest, sha256Of(bytes));
  });

  test("is given to another that the registry lets read the manifest, without the component being sent again", async () => {
    const store = open();
    await fetched(store, "agents");
    const before = asked().length;
    const found = await fetched(store, "friends");
    assert.equal(sha256Of(await found.bytes()), sha256Of(bytes));
    assert.deepEqual(new Set(asked().slice(before)), new Set(["manifests"]));
  });

  test("is not given on the word of another registry, which has to send all of it", async () => {
    const store = open();
    await fetched(store, "agents");
    const manifest = Buffer.from(await (await fetch(`http://${registry.registry}/v2/tools/mission/manifests/v1`)).arrayBuffer());
    const liar = await startFront((request, response) => {
      if (!request.url.pathname.includes("/manifests/")) return void response.writeHead(404).end();
      response.writeHead(200, { "content-type": "application/vnd.oci.image.manifest.v1+json" }).end(manifest);
    });
    try {
      const copy = `${liar.authority}/tools/mission@${sha256Of(manifest)}`;
      await assert.rejects(fetched(store, "others", {}, copy), { code: "ImageNotFound" });
    } finally {
      await liar[Symbol.asyncDispose]();
    }
  });

  test("is still there for the Workload that had it, and for nobody else, while the registry is away and the operator started anew", async () => {
    await fetched(open(), "agents");
    isAway = true;
    const store = open();
    await assert.rejects(fetched(store, "friends"), { code: "RegistryUnavailable" });
    assert.equal((await fetched(store, "agents", status())).digest, sha256Of(bytes));
    await assert.rejects(fetched(store, "friends"), { code: "RegistryUnavailable" });
  });
});
