import assert from "node:assert/strict";
import * as nodeFiles from "node:fs/promises";
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { sha256Of } from "../../../src/api/digest.ts";
import { Stalled, Transient } from "../../../src/api/errors.ts";
import { openContentCache } from "../../../src/oci/content-cache.ts";

const withFolder = async (use: (folder: string) => Promise<void>): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), "ambit-cache-"));
  try {
    await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
};

const content = (text: string) => ({ digest: sha256Of(text), bytes: Buffer.from(text) });
const pathIn = (folder: string, digest: string): string => join(folder, "sha256", digest.slice("sha256:".length));
const limit = 1000;

test("content is given back by its digest, also to another process", () =>
  withFolder(async (folder) => {
    const { digest, bytes } = content("hello");
    await openContentCache(folder).write(digest, bytes);
    assert.deepEqual(await openContentCache(folder).read(digest, limit), bytes);
    assert.equal(await openContentCache(folder).read(sha256Of("else"), limit), null);
  }));

test("a cache that was never written to has nothing", async () => {
  assert.equal(await openContentCache("/nowhere/at/all").read(sha256Of("x"), limit), null);
});

test("damaged content is not given, is removed, and can be written anew", () =>
  withFolder(async (folder) => {
    const cache = openContentCache(folder);
    const { digest, bytes } = content("hello");
    await cache.write(digest, bytes);
    await writeFile(pathIn(folder, digest), "hellO");
    assert.equal(await cache.read(digest, limit), null);
    assert.deepEqual(await readdir(join(folder, "sha256")), []);
    await cache.write(digest, bytes);
    assert.deepEqual(await cache.read(digest, limit), bytes);
  }));

test("content that is longer than asked for is not read", () =>
  withFolder(async (folder) => {
    const cache = openContentCache(folder);
    const { digest, bytes } = content("hello");
    await cache.write(digest, bytes);
    assert.equal(await cache.read(digest, 4), null);
  }));

test("many writers of the same content at once leave it whole and nothing else", () =>
  withFolder(async (folder) => {
    const { digest, bytes } = content("x".repeat(900));
    await Promise.all(Array.from({ length: 20 }, () => openContentCache(folder).write(digest, bytes)));
    assert.deepEqual(await openContentCache(folder).read(digest, limit), bytes);
    assert.deepEqual(await readdir(join(folder, "partial")), []);
  }));

const failures: Record<string, { code: string; is: typeof Transient | typeof Stalled; reported: string }> = {
  "a full disk": { code: "ENOSPC", is: Transient, reported: "CacheFull" },
  "a used up quota": { code: "EDQUOT", is: Transient, reported: "CacheFull" },
  "a folder that may not be written": { code: "EACCES", is: Stalled, reported: "CacheUnwritable" },
  "a read-only file system": { code: "EROFS", is: Stalled, reported: "CacheUnwritable" },
  "a disk that fails": { code: "EIO", is: Transient, reported: "CacheFailed" },
};

for (const [what, { code, is, reported }] of Object.entries(failures)) {
  test(`${what} is told as ${reported}, and leaves neither half a file nor a name`, () =>
    withFolder(async (folder) => {
      const { digest, bytes } = content("hello");
      const files = { ...nodeFiles, open: opensFilesThatFailHalfway(code) };
      await assert.rejects(
        openContentCache(folder, { files }).write(digest, bytes),
        (thrown: unknown) => thrown instanceof is && thrown.code === reported,
      );
      assert.deepEqual([await readdir(join(folder, "sha256")), await readdir(join(folder, "partial"))], [[], []]);
      assert.equal(await openContentCache(folder).read(digest, limit), null);
    }));
}

/** Takes half of what is written and then fails, as a disk does that fills up. */
const opensFilesThatFailHalfway =
  (code: string): typeof nodeFiles.open =>
  async (...options) => {
    const file = await nodeFiles.open(...options);
    const writeWhole = file.writeFile.bind(file);
    file.writeFile = async (whole) => {
      await writeWhole((whole as Uint8Array).subarray(0, 2));
      throw Object.assign(new Error(`${code}: it failed`), { code });
    };
    return file;
  };

test("what was not used for longest goes first when there is too much", () =>
  withFolder(async (folder) => {
    let now = 1_000_000_000_000;
    const cache = openContentCache(folder, { maxBytes: 25, now: () => now });
    const [first, second, third] = [content("first......"), content("second....."), content("third......")];
    for (const { digest, bytes } of [first, second]) {
      now += 1000;
      await cache.write(digest, bytes);
      await utimes(pathIn(folder, digest), now / 1000, now / 1000);
    }
    now += 1000;
    assert.ok(await cache.read(first.digest, limit));
    now += 1000;
    await cache.write(third.digest, third.bytes);
    assert.equal(await cache.read(second.digest, limit), null);
    assert.ok(await cache.read(first.digest, limit));
    assert.ok(await cache.read(third.digest, limit));
  }));

test("content larger than the whole cache is kept alone", () =>
  withFolder(async (folder) => {
    const cache = openContentCache(folder, { maxBytes: 10 });
    await cache.write(content("small").digest, content("small").bytes);
    const { digest, bytes } = content("larger than all of it");
    await cache.write(digest, bytes);
    assert.ok(await cache.read(digest, limit));
    assert.equal(await cache.read(content("small").digest, limit), null);
  }));

test("what a killed process left half written is swept, and what is being written is not", () =>
  withFolder(async (folder) => {
    const now = 1_000_000_000_000;
    const cache = openContentCache(folder, { now: () => now });
    await cache.write(content("a").digest, content("a").bytes);
    for (const [name, age] of [
      ["abandoned", 7_200_000],
      ["in-progress", 1000],
    ] as const) {
      const path = join(folder, "partial", name);
      await writeFile(path, "half");
      await utimes(path, (now - age) / 1000, (now - age) / 1000);
    }
    await cache.write(content("b").digest, content("b").bytes);
    assert.deepEqual(await readdir(join(folder, "partial")), ["in-progress"]);
  }));

test("the cache is its owner's alone", () =>
  withFolder(async (parent) => {
    const folder = join(parent, "cache");
    const { digest, bytes } = content("a");
    await openContentCache(folder).write(digest, bytes);
    assert.equal((await stat(join(folder, "sha256"))).mode & 0o077, 0);
    assert.equal((await stat(pathIn(folder, digest))).mode & 0o077, 0);
  }));
