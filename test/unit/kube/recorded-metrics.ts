import type { Labels, MetricDefinition, MetricsRegistry } from "../../../src/kube/metrics.ts";

/** Keeps every value under `name{label="value"}`: sums of counters, last values of gauges, numbers of observations. */
export class RecordedMetrics implements MetricsRegistry {
  readonly #values = new Map<string, number>();
  readonly #collect: (() => void)[] = [];

  counter({ name }: MetricDefinition) {
    return { add: (labels: Labels, by = 1) => this.#add(name, labels, by) };
  }

  gauge({ name, collect }: MetricDefinition) {
    if (collect) this.#collect.push(collect);
    return {
      set: (labels: Labels, value: number) => void this.#values.set(seriesOf(name, labels), value),
      clear: () => {
        for (const series of this.#values.keys()) if (series.startsWith(`${name}[`)) this.#values.delete(series);
      },
    };
  }

  histogram({ name }: MetricDefinition) {
    return { observe: (labels: Labels) => this.#add(name, labels, 1) };
  }

  value(name: string, labels: Labels): number | undefined {
    for (const collect of this.#collect) collect();
    return this.#values.get(seriesOf(name, labels));
  }

  #add(name: string, labels: Labels, by: number): void {
    const series = seriesOf(name, labels);
    this.#values.set(series, (this.#values.get(series) ?? 0) + by);
  }
}

const seriesOf = (name: string, labels: Labels): string => `${name}${JSON.stringify(Object.entries(labels).sort())}`;
