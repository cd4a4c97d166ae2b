import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ambitVersion } from "../../../src/api/version.ts";
import { secondBuckets } from "../../../src/kube/metrics.ts";
import { scrapedMetrics } from "../../../src/telemetry/prometheus.ts";
import { Scraped } from "../../support/scraped.ts";

const read = async (metrics: ReturnType<typeof scrapedMetrics>): Promise<Scraped> => new Scraped(await metrics.text());

test("names, help and labels come out as they went in", async () => {
  const metrics = scrapedMetrics();
  const definition = { name: "workqueue_adds_total", help: "Keys that were added.", labels: ["name"] };
  metrics.counter(definition).add({ name: "workload" });
  metrics.counter(definition).add({ name: "workload" }, 2);
  metrics.gauge({ name: "workqueue_depth", help: "Keys that wait.", labels: ["name"] }).set({ name: "workload" }, 7);
  const scraped = await read(metrics);
  assert.match(await metrics.text(), /^# HELP workqueue_adds_total Keys that were added\.\n# TYPE workqueue_adds_total counter$/m);
  assert.equal(scraped.value("workqueue_adds_total", { name: "workload" }), 3);
  assert.equal(scraped.value("workqueue_depth", { name: "workload" }), 7);
});

test("a histogram counts an observation in every bucket that holds it", async () => {
  const metrics = scrapedMetrics();
  const seconds = metrics.histogram({ name: "took_seconds", help: "Time.", labels: ["of"], buckets: secondBuckets });
  for (const took of [0.0005, 0.02, 100]) seconds.observe({ of: "a" }, took);
  const scraped = await read(metrics);
  assert.equal(scraped.value("took_seconds_count", { of: "a" }), 3);
  assert.equal(scraped.value("took_seconds_sum", { of: "a" }), 100.0205);
  const buckets = ["0.001", "0.025", "60", "+Inf"].map((le) => scraped.value("took_seconds_bucket", { of: "a", le }));
  assert.deepEqual(buckets, [1, 2, 2, 3]);
});

test("a label may hold anything without breaking the format", async () => {
  const metrics = scrapedMetrics();
  const odd = 'a "quote", a \\ and\na line';
  metrics.counter({ name: "odd_total", help: "Odd\nones.", labels: ["what"] }).add({ what: odd });
  const text = await metrics.text();
  assert.match(text, /^odd_total\{what="a \\"quote\\", a \\\\ and\\na line"\} 1$/m);
  assert.match(text, /^# HELP odd_total Odd\\nones\.$/m);
});

test("what is collected is collected at each reading, for all who asked", async () => {
  const metrics = scrapedMetrics();
  const sizes = new Map([["a", 1]]);
  const size = metrics.gauge({
    name: "sizes",
    help: "Sizes.",
    labels: ["of"],
    collect: () => {
      size.clear();
      for (const [of, value] of sizes) size.set({ of }, value);
    },
  });
  let asked = 0;
  metrics.gauge({ name: "sizes", help: "Sizes.", labels: ["of"], collect: () => void asked++ });
  assert.equal((await read(metrics)).value("sizes", { of: "a" }), 1);
  sizes.delete("a");
  sizes.set("b", 2);
  const later = await read(metrics);
  assert.equal(later.value("sizes", { of: "a" }), undefined);
  assert.equal(later.value("sizes", { of: "b" }), 2);
  assert.equal(asked, 2);
});

test("one name with two meanings is a mistake that is told", () => {
  const metrics = scrapedMetrics();
  metrics.counter({ name: "x_total", help: "X.", labels: ["a"] });
  assert.throws(() => metrics.counter({ name: "x_total", help: "X.", labels: ["b"] }), /x_total is a counter with the labels a/);
  assert.throws(() => metrics.gauge({ name: "x_total", help: "X.", labels: ["a"] }), /x_total is a counter/);
});

test("the process tells what it is and how it does", async () => {
  const scraped = await read(scrapedMetrics());
  assert.equal(scraped.value("ambit_build_info", { version: ambitVersion, node: process.versions.node }), 1);
  for (const name of [
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
    "nodejs_eventloop_lag_p99_seconds",
  ]) {
    assert.ok((scraped.value(name) ?? -1) >= 0, name);
  }
});

test("the version that is told is the package's", () => {
  const { version } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
  assert.equal(ambitVersion, version);
});
