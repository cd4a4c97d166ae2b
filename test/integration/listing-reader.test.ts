import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { systemClock } from "../../src/kube/clock.ts";
import type { ClusterObject } from "../../src/kube/object.ts";
import { Store } from "../../src/kube/store.ts";
import type { OperatorContext } from "../../src/operator/context.ts";
import { listingReader } from "../../src/operator/delivery/listing-reader.ts";
import type { Keyring } from "../../src/operator/delivery/own-keys.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { DeliveryWorld, type RunningHost } from "./delivery-world.ts";
import { fixture, temporaryFolder } from "./host-under-test.ts";

const key = { namespace: "agents", workload: "github", component: "main" };

describe("the operator, of a pod whose component lists its own tools", () => {
  const world = new DeliveryWorld(fixture("conformance.wasm"));
  const listings = new ToolListings();
  const ending = new AbortController();
  const pod = { name: "github-main-1-a", uid: randomUUID() };
  let reading: Promise<void>;
  let host: RunningHost;
  before(async () => {
    const context = {
      stores: { pods: world.pods, workloads: new Store<ClusterObject>() },
      clock: systemClock,
      log: ({ error }: { error?: unknown }) => world.failures.push(String(error)),
    } as unknown as OperatorContext;
    reading = listingReader(context, {
      keyring: { root: world.root } as Keyring,
      listings,
      placeOf: ({ key: { name } }) => ({ address: "127.0.0.1", port: world.ports.get(name) ?? 1 }),
    }).run(ending.signal);
    host = await world.startHost(pod.uid, { cacheFolder: temporaryFolder() });
    world.podRuns(pod.name, pod.uid, host.port);
  });
  after(async () => {
    ending.abort();
    await reading;
    await host.stop();
    await world.close();
  });

  it("hears what it lists once it was delivered, over TLS and under the root key", async () => {
    await world.delivered(pod.name);
    await world.until(() => listings.of(key, world.digest) !== undefined);
    const names = listings.of(key, world.digest)?.tools.map(({ name }) => name) ?? [];
    assert.ok(names.includes("test_simple_text"));
    assert.deepEqual(world.failures, []);
  });
});
