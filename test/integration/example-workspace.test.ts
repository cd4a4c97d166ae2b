import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { type ExampleTool, startExample } from "./example-tool.ts";

let folder: string;
let workspace: string;
let reader: ExampleTool;
let writer: ExampleTool;

const mount = (readOnly: boolean) => ({ mounts: [{ name: "workspace", folder: workspace, mountPath: "/workspace", readOnly }] });

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-workspace-"));
  workspace = join(folder, "workspace");
  await mkdir(workspace);
  await writeFile(join(folder, "secret.txt"), "outside\n");
  reader = await startExample("workspace-read", "ambit:workspace/reading@0.1.0", mount(true));
  writer = await startExample("workspace-write", "ambit:workspace/writing@0.1.0", mount(false));
});

after(async () => {
  await reader.close();
  await writer.close();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  await rm(workspace, { recursive: true, force: true });
  await mkdir(join(workspace, "src"), { recursive: true });
  await mkdir(join(workspace, ".git"));
  await writeFile(join(workspace, ".git/config"), "needle\n");
  await writeFile(join(workspace, "src/a.txt"), "one\nneedle\n");
  await writeFile(join(workspace, "src/image.bin"), Buffer.from([0x6e, 0, 1, 2]));
  await symlink("../../secret.txt", join(workspace, "src/out"));
});

const ok = async (tool: ExampleTool, name: string, args: object): Promise<unknown> => {
  const { outcome, text, structured } = await tool.call(name, args);
  assert.equal(outcome, "ok", text);
  return structured;
};

test("searching passes over .git and symlinks and finds what is left", async () => {
  assert.deepEqual(await ok(reader, "search", { pattern: "needle|outside" }), {
    files: [{ path: "src/a.txt", lines: [{ number: 2, text: "needle" }] }],
    truncated: false,
  });
});

test("a folder that is passed over is searched when the path names it", async () => {
  assert.deepEqual(await ok(reader, "search", { pattern: "needle", path: ".git" }), {
    files: [{ path: ".git/config", lines: [{ number: 1, text: "needle" }] }],
    truncated: false,
  });
});

const readErrors: Record<string, { name: string; args: object; says: RegExp }> = {
  "a path out of the workspace": { name: "read", args: { path: "../secret.txt" }, says: /leads out of the workspace/ },
  "an absolute path means the workspace": { name: "read", args: { path: "/etc/passwd" }, says: /^There is no etc\/passwd\.$/ },
  "a symlink out of the workspace": { name: "read", args: { path: "src/out" }, says: /out of reach/ },
  "a missing file": { name: "read", args: { path: "src/b.txt" }, says: /^There is no src\/b\.txt\.$/ },
  "a folder": { name: "read", args: { path: "src" }, says: /is a folder/ },
  "a binary file": { name: "read", args: { path: "src/image.bin" }, says: /is a binary file of 4 bytes/ },
  "a line after the end": { name: "read", args: { path: "src/a.txt", start_line: 9 }, says: /has 2 lines; there is no line 9/ },
  "a pattern that is none": { name: "search", args: { pattern: "(" }, says: /not a regular expression/ },
};
for (const [what, { name, args, says }] of Object.entries(readErrors)) {
  test(`an error in words: ${what}`, async () => {
    const { outcome, text } = await reader.call(name, args);
    assert.equal(outcome, "tool-error");
    assert.match(text, says);
  });
}

test("writing creates missing folders and leaves no draft behind", async () => {
  assert.deepEqual(await ok(writer, "write", { path: "new/deep/file.txt", text: "hé" }), { bytes: 3, created: true });
  assert.equal(await readFile(join(workspace, "new/deep/file.txt"), "utf8"), "hé");
  assert.deepEqual(await readdir(join(workspace, "new/deep")), ["file.txt"]);
});

test("a file that is there is replaced only when told to", async () => {
  const refused = await writer.call("write", { path: "src/a.txt", text: "new" });
  assert.equal(refused.outcome, "tool-error");
  assert.match(refused.text, /exists already/);
  await ok(writer, "write", { path: "src/a.txt", text: "new", overwrite: true });
  assert.equal(await readFile(join(workspace, "src/a.txt"), "utf8"), "new");
});

test("an edit replaces exactly what it names, and asks where that is not unique", async () => {
  assert.deepEqual(await ok(writer, "edit", { path: "src/a.txt", old_text: "needle\n", new_text: "pin\npin\n" }), {
    replaced: 1,
    first_line: 2,
  });
  const refused = await writer.call("edit", { path: "src/a.txt", old_text: "pin", new_text: "nail" });
  assert.match(refused.text, /there 2 times/);
  await ok(writer, "edit", { path: "src/a.txt", old_text: "pin", new_text: "nail", all: true });
  assert.equal(await readFile(join(workspace, "src/a.txt"), "utf8"), "one\nnail\nnail\n");
});

test("moving into itself, onto something or from nothing is refused", async () => {
  assert.match((await writer.call("move", { source: "src", destination: "src/inner" })).text, /into itself/);
  assert.match((await writer.call("move", { source: "src/a.txt", destination: ".git/config" })).text, /exists already/);
  assert.match((await writer.call("move", { source: "src/b.txt", destination: "c.txt" })).text, /There is no/);
  await ok(writer, "move", { source: "src/a.txt", destination: "moved/b.txt" });
  assert.equal(await readFile(join(workspace, "moved/b.txt"), "utf8"), "one\nneedle\n");
});

test("deleting a folder removes symlinks and not what they lead to", async () => {
  assert.match((await writer.call("delete", { path: "src" })).text, /recursive/);
  assert.deepEqual(await ok(writer, "delete", { path: "src", recursive: true }), { count: 4 });
  assert.deepEqual(await readdir(workspace), [".git"]);
  assert.equal(await readFile(join(folder, "secret.txt"), "utf8"), "outside\n");
});

test("the workspace itself stays", async () => {
  for (const path of ["", ".", "/", "src/.."]) {
    assert.match((await writer.call("delete", { path, recursive: true })).text, /workspace itself/);
  }
});

test("a symlink out of the workspace is neither written nor edited through", async () => {
  assert.equal((await writer.call("write", { path: "src/out", text: "x", overwrite: true })).outcome, "tool-error");
  assert.equal((await writer.call("edit", { path: "src/out", old_text: "outside", new_text: "x" })).outcome, "tool-error");
  assert.equal(await readFile(join(folder, "secret.txt"), "utf8"), "outside\n");
});
