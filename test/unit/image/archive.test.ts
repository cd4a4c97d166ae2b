import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { extract } from "tar-stream";
import { type Image, writeImage } from "../../../scripts/image/archive.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-archive-"));
  await writeFile(join(folder, "program"), "#!/bin/sh\n");
});
after(() => rm(folder, { recursive: true }));

interface Entry {
  readonly name: string;
  readonly mode: number;
  readonly type: string;
  readonly owner: string;
  readonly time: number;
  readonly content: Buffer;
}

const entriesOf = async (tar: Readable): Promise<Entry[]> => {
  const entries: Entry[] = [];
  const reader = extract();
  tar.pipe(reader);
  for await (const entry of reader) {
    const { name, mode = 0, type, uid, gid, mtime } = entry.header;
    entries.push({ name, mode, type: String(type), owner: `${uid}:${gid}`, time: Number(mtime), content: await buffer(entry) });
  }
  return entries;
};

const longPath = `/app/${"folder/".repeat(30)}file-${"x".repeat(90)}`;

const image = (): Image => ({
  reference: "localhost/example:1",
  layers: [
    [
      { path: "/bin/program", mode: 0o755, from: join(folder, "program") },
      { path: "/tmp", mode: 0o1777, folder: true },
    ],
    [
      { path: longPath, mode: 0o644, content: "deep" },
      { path: "/app/a", mode: 0o644, content: "a" },
    ],
  ],
  config: { Entrypoint: ["/bin/program"], User: "65532:65532" },
});

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

test("an image is described by the digests of what is in it", async () => {
  const out = join(folder, "described.tar");
  await writeImage(out, image());
  const entries = new Map((await entriesOf(createReadStream(out))).map(({ name, content }) => [name, content]));
  const [manifest] = JSON.parse(String(entries.get("manifest.json")));
  assert.deepEqual(manifest.RepoTags, ["localhost/example:1"]);
  const config = entries.get(manifest.Config);
  assert.ok(config);
  assert.equal(manifest.Config, `${sha256(config)}.json`);
  const { rootfs, os, config: running } = JSON.parse(String(config));
  assert.equal(os, "linux");
  assert.equal(running.User, "65532:65532");
  const layers: string[] = manifest.Layers;
  assert.deepEqual(
    rootfs.diff_ids,
    layers.map((path) => `sha256:${sha256(entries.get(path) ?? Buffer.alloc(0))}`),
  );
});

test("a layer has its files with their modes, the folders above them first, long names whole, and nobody's name or time", async () => {
  const out = join(folder, "layers.tar");
  await writeImage(out, image());
  const entries = await entriesOf(createReadStream(out));
  const [manifest] = JSON.parse(String(entries.find(({ name }) => name === "manifest.json")?.content));
  const layers = await Promise.all(
    manifest.Layers.map((path: string) => entriesOf(Readable.from(entries.find(({ name }) => name === path)?.content ?? []))),
  );
  const [system = [], app = []] = layers as Entry[][];
  assert.deepEqual(
    system.map(({ name, mode, type }) => [name.replace(/\/$/, ""), mode, type]),
    [
      ["bin", 0o755, "directory"],
      ["bin/program", 0o755, "file"],
      ["tmp", 0o1777, "directory"],
    ],
  );
  assert.equal(String(app.find(({ name }) => `/${name}` === longPath)?.content), "deep");
  for (const [index, { name }] of app.entries())
    assert.ok(
      app.slice(index).every((other) => !name.startsWith(`${other.name}/`)),
      name,
    );
  for (const { owner, time } of [...system, ...app]) assert.deepEqual([owner, time], ["0:0", 0]);
});

test("the same files in another order, written later, give the same bytes", async () => {
  const [one, two] = [join(folder, "one.tar"), join(folder, "two.tar")];
  const { layers, ...rest } = image();
  await writeImage(one, { ...rest, layers });
  await writeImage(two, { ...rest, layers: layers.map((files) => files.toReversed()) });
  assert.ok((await readFile(one)).equals(await readFile(two)));
});

test("a file that is not there fails the whole, and leaves no archive", async () => {
  const out = join(folder, "failed.tar");
  const missing: Image = { ...image(), layers: [[{ path: "/a", mode: 0o644, from: join(folder, "absent") }]] };
  await assert.rejects(writeImage(out, missing), { code: "ENOENT" });
  await assert.rejects(readFile(out), { code: "ENOENT" });
});
