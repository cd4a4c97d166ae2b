import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { prepareFolder } from "../support/served-folder.ts";
import { revisions, runSuite } from "./official-suite.ts";

const component = join(fileURLToPath(new URL("../fixtures/components/", import.meta.url)), "conformance.wasm");

test("MCP's official conformance suite passes against a served component, but for what does not apply", async (t) => {
  const prepared = await prepareFolder(component);
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
