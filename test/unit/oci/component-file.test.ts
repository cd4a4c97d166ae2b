import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { sha256Of } from "../../../src/api/digest.ts";
import { AmbitError } from "../../../src/api/errors.ts";
import { readComponentFile } from "../../../src/oci/component-file.ts";

const folder = mkdtempSync(join(tmpdir(), "ambit-file-"));
after(() => rmSync(folder, { recursive: true }));
writeFileSync(join(folder, "tool.wasm"), "tool");
symlinkSync("tool.wasm", join(folder, "link.wasm"));
execFileSync("mkfifo", [join(folder, "pipe.wasm")]);

const read = (path: string, digest: string | null = null): Promise<Uint8Array> =>
  readComponentFile({ kind: "file", path, digest: digest as null }, folder, 10);

const isError = (name: string, code: string) => (thrown: unknown) =>
  thrown instanceof AmbitError && thrown.name === name && thrown.code === code;

test("a relative path starts at the manifest's folder", async () => assert.equal(Buffer.from(await read("tool.wasm")).toString(), "tool"));
test("an absolute path is itself", async () => assert.equal((await read(join(folder, "tool.wasm"))).length, 4));
test("a link to a file is followed", async () => assert.equal((await read("link.wasm")).length, 4));
test("a digest that is right is accepted", async () => assert.equal((await read("tool.wasm", sha256Of("tool"))).length, 4));
test("a digest that is wrong is refused", () => assert.rejects(read("tool.wasm", sha256Of("else")), isError("Stalled", "DigestMismatch")));
test("a file that is not there is named", () =>
  assert.rejects(
    read("none.wasm"),
    (thrown: unknown) => isError("Stalled", "ImageNotFound")(thrown) && String(thrown).includes(join(folder, "none.wasm")),
  ));
test("a path below a file is not there", () => assert.rejects(read("tool.wasm/x"), isError("Stalled", "ImageNotFound")));
test("a folder is no component", () => assert.rejects(read("."), isError("Invalid", "NotAComponentImage")));
test("a named pipe is no component, and nobody waits for it", () =>
  assert.rejects(read("pipe.wasm"), isError("Invalid", "NotAComponentImage")));
test("a device is no component", () => assert.rejects(read("/dev/zero"), isError("Invalid", "NotAComponentImage")));
test("a file that is too long is not read", async () => {
  writeFileSync(join(folder, "long.wasm"), "more than ten bytes");
  await assert.rejects(read("long.wasm"), isError("Invalid", "ImageTooLarge"));
});
