import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";

const root = resolve(import.meta.dirname, "../../..");

/** A suite that runs here, and one that can't on a cluster that somebody else gave. */
const runs = "test/unit/scripts/import-directions.test.ts";
const leftOut = "test/e2e/node.test.ts";

describe("the command that runs the tests", () => {
  const tests = async (ci: string, ...args: string[]): Promise<{ code: number; lines: string[] }> => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = spawn(process.execPath, ["scripts/test.ts", ...args], {
      cwd: root,
      env: { ...env, CI: ci, AMBIT_TEST_KUBECONFIG: "/nowhere" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const [out, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
    return { code, lines: out.trimEnd().split("\n") };
  };

  test("counts in its last line what passed, and names what was left out and why", async () => {
    const { code, lines } = await tests("", runs, leftOut);
    assert.equal(code, 0);
    assert.match(lines.at(-1) ?? "", /^tests: [1-9][0-9]* passed, 0 failed, 1 skipped$/);
    assert.match(lines.at(-2) ?? "", /^left out: test\/e2e\/node\.test\.ts: the built-in node: the cluster of AMBIT_TEST_KUBECONFIG /);
  });

  test("fails under CI where something was left out", async () => {
    const { code, lines } = await tests("true", runs, leftOut);
    assert.equal(code, 1);
    assert.ok(lines.includes("leaving tests out is a failure in CI"));
  });

  test("fails where no test ran", async () => {
    const { code, lines } = await tests("", "--name", "no test has this name", runs);
    assert.equal(code, 1);
    assert.ok(lines.includes("no test ran"));
  });

  test("knows no suite but its own", async () => {
    assert.equal((await tests("", "--suite", "moon")).code, 2);
  });
});
