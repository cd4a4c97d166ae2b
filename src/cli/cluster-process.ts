import { loadAccess } from "../kube/access.ts";
import { ClusterClient } from "../kube/client.ts";
import { type Clock, type Random, systemClock } from "../kube/clock.ts";
import { type AskedTelemetry, telemetryAt } from "./telemetry.ts";

/** What a process of Ambit's in a cluster runs with. */
export interface ClusterProcess {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry?: AskedTelemetry;
}

export interface ClusterProcessOptions {
  readonly telemetryPort?: number;
  readonly kubeconfig?: string;
}

/** Runs until it is done or the process is asked to end, and closes what it has opened. */
export const runInCluster = async (
  userAgent: string,
  { telemetryPort, kubeconfig }: ClusterProcessOptions,
  run: (process: ClusterProcess, asked: AbortSignal) => Promise<void>,
): Promise<void> => {
  const access = await loadAccess(kubeconfig === undefined ? {} : { file: kubeconfig });
  const telemetry = await telemetryAt(telemetryPort, "::");
  const surroundings = { clock: systemClock, random: Math.random };
  const client = new ClusterClient({ ...surroundings, access, userAgent, ...(telemetry && { metrics: telemetry.metrics }) });
  const asked = new AbortController();
  const stop = (): void => asked.abort();
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  try {
    await run({ ...surroundings, client, ...(telemetry && { telemetry }) }, asked.signal);
  } finally {
    process.removeListener("SIGTERM", stop);
    process.removeListener("SIGINT", stop);
    await client.close();
  }
};
