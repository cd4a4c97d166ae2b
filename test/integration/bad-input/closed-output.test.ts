import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "../host-under-test.ts";
import { workload } from "./served-folder.ts";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

test("a command whose reader has gone does all of its work and says nothing of it", async () => {
  const folder = temporaryFolder();
  await cp(at("../../fixtures/components/echo.wasm"), join(folder, "tool.wasm"));
  await writeFile(join(folder, "tool.yaml"), workload("tool", "tool.wasm"));
  const drafts = join(folder, "drafts");
  const args = [at("../../../src/cli/main.ts"), "draft", folder, "--out", drafts, "--cache", join(folder, "cache")];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  assert.deepEqual([code, errors.includes("EPIPE")], [0, false], errors);
  assert.ok((await readdir(drafts)).length > 100);
});
