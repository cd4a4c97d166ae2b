import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256Of } from "../../src/api/digest.ts";
import { defaultHostLimits, type HostConfig } from "../../src/api/host.ts";
import { CompiledCache } from "../../src/host/compiled-cache.ts";
import { loadComponent } from "../../src/host/load-component.ts";
import { WorkerPool } from "../../src/host/worker-pool.ts";
import type { WorkerSetup } from "../../src/host/worker-protocol.ts";

/** A component in the host's own workers, without the HTTP and the tickets around them. */
export interface ComponentPool {
  readonly run: WorkerPool["run"];
  readonly close: () => Promise<void>;
}

type Given = Partial<Pick<HostConfig, "allowedHosts" | "hostOverrides" | "environment" | "mounts" | "limits">>;

export const startComponentPool = async (bytes: Uint8Array, given: Given = {}): Promise<ComponentPool> => {
  const { setup, remove } = await loaded(bytes, given);
  const pool = new WorkerPool({ setup, now: () => performance.now(), log: () => undefined, cores: 2 });
  await pool.start();
  return {
    run: (call) => pool.run(call),
    close: async () => {
      await pool.close(0);
      await remove();
    },
  };
};

/** A component made ready for workers, in a folder of its own. */
export const loaded = async (bytes: Uint8Array, given: Given = {}): Promise<{ setup: WorkerSetup; remove: () => Promise<void> }> => {
  const cacheFolder = await mkdtemp(join(tmpdir(), "ambit-pool-"));
  const config: HostConfig = {
    component: sha256Of(bytes),
    rootKey: "",
    podUid: "pool",
    listen: { address: "127.0.0.1", port: 0 },
    transport: "http",
    allowedHosts: [],
    resolver: "system",
    hostOverrides: {},
    environment: {},
    mounts: [],
    limits: defaultHostLimits,
    ...given,
    callsPerInstance: 1,
    cacheFolder,
  };
  const setup = await loadComponent(config, new CompiledCache(cacheFolder, config.component, config.limits.memoryBytes), bytes);
  return { setup, remove: () => rm(cacheFolder, { recursive: true, force: true }) };
};
