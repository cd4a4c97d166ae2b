import { type ScrapedMetrics, scrapedMetrics } from "../telemetry/prometheus.ts";
import type { TelemetryPlace } from "../telemetry/server.ts";

/** What `--telemetry-port` asks for; without it nothing is counted. */
export const telemetryAt = (
  port: number | undefined,
  address: string,
): { readonly metrics: ScrapedMetrics; readonly place: TelemetryPlace } | undefined =>
  port === undefined ? undefined : { metrics: scrapedMetrics(), place: { address, port } };
