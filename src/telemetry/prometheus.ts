import * as prometheus from "prom-client";
import { ambitVersion } from "../api/version.ts";
import type { Counter, Gauge, Histogram, Labels, MetricDefinition, MetricsRegistry } from "../kube/metrics.ts";

/** Metrics that Prometheus can scrape. */
export interface ScrapedMetrics extends MetricsRegistry {
  /** All of them as they are now, in the format that `contentType` names. */
  text(): Promise<string>;
  readonly contentType: string;
}

/** How often the delay of the event loop is sampled, which is also what an idle one shows. Each sample wakes the process; the usual 10 ms cost twice as much. */
const eventLoopSampleMs = 20;

/**
 * Starts counting, with what can be told of any Node process among it (`process_…`, `nodejs_…`). Names, labels and help are kept as they are given; a name that was asked for with
 * other labels is a mistake in the program, and throws.
 */
export const scrapedMetrics = (): ScrapedMetrics => {
  const registry = new prometheus.Registry();
  prometheus.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: eventLoopSampleMs });
  const known = new Map<string, Known>();

  const metricOf = <T extends Metric>(
    kind: T["kind"],
    { name, help, labels, collect }: MetricDefinition,
    make: (options: MadeFrom) => T,
  ): T => {
    const collectors: (() => void)[] = [];
    const found = known.get(name) ?? { labels, collectors, metric: make({ name, help, labelNames: [...labels], registers: [registry] }) };
    known.set(name, found);
    const { metric } = found;
    if (metric.kind !== kind || found.labels.join() !== labels.join()) {
      throw new Error(`the metric ${name} is a ${metric.kind} with the labels ${found.labels.join(", ")}`);
    }
    if (collect) found.collectors.push(collect);
    return metric as T;
  };

  const metrics: ScrapedMetrics = {
    counter: (definition): Counter => {
      const { of } = metricOf<CounterMetric>("counter", definition, (options) => ({
        kind: "counter",
        of: new prometheus.Counter(options),
      }));
      return { add: (values, by = 1) => of.inc(values, by) };
    },
    gauge: (definition): Gauge => {
      const { of } = metricOf<GaugeMetric>("gauge", definition, (options) => ({ kind: "gauge", of: new prometheus.Gauge(options) }));
      return { set: (values, value) => of.set(values, value), clear: () => of.reset() };
    },
    histogram: (definition): Histogram => {
      const { of } = metricOf<HistogramMetric>("histogram", definition, (options) => ({
        kind: "histogram",
        of: new prometheus.Histogram({ ...options, buckets: [...definition.buckets] }),
      }));
      return { observe: (values, value) => of.observe(values, value) };
    },
    text: () => {
      for (const { collectors } of known.values()) for (const collect of collectors) collect();
      return registry.metrics();
    },
    contentType: registry.contentType,
  };
  metrics
    .gauge({ name: "ambit_build_info", help: "1, with what runs as labels.", labels: ["version", "node"] })
    .set({ version: ambitVersion, node: process.versions.node }, 1);
  return metrics;
};

interface MadeFrom {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: prometheus.Registry[];
}

interface CounterMetric {
  readonly kind: "counter";
  readonly of: { inc(labels: Labels, by: number): void };
}

interface GaugeMetric {
  readonly kind: "gauge";
  readonly of: { set(labels: Labels, value: number): void; reset(): void };
}

interface HistogramMetric {
  readonly kind: "histogram";
  readonly of: { observe(labels: Labels, value: number): void };
}

type Metric = CounterMetric | GaugeMetric | HistogramMetric;

interface Known {
  readonly labels: readonly string[];
  readonly collectors: (() => void)[];
  readonly metric: Metric;
}
