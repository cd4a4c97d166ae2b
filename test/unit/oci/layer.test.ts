import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { unpackLayer } from "../../../src/oci/layer.ts";
import { type TarEntry, tarOf } from "../../registry/tar.ts";

const wasm = Buffer.from("\0asm and the rest");
const other = Buffer.from("something else");
const large = 1024 * 1024;
const unpack = async (layer: Uint8Array, packing: Parameters<typeof unpackLayer>[1] = "tar", maxBytes = large): Promise<string> =>
  Buffer.from(await unpackLayer(layer, packing, maxBytes, "r/a")).toString();

test("a bare layer is the component", async () => assert.equal(await unpack(wasm, "bare"), wasm.toString()));
test("a gzipped archive is unpacked", async () =>
  assert.equal(await unpack(gzipSync(tarOf({ name: "a.wasm", content: wasm })), "tar+gzip"), wasm.toString()));
test("a zstandard archive is unpacked", async () =>
  assert.equal(await unpack(zstdCompressSync(tarOf({ name: "a.wasm", content: wasm })), "tar+zstd"), wasm.toString()));

const long = `${"d".repeat(150)}/tool.wasm`;
const pax = (path: string): Buffer => {
  const record = ` path=${path}\n`;
  return Buffer.from(`${record.length + 3}${record}`);
};

const found: Record<string, TarEntry[]> = {
  "beside other files and folders": [
    { name: "app/", type: "5" },
    { name: "app/README", content: other },
    { name: "app/tool.wasm", content: wasm },
  ],
  "behind a path that climbs, which is only a name": [{ name: "../../etc/tool.wasm", content: wasm }],
  "under GNU's long name": [
    { name: "././@LongLink", type: "L", content: Buffer.from(`${long}\0`) },
    { name: long.slice(0, 99), content: wasm },
  ],
  "under a pax name": [
    { name: "PaxHeaders/x", type: "x", content: pax(long) },
    { name: "short", content: wasm },
  ],
  "and a link that ends in .wasm is none": [
    { name: "link.wasm", type: "2" },
    { name: "tool.wasm", content: wasm },
  ],
};

for (const [where, entries] of Object.entries(found)) {
  test(`the component is found ${where}`, async () => assert.equal(await unpack(tarOf(...entries)), wasm.toString()));
}

test("an archive made by the system's tar is read", { skip: process.platform === "win32" ? "no tar" : false }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "ambit-tar-"));
  try {
    writeFileSync(join(folder, "tool.wasm"), wasm);
    for (const format of ["ustar", "gnu", "pax"]) {
      const archive = execFileSync("tar", [
        "-C",
        folder,
        `--format=${format}`,
        "-c",
        "--transform",
        `s,^,${"p/".repeat(70)},`,
        "tool.wasm",
      ]);
      assert.equal(await unpack(archive), wasm.toString(), format);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const refused: Record<string, { layer: Uint8Array; packing?: Parameters<typeof unpackLayer>[1]; code: string; because: RegExp }> = {
  "an archive without a component": {
    layer: tarOf({ name: "README", content: other }),
    code: "NotAComponentImage",
    because: /holds 0 files/,
  },
  "an archive with two": {
    layer: tarOf({ name: "a.wasm", content: wasm }, { name: "b.wasm", content: wasm }),
    code: "NotAComponentImage",
    because: /holds 2 files/,
  },
  "what is no archive": { layer: Buffer.alloc(1024, "x"), code: "NotAComponentImage", because: /no tar archive \(at byte 0\)/ },
  "an archive cut off within the file": {
    layer: tarOf({ name: "a.wasm", content: Buffer.alloc(2000) }).subarray(0, 1500),
    code: "NotAComponentImage",
    because: /ends within a file/,
  },
  "a size beyond the archive": {
    layer: tarOf({ name: "a.wasm", content: wasm, claimedSize: "77777777777" }),
    code: "NotAComponentImage",
    because: /ends within a file/,
  },
  "a binary size": {
    layer: tarOf({ name: "a.wasm", content: wasm, claimedSize: "\x80\0\0\0\0\0\0\0\0\0\0\x01" }),
    code: "NotAComponentImage",
    because: /ends within a file/,
  },
  "a long name without end": {
    layer: tarOf({ name: "x", type: "L", content: Buffer.alloc(100_000, "n") }),
    code: "NotAComponentImage",
    because: /a name of 100000 bytes/,
  },
  "very many entries": {
    layer: tarOf(...Array.from({ length: 1001 }, () => ({ name: "d/", type: "5" }))),
    code: "NotAComponentImage",
    because: /more than 1000 entries/,
  },
  "gzip that is none": {
    layer: tarOf({ name: "a.wasm", content: wasm }),
    packing: "tar+gzip",
    code: "NotAComponentImage",
    because: /does not unpack/,
  },
  "zstandard that is none": { layer: Buffer.from("zzzz"), packing: "tar+zstd", code: "NotAComponentImage", because: /does not unpack/ },
  "a small layer that unpacks to very much": {
    layer: gzipSync(Buffer.alloc(64 * 1024 * 1024)),
    packing: "tar+gzip",
    code: "ImageTooLarge",
    because: /unpacks to more than/,
  },
  "a small zstandard layer that unpacks to very much": {
    layer: zstdCompressSync(Buffer.alloc(64 * 1024 * 1024)),
    packing: "tar+zstd",
    code: "ImageTooLarge",
    because: /unpacks to more than/,
  },
};

for (const [what, { layer, packing, code, because }] of Object.entries(refused)) {
  test(`refused: ${what}`, async () => {
    await assert.rejects(
      unpack(layer, packing),
      (thrown: unknown) => thrown instanceof Invalid && thrown.code === code && because.test(thrown.message),
    );
  });
}

test("a damaged archive is read or refused by name", async () => {
  const whole = tarOf(
    { name: "a", content: other },
    { name: "././@LongLink", type: "L", content: Buffer.from(long) },
    { name: "a.wasm", content: wasm },
  );
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), async (at, byte, length) => {
      const damaged = Buffer.from(whole.subarray(0, length));
      if (at < length) damaged[at] = byte;
      await unpack(damaged).catch((thrown: unknown) => {
        if (!(thrown instanceof Invalid)) throw thrown;
      });
    }),
    { numRuns: 500 },
  );
});
