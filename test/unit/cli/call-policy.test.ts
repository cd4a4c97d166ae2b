import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { callPolicyIn } from "../../../src/cli/call-policy.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-policy-"));
});
after(() => rm(folder, { recursive: true }));

const written = async (text: string): Promise<string> => {
  const file = join(folder, "policy.yaml");
  await writeFile(file, text);
  return file;
};

test("a policy is read from YAML, and an empty file decides nothing", async () => {
  const policy = await callPolicyIn(await written("denials: {count: 5, window: 1m}\n"));
  assert.deepEqual(policy.denials, { max: 5, perSession: null, windowMs: 60_000 });
  assert.deepEqual((await callPolicyIn(await written(""))).denials, { max: 30, perSession: null, windowMs: 600_000 });
});

test("a policy that can't be read is told with its file and place", async () => {
  const file = await written("labelers: [{kind: Robot, name: r2}]\n");
  await assert.rejects(callPolicyIn(file), (thrown: Error) => thrown.message.startsWith(`${file} at /labelers/0/kind: `));
  await assert.rejects(callPolicyIn(await written("labelers: [")), { code: "CallPolicyInvalid" });
});
