import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { sha256Of } from "../../src/api/digest.ts";
import { defaultHostLimits, type HostConfig } from "../../src/api/host.ts";
import { CompiledCache } from "../../src/host/compiled-cache.ts";
import { loadComponent } from "../../src/host/load-component.ts";
import { WorkerPool } from "../../src/host/worker-pool.ts";

type Reach = Partial<Pick<HostConfig, "allowedHosts" | "hostOverrides" | "environment" | "mounts">>;

/** An example's component in the host's own workers, without the HTTP and the tickets around them. */
export interface ExampleTool {
  /** The reply as the host gives it: `outcome`, `text`, `structured`. */
  readonly call: (name: string, args: object) => Promise<Reply>;
  readonly close: () => Promise<void>;
}

export interface Reply {
  readonly outcome: string;
  readonly text: string;
  readonly structured?: unknown;
}

export const startExample = async (example: string, interfaceId: string, reach: Reach): Promise<ExampleTool> => {
  const bytes = await readFile(resolve(import.meta.dirname, "../../examples", example, `${example}.wasm`));
  const cacheFolder = await mkdtemp(join(tmpdir(), `ambit-${example}-`));
  const config: HostConfig = {
    component: sha256Of(bytes),
    rootKey: "",
    podUid: "test",
    listen: { address: "127.0.0.1", port: 0 },
    allowedHosts: [],
    resolver: "system",
    hostOverrides: {},
    environment: {},
    mounts: [],
    ...reach,
    limits: defaultHostLimits,
    callsPerInstance: 1,
    cacheFolder,
  };
  const setup = await loadComponent(config, new CompiledCache(cacheFolder, config.component, config.limits.memoryBytes), bytes);
  const pool = new WorkerPool({ setup, now: () => performance.now(), log: () => undefined, cores: 2 });
  await pool.start();
  return {
    call: async (name, args) => {
      const { reply } = await pool.run({ interface: interfaceId, function: name, arguments: JSON.stringify(args) });
      if (reply.kind === "answer") return JSON.parse(`${reply.json}}`) as Reply;
      return { outcome: reply.kind, text: reply.kind === "failed" ? `${reply.code}: ${reply.text}` : `${reply.code}: ${reply.message}` };
    },
    close: async () => {
      await pool.close(0);
      await rm(cacheFolder, { recursive: true, force: true });
    },
  };
};
