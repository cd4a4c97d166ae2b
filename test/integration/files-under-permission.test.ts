import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { hostArguments } from "../../src/host/node-arguments.ts";

/** Runs in a process with the flags of a host: what a component would do with its mounts, and what the process itself cannot do. */
const script = (mounts: unknown): string => `
  const { createWasi } = await import(${JSON.stringify(new URL("../../src/host/wasi/create.ts", import.meta.url))});
  const fs = await import("node:fs");
  const wasi = createWasi({ environment: {}, mounts: ${JSON.stringify(mounts)}, allowedHosts: [], dial: async () => [], log: () => {} });
  const id = "wasi:filesystem/preopens@0.2.0";
  const [[docs], [work]] = wasi.importsFor([{ id, kind: "instance", functions: [], resources: [] }])[id].getDirectories();
  const outcome = (attempt) => { try { return attempt() ?? "done"; } catch (error) { return error.payload ?? error.code; } };
  const read = (folder, path) => Buffer.from(folder.openAt({ symlinkFollow: true }, path, {}, { read: true }).read(100n, 0n)[0]).toString();
  const file = () => work.openAt({}, "new/file", { create: true }, { read: true, write: true });
  console.log(JSON.stringify({
    read: outcome(() => read(docs, "a.txt")),
    listed: outcome(() => ["a.txt", "out"].includes(docs.readDirectory().readDirectoryEntry().name)),
    made: outcome(() => work.createDirectoryAt("new")),
    written: outcome(() => Number(file().write(Buffer.from("text"), 0n))),
    cut: outcome(() => file().setSize(2n)),
    synced: outcome(() => file().sync()),
    touched: outcome(() => file().setTimes({ tag: "now" }, { tag: "timestamp", val: { seconds: 1000n, nanoseconds: 0 } })),
    touchedByPath: outcome(() => work.setTimesAt({}, "new/file", { tag: "now" }, { tag: "no-change" })),
    renamed: outcome(() => work.renameAt("new/file", work, "moved")),
    linked: outcome(() => work.linkAt({}, "moved", work, "again")),
    unlinked: outcome(() => work.unlinkFileAt("again")),
    removed: outcome(() => work.removeDirectoryAt("new")),
    throughLink: outcome(() => read(docs, "out")),
    above: outcome(() => read(docs, "../secret")),
    readOnly: outcome(() => docs.createDirectoryAt("x")),
    process: outcome(() => fs.readFileSync("/etc/passwd", "utf8")),
    processWrites: outcome(() => fs.writeFileSync(${JSON.stringify(join(tmpdir(), "ambit-not-allowed"))}, "")),
    environ: outcome(() => fs.readFileSync("/proc/self/environ", "utf8")),
    aroundDescriptors: outcome(() => fs.readFileSync("/proc/self/fd/../environ", "utf8")),
  }));
  wasi.dispose();
`;

describe("files of a component in a process with a host's permissions", { skip: process.platform !== "linux" }, () => {
  let root = "";
  before(async () => {
    root = await mkdtemp(join(tmpdir(), "ambit-permission-"));
    for (const folder of ["docs", "work", "cache"]) await mkdir(join(root, folder));
    await writeFile(join(root, "secret"), "s3cret");
    await writeFile(join(root, "docs/a.txt"), "hello");
    await symlink("../secret", join(root, "docs/out"));
  });
  after(() => rm(root, { recursive: true }));

  it("work as granted, and reach nothing else", async () => {
    const mounts = [
      { name: "docs", folder: join(root, "docs"), mountPath: "/docs", readOnly: true },
      { name: "work", folder: join(root, "work"), mountPath: "/files", readOnly: false },
    ];
    const flags = hostArguments({ cacheFolder: join(root, "cache"), mounts });
    const child = spawn(process.execPath, [...flags, "--input-type=module", "-e", script(mounts)], { stdio: ["ignore", "pipe", "pipe"] });
    const [out, problems] = await Promise.all([text(child.stdout), text(child.stderr)]);
    assert.notEqual(out, "", problems);
    assert.deepEqual(JSON.parse(out), {
      read: "hello",
      listed: true,
      made: "done",
      written: 4,
      cut: "done",
      synced: "done",
      touched: "done",
      touchedByPath: "done",
      renamed: "done",
      linked: "done",
      unlinked: "done",
      removed: "done",
      throughLink: "not-permitted",
      above: "not-permitted",
      readOnly: "read-only",
      process: "ERR_ACCESS_DENIED",
      processWrites: "ERR_ACCESS_DENIED",
      environ: "ERR_ACCESS_DENIED",
      aroundDescriptors: "ERR_ACCESS_DENIED",
    });
    assert.equal(await readFile(join(root, "work/moved"), "utf8"), "te");
  });
});
