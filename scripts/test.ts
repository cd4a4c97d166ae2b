import { globSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { parseArgs } from "node:util";
import { messageOf } from "../src/api/errors.ts";
import { type Suite, type SuiteName, suites, type Undo } from "./test-suites.ts";

/**
 * Prepares what the tests need, runs them suite by suite, and says by name what was left out and why.
 *
 * Exits 1 when a test failed, when none ran, and, under CI, when one was left out: what CI does not run is not known to work.
 */

const usage = `usage: npm test -- [OPTION]... [FILE OR GLOB]...

  --suite local|api|e2e   one suite: on this machine alone, against an API server, on a whole node (default: all, in this order)
  --name PATTERN          the tests whose name matches; may be repeated
  --keep                  leaves the node up that was started for the tests

A file is run with the surroundings of its suite. What tests run against is in docs/testing.md.
`;

const root = resolve(import.meta.dirname, "..");
const testFolder = resolve(root, "test");
const suiteNames = Object.keys(suites) as SuiteName[];

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const inCi = !["", "0", "false"].includes(process.env.CI ?? "");

interface Tally {
  passed: number;
  failed: number;
  readonly leftOut: string[];
}

const filesOf = ({ folders }: Suite): string[] =>
  folders.flatMap((folder) => globSync(`${folder}/**/*.test.ts`, { cwd: testFolder })).map((file) => resolve(testFolder, file));

const isOf = ({ folders }: Suite, file: string): boolean => folders.some((folder) => relative(testFolder, file).startsWith(folder + sep));

const runFiles = async (
  files: readonly string[],
  { together, timeoutMs }: Suite,
  names: readonly string[],
  tally: Tally,
): Promise<void> => {
  const events = run({
    files: [...files],
    cwd: root,
    concurrency: together,
    timeout: timeoutMs,
    ...(names.length > 0 ? { testNamePatterns: names.map((name) => new RegExp(name)) } : {}),
  });
  events.on("test:pass", ({ name, file, skip, todo, details }) => {
    const reason = skip ?? todo;
    if (reason !== undefined && reason !== false)
      tally.leftOut.push(`${relative(root, file ?? "")}: ${name}: ${reason === true || reason === "" ? "no reason given" : reason}`);
    // A file of which no test ran passes as a test of its own name.
    else if (details.type !== "suite" && name !== file) tally.passed++;
  });
  events.on("test:fail", ({ details }) => {
    if (details.type !== "suite") tally.failed++;
  });
  for await (const chunk of events.compose(spec())) process.stdout.write(chunk);
};

const runSuite = async (
  name: SuiteName,
  files: readonly string[],
  names: readonly string[],
  keep: boolean,
  tally: Tally,
): Promise<void> => {
  const suite: Suite = suites[name];
  say(`== ${name}: ${files.length} ${files.length === 1 ? "file" : "files"}`);
  const undoes: Undo[] = [];
  for (const prepare of suite.preparations) {
    const undo = await prepare(say).catch((thrown: unknown) => say(`not prepared: ${messageOf(thrown)}`));
    if (undo) undoes.push(undo);
  }
  try {
    await runFiles(files, suite, names, tally);
  } finally {
    if (!keep) for (const undo of undoes) await undo(say);
  }
};

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    options: {
      suite: { type: "string", multiple: true },
      name: { type: "string", multiple: true },
      keep: { type: "boolean", default: false },
      help: { type: "boolean", short: "h" },
    },
    allowPositionals: true,
  });
  const unknown = values.suite?.filter((name) => !(name in suites)) ?? [];
  if (values.help || unknown.length > 0) {
    process.stderr.write(unknown.length > 0 ? `no suite ${unknown.join(", ")}\n${usage}` : usage);
    return values.help ? 0 : 2;
  }
  const named = positionals.length > 0 ? globSync(positionals, { cwd: root }).map((file) => resolve(root, file)) : null;
  const tally: Tally = { passed: 0, failed: 0, leftOut: [] };
  for (const name of suiteNames) {
    if (values.suite && !named && !values.suite.includes(name)) continue;
    const files = named ? named.filter((file) => isOf(suites[name], file)) : filesOf(suites[name]);
    if (files.length > 0) await runSuite(name, files.sort(), values.name ?? [], values.keep, tally);
  }
  for (const test of tally.leftOut) say(`left out: ${test}`);
  if (inCi && tally.leftOut.length > 0) say("leaving tests out is a failure in CI");
  if (tally.passed + tally.failed === 0) say("no test ran");
  say(`tests: ${tally.passed} passed, ${tally.failed} failed, ${tally.leftOut.length} skipped`);
  return tally.failed > 0 || tally.passed === 0 || (inCi && tally.leftOut.length > 0) ? 1 : 0;
};

process.exitCode = await main();
