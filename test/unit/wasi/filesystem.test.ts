import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Worker } from "node:worker_threads";
import { CallContext, defaultWasiBudgets, type WasiOptions } from "../../../src/host/wasi/call-context.ts";
import { systemClock } from "../../../src/host/wasi/clock.ts";
import type { Descriptor } from "../../../src/host/wasi/filesystem/descriptor.ts";
import { preopensOf } from "../../../src/host/wasi/filesystem/preopens.ts";
import { GuestError } from "../../../src/host/wasi/guest-error.ts";
import { probeOf } from "./probe.ts";

const text = (content: string): Uint8Array => new TextEncoder().encode(content);
const refusal = (code: string) => ({ payload: code });

/** The mount as a component would hold it, without a component in between. */
const folderOf = (folder: string): Descriptor => {
  const context = new CallContext(
    {
      environment: {},
      mounts: [{ name: "v", folder, mountPath: "/v", readOnly: false }],
      allowedHosts: [],
      hop: null,
      connections: null,
      dial: async () => assert.fail("dialled"),
      log: () => undefined,
      denied: () => undefined,
      clock: systemClock,
      random: () => undefined,
      budgets: defaultWasiBudgets,
    },
    false,
  );
  const [mount] = preopensOf(context).getDirectories();
  assert.ok(mount);
  return mount[0];
};

/** The file's content, or the code of why it cannot be read. */
const readThrough = (folder: Descriptor, path: string): string => {
  try {
    const file = folder.openAt({ symlinkFollow: true }, path, {}, { read: true });
    const [bytes] = file.read(100n, 0n);
    file[Symbol.dispose]();
    return Buffer.from(bytes).toString();
  } catch (error) {
    assert.ok(error instanceof GuestError, String(error));
    return error.payload;
  }
};

