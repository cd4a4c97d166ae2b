import assert from "node:assert/strict";
import { test } from "node:test";
import { bridgePath, conformanceServer, reachOf, startServer } from "../integration/bridge-under-test.ts";
import { prepareFolder } from "../support/served-folder.ts";
import { revisions, runSuite } from "./official-suite.ts";

test("MCP's official conformance suite passes through a bridge to its own server, but for what does not apply", async (t) => {
  const server = await startServer(conformanceServer);
  t.after(() => server.stop());
  const prepared = await prepareFolder(bridgePath, () => true, 1000, reachOf(server.target));
  t.after(() => prepared.remove());
  const served = await prepared.start("--no-auth");
  t.after(() => served.stop());
  for (const revision of revisions) {
    await t.test(`${revision}`, async (t) => {
      for (const { scenario, passed, notApplicable, unexpected, stale } of await runSuite(`${served.url}/mcp`, revision)) {
        await t.test(`${scenario}: ${passed} checks passed, ${notApplicable.length} do not apply`, () => {
          assert.deepEqual({ unexpected, stale }, { unexpected: [], stale: [] });
        });
      }
    });
  }
});
