import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { transpileBytes } from "@bytecodealliance/jco-transpile";
import { WASIShim } from "@bytecodealliance/preview2-shim/instantiation";
import type * as Reading from "../../examples/workspace-read/types/ambit-workspace-reading.d.ts";

const component = resolve(import.meta.dirname, "../../examples/workspace-read/workspace-read.wasm");
const interfaceId = "ambit:workspace/reading@0.1.0";

/** What jco makes of a component with `instantiation: "sync"`. */
interface Transpiled {
  readonly instantiate: (coreModule: (name: string) => WebAssembly.Module, imports: object) => Record<typeof interfaceId, typeof Reading>;
}

let folder: string;
let reading: typeof Reading;

/** No catalogue, no host, no model: a program that uses the component as the library it is. */
const load = async (workspace: string): Promise<typeof Reading> => {
  const { files } = await transpileBytes(await readFile(component), {
    name: "workspace",
    instantiation: "sync",
    wasiShim: false,
    noComponentErrorWrapping: false,
  });
  const script = join(folder, "workspace.mjs");
  await writeFile(script, files["workspace.js"] ?? "");
  const { instantiate } = (await import(pathToFileURL(script).href)) as Transpiled;
  const coreModule = (name: string): WebAssembly.Module => new WebAssembly.Module(Buffer.from(files[name] ?? []));
  const shim = new WASIShim({ sandbox: { preopens: { "/workspace": workspace } } });
  return instantiate(coreModule, shim.getImportObject())[interfaceId];
};

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-typed-caller-"));
  const workspace = join(folder, "workspace");
  await mkdir(join(workspace, "src"), { recursive: true });
  await writeFile(join(workspace, "src/a.txt"), "one\ntwo\nthree\n");
  await writeFile(join(workspace, "src/b.txt"), "one\n2\nthree\n");
  await writeFile(join(workspace, "notes.md"), "Two of three.\n");
  reading = await load(workspace);
});

after(() => rm(folder, { recursive: true, force: true }));

test("a TypeScript program lists a folder and gets records with enums and bigints", () => {
  const entries: Reading.Entry[] = reading.list({});
  assert.deepEqual(entries, [
    { name: "notes.md", kind: "file", size: 14n },
    { name: "src", kind: "folder", size: undefined },
  ]);
});

test("optional arguments are optional properties", () => {
  assert.deepEqual(reading.find({ glob: "*.txt" }), { paths: ["src/a.txt", "src/b.txt"], truncated: false });
  assert.deepEqual(reading.find({ glob: "*.txt", limit: 1 }), { paths: ["src/a.txt"], truncated: true });
});

test("searching groups matching lines by file", () => {
  const { files } = reading.search({ pattern: "^t(wo|hree)", path: "src", ignoreCase: true });
  assert.deepEqual(files, [
    {
      path: "src/a.txt",
      lines: [
        { number: 2, text: "two" },
        { number: 3, text: "three" },
      ],
    },
    { path: "src/b.txt", lines: [{ number: 3, text: "three" }] },
  ]);
});

test("reading gives the lines that were asked for and says whether there are more", () => {
  assert.deepEqual(reading.read({ path: "src/a.txt", startLine: 2, lineCount: 1 }), {
    text: "two\n",
    startLine: 2,
    totalLines: 3,
    truncated: true,
  });
});

test("comparing gives a unified difference", () => {
  const { same, diff } = reading.compare({ oldPath: "src/a.txt", newPath: "src/b.txt" });
  assert.equal(same, false);
  assert.equal(diff, "--- src/a.txt\n+++ src/b.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
});

test("the function's error is thrown with its typed payload", () => {
  assert.throws(
    () => reading.read({ path: "src/missing.txt" }),
    (thrown: unknown) => thrown instanceof Error && "payload" in thrown && thrown.payload === "There is no src/missing.txt.",
  );
});
