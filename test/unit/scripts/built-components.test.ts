import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { test } from "node:test";

const script = resolve(import.meta.dirname, "../../../scripts/build-components.ts");

test("every committed component was built from the source that is here", () => {
  const { status, stderr } = spawnSync(process.execPath, [script, "--check-sources"], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^\d+ components are as committed$/m);
});

test("a component that does not exist can't be built", () => {
  const { status, stderr } = spawnSync(process.execPath, [script, "nothing-of-that-name"], { encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, /there is no component nothing-of-that-name/);
});
