import { hostname } from "node:os";
import type { CallTracing } from "../catalogue/tracing.ts";
import type { ScrapedMetrics } from "../telemetry/prometheus.ts";
import type { TelemetryPlace } from "../telemetry/server.ts";
import { startTraces } from "../telemetry/traces.ts";
import type { Terminal } from "./terminal.ts";

export interface AskedTelemetry {
  readonly metrics: ScrapedMetrics;
  readonly place: TelemetryPlace;
}

/** What `--telemetry-port` asks for; without it nothing is counted. */
export const telemetryAt = async (port: number | undefined, address: string): Promise<AskedTelemetry | undefined> => {
  if (port === undefined) return undefined;
  const { scrapedMetrics } = await import("../telemetry/prometheus.ts");
  return { metrics: scrapedMetrics(), place: { address, port } };
};

/** What OpenTelemetry's variables ask for (docs/observability.md); where they name no collector nothing is loaded or made. */
export const tracingAsked = async (
  { env }: Terminal,
  report: (fault: unknown) => void,
): Promise<{ readonly tracing?: CallTracing; close(): Promise<void> }> => {
  const traces = await startTraces({ env, instance: env.AMBIT_POD_NAME ?? hostname(), report });
  if (traces === null) return { close: async () => {} };
  const { CallTracing } = await import("../catalogue/tracing.ts");
  return { tracing: new CallTracing(traces), close: traces.close };
};
