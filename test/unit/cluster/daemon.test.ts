import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { becomes } from "../../cluster/becomes.ts";
import { type Daemons, daemonNames, isRunning, lastLines, startDaemon, stopDaemons } from "../../cluster/daemon.ts";

describe("daemons", { skip: process.platform === "linux" ? false : "needs /proc, which is Linux's" }, () => {
  let folder: string;
  let daemons: Daemons;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-daemon-"));
    daemons = { pids: join(folder, "pid"), logs: join(folder, "log") };
    await mkdir(daemons.pids);
  });
  after(() => rm(folder, { recursive: true }));

  const node = (name: string, script: string) => startDaemon(daemons, { name, argv: [process.execPath, "-e", script] });
  const pidOf = async (name: string): Promise<string> => (await readFile(join(daemons.pids, `${name}.pid`), "utf8")).split(" ")[0] ?? "";

  test("a daemon runs until it is stopped, and is started once", async () => {
    await node("one", "console.log('here'); setInterval(() => {}, 1000)");
    const pid = await pidOf("one");
    await node("one", "setInterval(() => {}, 1000)");
    assert.equal(await pidOf("one"), pid);
    assert.equal(await isRunning(daemons, "one"), true);
    assert.ok(await becomes(async () => (await lastLines(daemons, "one")) === "here", 10_000));
    await stopDaemons(daemons, ["one"]);
    // Ended, it may still wait for its parent, this process, to hear of it.
    assert.ok(await becomes(async () => !exists(Number(pid)), 10_000));
    assert.deepEqual(daemonNames(daemons), []);
  });

  test("one that ended by itself does not run and can be started again", async () => {
    await node("short", "");
    assert.ok(await becomes(async () => !(await isRunning(daemons, "short")), 10_000));
    await node("short", "setInterval(() => {}, 1000)");
    assert.equal(await isRunning(daemons, "short"), true);
    await stopDaemons(daemons, ["short", "never-started"]);
  });

  test("a process that has got the pid of one that ended is left alone", async () => {
    const other = spawn("cat", { stdio: ["pipe", "pipe", "inherit"] });
    const exited = once(other, "exit");
    await once(other, "spawn");
    await writeFile(join(daemons.pids, "gone.pid"), `${other.pid} 1\n`);
    assert.equal(await isRunning(daemons, "gone"), false);
    await stopDaemons(daemons, ["gone"]);
    other.stdin.write("alive");
    const answer = once(other.stdout, "data").then(([bytes]) => String(bytes));
    assert.equal(await Promise.race([answer, exited.then(() => "ended")]), "alive");
    other.kill();
    await exited;
  });

  test("a program that is not there is an error", async () => {
    await assert.rejects(startDaemon(daemons, { name: "absent", argv: [join(folder, "absent")] }), { code: "ENOENT" });
  });
});

const exists = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ESRCH") return false;
    throw thrown;
  }
};
