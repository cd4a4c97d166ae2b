import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { parseArgs } from "node:util";
import { messageOf } from "../src/api/errors.ts";
import { buildRegistry } from "../test/registry/binary.ts";

/**
 * Prepares what the tests need, runs them, and says by name what was left out and why.
 *
 *   npm test                                  every test
 *   npm test -- test/unit/oci/**\/*.test.ts    some files or globs
 *   npm test -- --name "a digest"             the tests whose name matches a pattern
 *
 * Exits 1 when a test failed, when none ran, and, under CI, when one was left out: what CI does not run is not known to work.
 */

const everyTest = ["test/unit/**/*.test.ts", "test/integration/**/*.test.ts"];

/** Well above what the slowest file of tests takes on a busy machine: it ends what hangs. */
const testTimeoutMs = 180_000;
/** The same for those that share a cluster, where pods have to come and go. */
const clusterTimeoutMs = 600_000;

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const { values, positionals } = parseArgs({
  options: { name: { type: "string", multiple: true }, "one-at-a-time": { type: "boolean" }, help: { type: "boolean", short: "h" } },
  allowPositionals: true,
});

if (values.help) {
  say("usage: npm test -- [--name PATTERN]... [--one-at-a-time] [FILE OR GLOB]...");
  process.exit(0);
}

const inCi = !["", "0", "false"].includes(process.env.CI ?? "");

/** Each step makes something that tests look for; tests that do not find it skip themselves with a reason. */
const preparations: readonly (() => Promise<void>)[] = [() => buildRegistry(say)];

const prepare = async (): Promise<void> => {
  for (const step of preparations) {
    await step().catch((thrown: unknown) => say(`not prepared: ${messageOf(thrown)}`));
  }
};

interface Tally {
  passed: number;
  failed: number;
  readonly leftOut: string[];
}

const runTests = async (globs: readonly string[], names: readonly string[]): Promise<Tally> => {
  const tally: Tally = { passed: 0, failed: 0, leftOut: [] };
  const events = run({
    globPatterns: [...globs],
    cwd: resolve(import.meta.dirname, ".."),
    ...(values["one-at-a-time"]
      ? { concurrency: 1, timeout: clusterTimeoutMs }
      : { concurrency: availableParallelism(), timeout: testTimeoutMs }),
    ...(names.length > 0 ? { testNamePatterns: names.map((name) => new RegExp(name)) } : {}),
  });
  events.on("test:pass", ({ name, file, skip, todo, details }) => {
    const reason = skip ?? todo;
    if (reason !== undefined && reason !== false)
      tally.leftOut.push(`${file ?? ""}: ${name}: ${reason === true || reason === "" ? "no reason given" : reason}`);
    else if (details.type !== "suite") tally.passed++;
  });
  events.on("test:fail", ({ details }) => {
    if (details.type !== "suite") tally.failed++;
  });
  const shown = events.compose(spec());
  for await (const chunk of shown) process.stdout.write(chunk);
  return tally;
};

await prepare();
const tally = await runTests(positionals.length > 0 ? positionals : everyTest, values.name ?? []);
for (const test of tally.leftOut) say(`left out: ${test}`);
if (inCi && tally.leftOut.length > 0) say("leaving tests out is a failure in CI");
if (tally.passed + tally.failed === 0) say("no test ran");
say(`tests: ${tally.passed} passed, ${tally.failed} failed, ${tally.leftOut.length} skipped`);
process.exitCode = tally.failed > 0 || tally.passed === 0 || (inCi && tally.leftOut.length > 0) ? 1 : 0;
