import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Revision, revisions, runSuite, type ScenarioResult } from "../test/conformance/official-suite.ts";
import { prepareFolder } from "../test/support/served-folder.ts";

/**
 * `npm run conformance`: MCP's official suite against `ambit up` with our fixture component, or against `--url`, as a table. Exits 1 where a check failed that
 * `test/conformance/not-applicable.yaml` doesn't name, or one passed that it does.
 */

const component = fileURLToPath(new URL("../test/fixtures/components/conformance.wasm", import.meta.url));

const { values } = parseArgs({
  options: { url: { type: "string" }, revision: { type: "string", multiple: true } },
  strict: true,
});

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const report = (revision: Revision, results: readonly ScenarioResult[]): boolean => {
  say(`\n## MCP ${revision}\n\n| scenario | scored | passed | does not apply | failed |\n|---|---|---|---|---|`);
  for (const { scenario, isScored, passed, notApplicable, unexpected, stale } of results) {
    const failed = [...unexpected, ...stale.map((entry) => `${entry} passes: take it out of not-applicable.yaml`)];
    say(`| ${scenario} | ${isScored ? "yes" : ""} | ${passed} | ${notApplicable.length || ""} | ${failed.join("; ")} |`);
  }
  const scored = results.filter(({ isScored }) => isScored);
  const applying = scored.filter(({ notApplicable }) => notApplicable.length === 0);
  const bad = results.filter(({ unexpected, stale }) => unexpected.length + stale.length > 0);
  say(`\n${scored.length} scored scenarios, of which ${applying.length} apply in full; ${bad.length} scenarios fail`);
  return bad.length === 0;
};

const runAll = async (url: string): Promise<boolean> => {
  let isFine = true;
  for (const revision of revisions) {
    if (values.revision && !values.revision.includes(revision)) continue;
    isFine = report(revision, await runSuite(url, revision)) && isFine;
  }
  return isFine;
};

const againstOurs = async (): Promise<boolean> => {
  const prepared = await prepareFolder(component);
  try {
    const served = await prepared.start("--no-auth");
    try {
      return await runAll(`${served.url}/mcp`);
    } finally {
      await served.stop();
    }
  } finally {
    await prepared.remove();
  }
};

process.exitCode = (values.url === undefined ? await againstOurs() : await runAll(values.url)) ? 0 : 1;