describe("a component's files", async () => {
  const make = await probeOf("probe.wasm");
  let root = "";
  let options: Partial<WasiOptions> = {};
  let run = make();

  before(async () => {
    root = await mkdtemp(join(tmpdir(), "ambit-files-"));
    await mkdir(join(root, "work/sub/deep"), { recursive: true });
    await mkdir(join(root, "docs"));
    await writeFile(join(root, "secret"), "s3cret");
    await writeFile(join(root, "docs/a.txt"), "hello");
    await writeFile(join(root, "work/sub/ok"), "inside");
    const links: [where: string, to: string][] = [
      ["absolute", "/etc/passwd"],
      ["above", "../secret"],
      ["inside", "sub/deep/../ok"],
      ["loop", "loop"],
      ["top", "/"],
      ["sub/parent", ".."],
      ["sub/escape", "../../secret"],
      ["dangling", "sub/new"],
      ["outside-new", "../new"],
    ];
    for (const [where, to] of links) await symlink(to, join(root, "work", where));
    options = {
      mounts: [
        { name: "docs", folder: join(root, "docs"), mountPath: "/docs", readOnly: true },
        { name: "work", folder: join(root, "work"), mountPath: "/files", readOnly: false },
      ],
    };
    run = make(options);
  });

  after(async () => {
    run.dispose();
    await rm(root, { recursive: true });
  });

  const [docs, work] = [0, 1];

  it("are its mounts, at the paths they are mounted", async () => assert.deepEqual(await run.call("mounts"), ["/docs", "/files"]));

  it("can be read", async () => {
    assert.deepEqual(await run.call("readFile", docs, "a.txt", true), text("hello"));
    assert.deepEqual(await run.call("readRange", docs, "a.txt", 1n, 3n), [text("ell"), false]);
    assert.deepEqual(await run.call("readRange", docs, "a.txt", 3n, 30n), [text("lo"), true]);
    assert.deepEqual(await run.call("readRange", docs, "a.txt", 100n, 3n), [text(""), true]);
    await assert.rejects(run.call("readRange", docs, "a.txt", 2n ** 64n - 1n, 3n), refusal("invalid"));
  });

  it("can be written, appended to, cut and removed where the mount allows", async () => {
    await run.call("writeFile", work, "new.txt", text("x".repeat(10_000)), false);
    await run.call("writeFile", work, "new.txt", text("tail"), true);
    assert.equal(await readFile(join(root, "work/new.txt"), "utf8"), `${"x".repeat(10_000)}tail`);
    await run.call("truncate", work, "new.txt", 3n);
    assert.equal(await run.call("describe", work, "new.txt", true), "DescriptorType::RegularFile 3");
    await run.call("touch", work, "new.txt", 1000n);
    await run.call("rename", work, "new.txt", work, "sub/moved.txt");
    await run.call("makeLink", work, "sub/moved.txt", "again.txt");
    assert.equal(await run.call("sameObject", work, "sub/moved.txt", "again.txt"), true);
    await run.call("removeFile", work, "sub/moved.txt");
    await run.call("removeFile", work, "again.txt");
    await run.call("makeFolder", work, "folder/");
    await run.call("removeFolder", work, "folder");
    await run.call("makeFolder", work, "listed");
    await run.call("writeFile", work, "listed/b", text(""), false);
    await run.call("makeFolder", work, "listed/a");
    assert.deepEqual(await run.call("listFolder", work, "listed"), ["a DescriptorType::Directory", "b DescriptorType::RegularFile"]);
  });

  it("are found through links that stay inside", async () => {
    assert.deepEqual(await run.call("readFile", work, "inside", true), text("inside"));
    assert.deepEqual(await run.call("readFile", work, "sub/parent/sub/ok", true), text("inside"));
    assert.deepEqual(await run.call("readFile", work, "./sub//deep/.././ok", true), text("inside"));
    await run.call("writeFile", work, "dangling", text("made"), false);
    assert.equal(await readFile(join(root, "work/sub/new"), "utf8"), "made");
  });

  const escapes: Record<string, [name: string, ...parameters: unknown[]]> = {
    "a path above the mount": ["readFile", work, "../secret", true],
    "a path that leaves and comes back": ["readFile", work, "../work/sub/ok", true],
    "many levels up": ["readFile", work, "../../../../../../etc/passwd", true],
    "an absolute path": ["readFile", work, "/etc/passwd", true],
    "an absolute link": ["readFile", work, "absolute", true],
    "a link above the mount": ["readFile", work, "above", true],
    "a link above the mount from a folder": ["readFile", work, "sub/escape", true],
    "a folder that is a link to the root": ["readFile", work, "top/etc/passwd", true],
    "a link to the parent, then up": ["readFile", work, "sub/parent/../secret", true],
    "writing through a link above the mount": ["writeFile", work, "above", text("x"), false],
    "creating through a dangling link above the mount": ["writeFile", work, "outside-new", text("x"), false],
    "describing through an absolute link": ["describe", work, "absolute", true],
    "reading where an absolute link points": ["readSymlink", work, "absolute"],
    "touching through an absolute link": ["touch", work, "absolute", 1000n],
    "opening the folder above": ["open", work, "..", true, ["directory"]],
    "making a folder above": ["makeFolder", work, "../made"],
    "removing above": ["removeFile", work, "../secret"],
    "moving out": ["rename", work, "sub/ok", work, "../ok"],
    "moving in": ["rename", work, "../secret", work, "secret"],
    "moving a link elsewhere": ["rename", work, "above", work, "sub/deep/above"],
    "a new name for a link": ["makeLink", work, "absolute", "absolute2"],
    "a new link": ["makeSymlink", work, "/etc/passwd", "mine"],
    "a new link inside": ["makeSymlink", work, "sub", "mine"],
  };
  for (const [attempt, parameters] of Object.entries(escapes)) {
    it(`${attempt} is not permitted`, async () => {
      await assert.rejects(run.call(...parameters), refusal("not-permitted"));
      assert.equal(await readFile(join(root, "secret"), "utf8"), "s3cret");
      assert.deepEqual((await readdir(root)).sort(), ["docs", "secret", "work"]);
    });
  }

  const writes: Record<string, [name: string, ...parameters: unknown[]]> = {
    writing: ["writeFile", docs, "a.txt", text("x"), false],
    creating: ["open", docs, "new", true, ["create", "read"]],
    truncating: ["open", docs, "a.txt", true, ["truncate", "read"]],
    "opening to write": ["open", docs, "a.txt", true, ["read", "write"]],
    "opening a folder to change it": ["open", docs, ".", true, ["mutate-directory", "read"]],
    "making a folder": ["makeFolder", docs, "new"],
    "removing a file": ["removeFile", docs, "a.txt"],
    "removing a folder": ["removeFolder", docs, "a"],
    "touching a file": ["touch", docs, "a.txt", 1000n],
    "moving out of it": ["rename", docs, "a.txt", work, "a.txt"],
    "moving into it": ["rename", work, "sub/ok", docs, "ok"],
    "linking in it": ["makeLink", docs, "a.txt", "b.txt"],
    "a symbolic link in it": ["makeSymlink", docs, "a.txt", "b.txt"],
  };
  for (const [attempt, parameters] of Object.entries(writes)) {
    it(`${attempt} on a read-only mount is refused`, () => assert.rejects(run.call(...parameters), refusal("read-only")));
  }

  const faults: Record<string, { code: string; call: [name: string, ...parameters: unknown[]] }> = {
    "an empty path": { code: "no-entry", call: ["readFile", work, "", true] },
    "a path with NUL": { code: "invalid", call: ["readFile", work, "sub\0/ok", true] },
    "a path over 4096 bytes": { code: "name-too-long", call: ["readFile", work, "x".repeat(5000), true] },
    "a missing file": { code: "no-entry", call: ["readFile", work, "missing", true] },
    "a file as a folder": { code: "not-directory", call: ["readFile", work, "sub/ok/x", true] },
    "a file with a slash at its end": { code: "not-directory", call: ["readFile", work, "sub/ok/", true] },
    "a link in a circle": { code: "loop", call: ["readFile", work, "loop", true] },
    "a link that is not to be followed": { code: "loop", call: ["readFile", work, "inside", false] },
    "reading a folder": { code: "is-directory", call: ["readFile", work, "sub", true] },
    "unlinking a folder": { code: "is-directory", call: ["removeFile", work, "sub"] },
    "removing a full folder": { code: "not-empty", call: ["removeFolder", work, "sub"] },
    "creating what is there": { code: "exist", call: ["open", work, "sub/ok", true, ["create", "exclusive", "write"]] },
    "exclusively creating over a link": { code: "exist", call: ["open", work, "above", false, ["create", "exclusive", "write"]] },
    "growing past what a call may write": { code: "quota", call: ["truncate", work, "sub/ok", 2n ** 40n] },
    "more open files than a call may have": { code: "quota", call: ["openMany", work, "sub/ok", 300] },
  };
  for (const [fault, { code, call }] of Object.entries(faults)) {
    it(`${fault} is ${code}`, () => assert.rejects(run.call(...call), refusal(code)));
  }

  it("cannot be written past the call's allowance", async () => {
    const small = make({ ...options, budgets: { ...defaultWasiBudgets, writtenFileBytes: 1000 } });
    await assert.rejects(small.call("writeFile", work, "big", text("x".repeat(2000)), false), refusal("failed: quota"));
    small.dispose();
  });

  it("are closed when the call ends", { skip: process.platform !== "linux" }, async () => {
    const open = async (): Promise<number> => (await readdir("/proc/self/fd")).length;
    const other = make(options);
    const before = await open();
    await assert.rejects(other.call("openMany", work, "sub/ok", 300));
    other.dispose();
    assert.equal(await open(), before);
  });

  it("stay those of an open folder, whatever becomes of its name", { skip: process.platform !== "linux" }, async () => {
    await mkdir(join(root, "work/held"));
    await writeFile(join(root, "work/held/secret"), "inside");
    const held = folderOf(join(root, "work")).openAt({}, "held", { directory: true }, { read: true });
    await rename(join(root, "work/held"), join(root, "work/moved"));
    await symlink("..", join(root, "work/held"));
    assert.equal(readThrough(held, "secret"), "inside");
  });

  it("never lead out while another process swaps folders for links", { skip: process.platform !== "linux" }, async () => {
    await mkdir(join(root, "work/race/real"), { recursive: true });
    await writeFile(join(root, "work/race/real/secret"), "inside");
    const swapper = new Worker(
      `const { renameSync, symlinkSync } = require("node:fs");
       const at = (name) => require("node:path").join(require("node:worker_threads").workerData, name);
       symlinkSync("../..", at("link"));
       for (;;) {
         renameSync(at("real"), at("aside")); renameSync(at("link"), at("real"));
         renameSync(at("real"), at("link")); renameSync(at("aside"), at("real"));
       }`,
      { eval: true, workerData: join(root, "work/race") },
    );
    const folder = folderOf(join(root, "work"));
    const seen = new Set<string>();
    for (let round = 0; round < 20_000; round++) seen.add(readThrough(folder, "race/real/secret"));
    await swapper.terminate();
    assert.ok(!seen.has("s3cret"), "read the file outside");
    for (const outcome of seen) assert.match(outcome, /^(inside|no-entry|not-permitted|not-directory|loop|invalid)$/);
  });
});
