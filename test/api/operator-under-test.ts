import { randomUUID } from "node:crypto";
import { bridgeDigest, bridgeImage } from "../../src/api/bridge-component.ts";
import { type Sha256Digest, sha256Of } from "../../src/api/digest.ts";
import { Transient } from "../../src/api/errors.ts";
import type { ComponentInterface, WitFunction } from "../../src/api/wit.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { EventRecorder } from "../../src/kube/events.ts";
import { noMetrics } from "../../src/kube/metrics.ts";
import { readBridge } from "../../src/oci/bundled-bridge.ts";
import type { ComponentStore } from "../../src/operator/component-store.ts";
import type { OperatorContext, Runs } from "../../src/operator/context.ts";
import { operatorInformers } from "../../src/operator/informers.ts";
import { KnownInterfaces } from "../../src/wit/known-interfaces.ts";

/** Components that a test makes up: what an image holds may change, or be out of reach. */
export class MadeUpComponents implements ComponentStore {
  readonly #images = new Map<string, ComponentInterface>();

  /** An image with these functions, and these interfaces exported; its digest follows from its name alone. */
  put(image: string, functions: readonly WitFunction[], ...exported: readonly string[]): void {
    const imports = [{ id: "wasi:http/outgoing-handler@0.2.6", kind: "instance", functions: ["handle"], resources: [] } as const];
    const exports = exported.map((id) => ({ id, kind: "instance" }) as const);
    this.#images.set(image, { imports, exports, functions, isAsynchronous: false, docs: { sources: [] } });
  }

  /** As while its registry is away. */
  takeAway(image: string): void {
    this.#images.delete(image);
  }

  digestOf(image: string) {
    return sha256Of(image);
  }

  async fetch(_: unknown, { image }: { readonly image: string }) {
    const found = this.#images.get(image);
    if (!found) throw new Transient("RegistryUnreachable", "the registry does not answer");
    return { digest: sha256Of(image), resolved: image, interface: found, bytes: async () => new TextEncoder().encode(image) };
  }
}

/** With the bridge that comes with Ambit besides, or one of another Ambit, which has other bytes. */
export const withBridge = (components: ComponentStore, digest: Sha256Digest = bridgeDigest): ComponentStore => {
  const interfaces = new KnownInterfaces();
  return {
    fetch: async (workload, component, signal) => {
      if (!component.bridge) return components.fetch(workload, component, signal);
      const described = interfaces.get(bridgeDigest) ?? interfaces.of(bridgeDigest, await readBridge());
      return { digest, resolved: bridgeImage, interface: described, bytes: readBridge };
    },
  };
};

/** Runs some of the operator's controllers until it is disposed of. */
export const runControllers = async (
  client: ClusterClient,
  components: ComponentStore,
  controllersOf: (context: OperatorContext) => readonly Runs[],
): Promise<AsyncDisposable & { readonly failures: readonly unknown[] }> => {
  const ending = new AbortController();
  const failures: unknown[] = [];
  const shared = { client, clock: systemClock, random: Math.random, metrics: noMetrics };
  const log = (line: { readonly message: string; readonly error?: unknown }): void => {
    if (line.message === "failed") failures.push(line.error);
  };
  const informers = operatorInformers({ ...shared, log });
  const events = new EventRecorder({
    client,
    clock: systemClock,
    controller: "ambit.dev/operator",
    instance: "test",
    uniqueName: () => randomUUID(),
  });
  const watching = informers.run(ending.signal);
  await informers.synced;
  const controllers = controllersOf({ ...shared, stores: informers.stores, components, events, log, namespace: "ambit-system" });
  const running = Promise.all([watching, events.run(ending.signal), ...controllers.map((one) => one.run(ending.signal))]);
  return {
    failures,
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await running;
    },
  };
};
