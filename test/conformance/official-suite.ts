import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

/** Runs MCP's official conformance suite against a server and judges what came of it by `not-applicable.yaml`. */

export const revisions = ["2025-11-25", "2026-07-28"] as const;
export type Revision = (typeof revisions)[number];

interface Check {
  readonly id: string;
  readonly name: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  readonly errorMessage?: string;
}

/**
 * What became of one scenario. `unexpected` are the checks that failed and should not have; `stale` are entries of ours for what passes or wasn't run.
 */
export interface ScenarioResult {
  readonly scenario: string;
  readonly isScored: boolean;
  readonly passed: number;
  readonly notApplicable: readonly string[];
  readonly unexpected: readonly string[];
  readonly stale: readonly string[];
}

const root = dirname(dirname(fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/package.json"))));

/** Where the suite is installed. */
export const suiteFolder = join(root, "conformance");

/** Every scenario that the revision requires of servers, and those beyond that the suite runs with them. */
export const runSuite = async (url: string, revision: Revision): Promise<ScenarioResult[]> => {
  const results = await mkdtemp(join(tmpdir(), "ambit-conformance-"));
  try {
    const said = await run(["server", "--url", url, "--requirements", revision, "--output-dir", results]);
    const checks = await checksIn(results);
    if (checks.size === 0) throw new Error(`the suite ran nothing: ${said}`);
    const scored = await scoredScenarios(revision);
    const missing = [...scored].filter((scenario) => !checks.has(scenario));
    if (missing.length > 0) throw new Error(`the suite left out ${missing.join(", ")}: ${said}`);
    const excused = await notApplicable(revision);
    const unknown = [...excused].filter((entry) => !checks.has(scenarioOf(entry)));
    if (unknown.length > 0) throw new Error(`not-applicable.yaml names scenarios that the suite doesn't run: ${unknown.join(", ")}`);
    return [...checks].map(([scenario, of]) => judged(scenario, of, excused, scored.has(scenario)));
  } finally {
    await rm(results, { recursive: true, force: true });
  }
};

const scenarioOf = (entry: string): string => entry.split(":", 1)[0] ?? entry;

const judged = (scenario: string, checks: readonly Check[], excused: ReadonlySet<string>, isScored: boolean): ScenarioResult => {
  const failed = checks.filter(({ status }) => status === "FAILURE");
  const isExcused = ({ id }: Check): boolean => excused.has(scenario) || excused.has(`${scenario}:${id}`);
  const hasFailed = (entry: string): boolean =>
    entry === scenario ? failed.length > 0 : failed.some(({ id }) => entry === `${scenario}:${id}`);
  const tell = ({ id, errorMessage }: Check): string => `${id}: ${errorMessage ?? "no reason given"}`;
  return {
    scenario,
    isScored,
    passed: checks.filter(({ status }) => status === "SUCCESS").length,
    notApplicable: failed.filter(isExcused).map(({ id }) => id),
    unexpected: failed.filter((check) => !isExcused(check)).map(tell),
    stale: [...excused].filter((entry) => scenarioOf(entry) === scenario && !hasFailed(entry)),
  };
};

const run = async (args: readonly string[]): Promise<string> => {
  const child = spawn(process.execPath, [join(suiteFolder, "dist", "index.js"), ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return out.slice(-2000) + err.slice(-2000);
};

/** The suite writes one folder a scenario, `server-<scenario>-<time>`. */
const checksIn = async (results: string): Promise<Map<string, readonly Check[]>> => {
  const found = new Map<string, readonly Check[]>();
  for (const name of (await readdir(results)).sort()) {
    const [, scenario] = /^server-(.+)-\d{4}-\d{2}-\d{2}T[-\d]+Z$/.exec(name) ?? [];
    if (scenario !== undefined) found.set(scenario, JSON.parse(await readFile(join(results, name, "checks.json"), "utf8")) as Check[]);
  }
  return found;
};

const scoredScenarios = async (revision: Revision): Promise<ReadonlySet<string>> => {
  const { server } = parse(await readFile(join(suiteFolder, "requirements", `${revision}.yaml`), "utf8")) as { readonly server: string[] };
  return new Set(server);
};

interface Excuse {
  readonly reason: string;
  readonly revision?: Revision;
  readonly checks: readonly string[];
}

const notApplicable = async (revision: Revision): Promise<ReadonlySet<string>> => {
  const excuses = parse(await readFile(new URL("not-applicable.yaml", import.meta.url), "utf8")) as readonly Excuse[];
  for (const { reason, checks } of excuses) if (!reason) throw new Error(`not-applicable.yaml gives no reason for ${checks.join(", ")}`);
  return new Set(excuses.filter((excuse) => (excuse.revision ?? revision) === revision).flatMap(({ checks }) => checks));
};
