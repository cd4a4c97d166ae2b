import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { exclusively } from "../../cluster/exclusive.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-exclusive-"));
});
after(() => rm(folder, { recursive: true }));

test("two at once come one after the other, and the one that waits says so once", async () => {
  const path = join(folder, "nested", "one.lock");
  const seen: string[] = [];
  const work = (name: string) =>
    exclusively(
      path,
      () => seen.push("waiting"),
      async () => {
        seen.push(`${name} begins`);
        await turn();
        seen.push(`${name} ends`);
      },
    );
  await Promise.all([work("first"), work("second")]);
  assert.deepEqual(seen, ["first begins", "waiting", "first ends", "second begins", "second ends"]);
});

test("work that fails gives its error, and the way is free", async () => {
  const path = join(folder, "failing.lock");
  const fail = () => Promise.reject(new Error("broken"));
  await assert.rejects(exclusively(path, assert.fail, fail), /broken/);
  assert.equal(await exclusively(path, assert.fail, async () => "after"), "after");
});

test("what a killed process held is free again", async () => {
  const path = join(folder, "killed.lock");
  const module = new URL("../../cluster/exclusive.ts", import.meta.url).href;
  const script = `const { exclusively } = await import(${JSON.stringify(module)});
    await exclusively(${JSON.stringify(path)}, () => {}, () => { console.log("held"); return new Promise((done) => setTimeout(done, 600_000)); });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  const { promise: waiting, resolve: isWaiting } = Promise.withResolvers<void>();
  const work = exclusively(path, isWaiting, async () => "done");
  await waiting;
  child.kill("SIGKILL");
  assert.equal(await work, "done");
});
