import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";

type Labels = Readonly<Record<string, string>>;

/** The series of a scrape, read line by line; a line that is none of Prometheus's text format fails. */
export class Scraped {
  readonly #values = new Map<string, number>();
  /** Every label that a metric is told with, by its name without what histograms add. */
  readonly labels = new Map<string, Set<string>>();

  constructor(text: string) {
    for (const line of text.split("\n")) if (line !== "" && !line.startsWith("#")) this.#read(line);
  }

  /** The value of a counter or gauge, of `…_count`, or of `…_bucket` with its `le`; undefined where there is no such series. */
  value(name: string, labels: Labels = {}): number | undefined {
    return this.#values.get(seriesOf(name, labels));
  }

  /** Each as JSON: its name, and its labels in order. */
  get series(): Iterable<string> {
    return this.#values.keys();
  }

  /** All values under a name together, whatever the other labels. */
  sum(name: string, labels: Labels = {}): number {
    let sum = 0;
    for (const [series, value] of this.#values) {
      const [of, pairs] = JSON.parse(series) as [string, [string, string][]];
      const own = Object.fromEntries(pairs);
      if (of === name && Object.entries(labels).every(([label, wanted]) => own[label] === wanted)) sum += value;
    }
    return sum;
  }

  #read(line: string): void {
    const [, name = "", inside = "", value = ""] = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? assert.fail(line);
    const labels = [...inside.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?/g)];
    assert.equal(labels.map(([whole]) => whole).join(""), inside, line);
    const unescaped = labels.map(([, label = "", text = ""]) => [label, text.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c))] as const);
    const series = seriesOf(name, Object.fromEntries(unescaped));
    assert.ok(!this.#values.has(series), `twice: ${line}`);
    this.#values.set(series, Number(value.replace("Inf", "Infinity")));
    const base = name.replace(/_(bucket|sum|count)$/, "");
    const own = unescaped.map(([label]) => label);
    for (const metric of [name, base]) this.labels.set(metric, new Set([...(this.labels.get(metric) ?? []), ...own]));
  }
}

const seriesOf = (name: string, labels: Labels): string => JSON.stringify([name, Object.entries(labels).sort()]);

/** Reads `/metrics` at a port of this machine. */
export const scrape = async (port: number): Promise<{ readonly text: string; readonly scraped: Scraped }> => {
  const response = await fetch(`http://localhost:${port}/metrics`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = await response.text();
  return { text, scraped: new Scraped(text) };
};

/** What Prometheus's own parser and linter, in Go, say of a scrape. */
export interface PrometheusReading {
  readonly families: Readonly<Record<string, { readonly type: string; readonly series: number }>>;
  readonly problems: readonly string[];
}

const reader = resolve(import.meta.dirname, "../prometheus");

/** Why `readByPrometheus` can't be, or null. */
export const whyNoPrometheus = (): Promise<string | null> =>
  promisify(execFile)("go", ["version"]).then(
    () => null,
    () => "no `go` on the PATH to build Prometheus's parser with: install Go 1.26 or newer",
  );

/** Whether what the linter says is of a metric that we named; those of the process are the library's. */
export const isOurs = (problem: string): boolean => !problem.startsWith("nodejs_");

/** Rejects with the parser's message where it reads no scrape. Go keeps what it built; the first time takes some seconds. */
export const readByPrometheus = async (text: string): Promise<PrometheusReading> => {
  const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: "-mod=readonly", GOWORK: "off" };
  const going = promisify(execFile)("go", ["run", "."], { cwd: reader, env });
  going.child.stdin?.end(text);
  return JSON.parse((await going).stdout);
};
