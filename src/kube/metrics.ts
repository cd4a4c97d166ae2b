/**
 * What a metrics library must offer; names and units are Prometheus's. Asked again for a name that it has, it gives the same metric, and `collect` of all who
 * asked is called.
 */
export interface MetricsRegistry {
  counter(definition: MetricDefinition): Counter;
  gauge(definition: MetricDefinition): Gauge;
  histogram(definition: MetricDefinition & { readonly buckets: readonly number[] }): Histogram;
}

export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Called before each reading: for what is only worth computing then. */
  readonly collect?: () => void;
}

export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  add(labels: Labels, by?: number): void;
}

export interface Gauge {
  set(labels: Labels, value: number): void;
  /** Forgets every value: of what is counted anew at each reading, nothing stays that is gone. */
  clear(): void;
}

export interface Histogram {
  observe(labels: Labels, value: number): void;
}

const nothing = (): void => {};

/** Keeps nothing. */
export const noMetrics: MetricsRegistry = {
  counter: () => ({ add: nothing }),
  gauge: () => ({ set: nothing, clear: nothing }),
  histogram: () => ({ observe: nothing }),
};

/** Seconds, from a millisecond to a minute: for requests and reconciles alike. */
export const secondBuckets: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
