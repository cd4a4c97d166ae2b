import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, test } from "node:test";
import { parse } from "yaml";
import { ClusterClient } from "../../../src/kube/client.ts";
import { systemClock } from "../../../src/kube/clock.ts";
import { Controller } from "../../../src/kube/controller.ts";
import { Informer } from "../../../src/kube/informer.ts";
import { type MetricDefinition, type MetricsRegistry, noMetrics } from "../../../src/kube/metrics.ts";
import { namespaces } from "../../../src/kube/resource-types.ts";
import { Store } from "../../../src/kube/store.ts";
import { gaugeCluster } from "../../../src/operator/cluster-gauges.ts";
import { leadingGauge } from "../../../src/operator/leading-gauge.ts";
import { scrapedMetrics } from "../../../src/telemetry/prometheus.ts";
import { readPromQl } from "../../support/promql.ts";
import { Scraped } from "../../support/scraped.ts";
import { serving } from "../catalogue/serving.ts";

/** Remembers what was asked for, as series that Prometheus will have. */
class DefinedSeries implements MetricsRegistry {
  readonly metrics = new Map<string, readonly string[]>();
  readonly labels = new Map<string, readonly string[]>();

  counter(definition: MetricDefinition) {
    this.#define(definition, [""]);
    return noMetrics.counter(definition);
  }

  gauge(definition: MetricDefinition) {
    this.#define(definition, [""]);
    return noMetrics.gauge(definition);
  }

  histogram(definition: MetricDefinition & { readonly buckets: readonly number[] }) {
    this.#define(definition, ["_bucket", "_sum", "_count"]);
    return noMetrics.histogram(definition);
  }

  #define({ name, labels }: MetricDefinition, suffixes: readonly string[]): void {
    this.metrics.set(name, labels);
    for (const suffix of suffixes) this.labels.set(`${name}${suffix}`, suffix === "_bucket" ? [...labels, "le"] : labels);
  }
}

/** What a scrape adds to each series. */
const ofTheTarget = ["instance", "job", "pod", "namespace"];

describe("what is said of metrics", () => {
  const defined = new DefinedSeries();
  const page = readFileSync(new URL("../../../docs/observability.md", import.meta.url), "utf8");
  const dashboard: { readonly panels: readonly Panel[] } = JSON.parse(
    readFileSync(new URL("../../../charts/ambit/files/dashboard.json", import.meta.url), "utf8"),
  );

  const rules: { readonly groups: readonly { readonly rules: readonly Alarm[] }[] } = parse(
    readFileSync(new URL("../../../charts/ambit/files/alerts.yaml", import.meta.url), "utf8"),
  );
  const alarms = rules.groups.flatMap((group) => group.rules);

  before(async () => {
    const common = { clock: systemClock, random: Math.random, metrics: defined };
    await using _ = await serving({ metrics: defined });
    const access = { server: new URL("https://cluster.test"), namespace: "none", credentials: () => assert.fail("nothing is asked") };
    const client = new ClusterClient({ ...common, access, userAgent: "test" });
    new Informer({ ...common, client, type: namespaces });
    new Controller({ ...common, name: "none", workers: 1, reconcile: () => assert.fail("nothing is looked at") });
    gaugeCluster(defined, { workloads: new Store(), toolGrants: new Store() }, () => false);
    leadingGauge(defined, "none");
    const own = new Scraped(await scrapedMetrics().text());
    for (const [name, labels] of own.labels) defined.labels.set(name, [...labels]);
    await client.close();
  });

  const holds = (expression: string): void => {
    const { series, grouping } = readPromQl(expression);
    assert.ok(series.length > 0, expression);
    for (const { name, labels } of series) {
      const known = defined.labels.get(name);
      assert.ok(known, `there is no ${name}: ${expression}`);
      for (const label of labels) assert.ok(known.includes(label), `${name} has no label ${label}: ${expression}`);
    }
    const ofAny = new Set(series.flatMap(({ name }) => defined.labels.get(name) ?? []));
    for (const label of grouping) assert.ok(ofAny.has(label) || ofTheTarget.includes(label), `nothing has ${label}: ${expression}`);
  };

  test("every query of the dashboard asks for what there is, in Prometheus's grammar", () => {
    const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    assert.ok(queries.length > 30);
    for (const query of queries) holds(query.replaceAll("$__rate_interval", "5m").replaceAll("$namespace", ".*"));
  });

  test("every legend names a label that its query keeps", () => {
    for (const { targets = [] } of dashboard.panels) {
      for (const { expr, legendFormat } of targets) {
        const { series, grouping } = readPromQl(expr.replaceAll("$__rate_interval", "5m"));
        const kept = new Set([...grouping, ...ofTheTarget, ...series.flatMap(({ labels }) => labels)]);
        for (const [, label = ""] of legendFormat.matchAll(/\{\{(.*?)\}\}/g)) assert.ok(kept.has(label), `${legendFormat}: ${expr}`);
      }
    }
  });

  test("panels have places of their own", () => {
    const taken = new Set<string>();
    for (const { gridPos, title } of dashboard.panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(x < 24 && !taken.has(`${x},${y}`), title);
          taken.add(`${x},${y}`);
        }
      }
    }
  });

  test("every alarm asks for what there is, says what it means, and is on the page", () => {
    assert.ok(alarms.length >= 6);
    for (const { alert, expr, labels, annotations } of alarms) {
      holds(expr);
      assert.ok(page.includes(`| \`${alert}\` |`), alert);
      assert.match(labels.severity, /^(critical|warning)$/, alert);
      const { grouping } = readPromQl(expr);
      for (const [, label = ""] of `${annotations.summary} ${annotations.description}`.matchAll(/\{\{ \$labels\.(.*?) \}\}/g)) {
        assert.ok(grouping.includes(label), `${alert} keeps no ${label}`);
      }
    }
  });

  test("the page describes every metric, with its labels", () => {
    for (const [name, labels] of defined.metrics) {
      const [family = ""] = /^(controller_runtime|workqueue|rest_client|reflector)?/.exec(name) ?? [];
      if (family !== "") {
        assert.ok(page.includes(name) || mentions(page, name), name);
        continue;
      }
      const row = page.split("\n").find((line) => line.startsWith("|") && line.split("|")[1]?.includes(`\`${name}\``));
      assert.ok(row, `${name} is not described`);
      const told = row.split("|")[2] ?? "";
      assert.deepEqual(
        [...told.matchAll(/`([a-z_]+)`/g)].map(([, label]) => label),
        [...labels],
        name,
      );
    }
  });
});

/** Families are told with their common beginning once: `workqueue_depth`, `…_adds_total`. */
const mentions = (page: string, name: string): boolean =>
  name.split("_").some((_, index, words) => index > 0 && page.includes(`\`…_${words.slice(index).join("_")}\``));

interface Panel {
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Alarm {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}
