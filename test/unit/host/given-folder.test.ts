import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { GuestEnvironments } from "../../../src/host/given/environment.ts";
import { folderStamp, readGivenFolder } from "../../../src/host/given/folder.ts";

const place = mkdtempSync(join(tmpdir(), "ambit-given-"));
after(() => rmSync(place, { recursive: true, force: true }));

const made = (): { readonly name: string; readonly folder: string; readonly as: "environment" } => ({
  name: "s",
  folder: mkdtempSync(join(place, "folder-")),
  as: "environment",
});

const texts = (given: ReturnType<typeof made>): Record<string, string | null> =>
  Object.fromEntries(readGivenFolder(given).files.map(({ name, bytes }) => [name, bytes && new TextDecoder().decode(bytes)]));

describe("a folder that is read for a guest", () => {
  test("gives plain files by name, and nothing whose name begins with a dot", () => {
    const given = made();
    for (const name of ["B", "A", ".hidden"]) writeFileSync(join(given.folder, name), name);
    assert.deepEqual(texts(given), { A: "A", B: "B" });
  });

  test("gives no link, no folder and no pipe as a file, and waits for none", () => {
    const given = made();
    writeFileSync(join(place, "outside"), "outside");
    symlinkSync(join(place, "outside"), join(given.folder, "LINK"));
    mkdirSync(join(given.folder, "FOLDER"));
    execFileSync("mkfifo", [join(given.folder, "PIPE")]);
    assert.deepEqual(texts(given), { FOLDER: null, LINK: null, PIPE: null });
  });

  test("takes no link of kubelet's name that leads elsewhere", () => {
    const given = made();
    const elsewhere = made();
    writeFileSync(join(elsewhere.folder, "A"), "outside");
    writeFileSync(join(given.folder, "A"), "inside");
    symlinkSync(elsewhere.folder, join(given.folder, "..data"));
    assert.deepEqual(texts(given), { A: "inside" });
    unlinkSync(join(given.folder, "..data"));
    symlinkSync(elsewhere.folder, join(given.folder, "..2026"));
    symlinkSync("..2026", join(given.folder, "..data"));
    assert.deepEqual(texts(given), { A: "inside" });
  });

  test("has another stamp when a file is replaced by one of the same size", () => {
    const given = made();
    writeFileSync(join(given.folder, "A"), "one");
    const before = folderStamp(given);
    assert.equal(folderStamp(given), before);
    writeFileSync(join(given.folder, "next"), "two");
    renameSync(join(given.folder, "next"), join(given.folder, "A"));
    assert.notEqual(folderStamp(given), before);
  });

  test("that is not there is said by its name", () => {
    const given = { name: "the Secret s", folder: join(place, "gone"), as: "environment" } as const;
    assert.throws(() => readGivenFolder(given), {
      code: "GivenFolderUnreadable",
      message: "the folder of the Secret s can't be read (ENOENT)",
    });
  });
});

describe("the environment of guests", () => {
  test("is current until a folder changes, and the same object's values stay as they were", () => {
    const given = made();
    writeFileSync(join(given.folder, "A"), "one");
    const environments = new GuestEnvironments({ environment: { A: "configured", B: "b" }, secretFolders: [given] });
    const first = environments.now();
    assert.deepEqual([first.variables, first.isCurrent()], [{ A: "one", B: "b" }, true]);
    writeFileSync(join(given.folder, "A"), "another");
    assert.equal(first.isCurrent(), false);
    assert.deepEqual(environments.now().variables, { A: "another", B: "b" });
    assert.deepEqual(first.variables, { A: "one", B: "b" });
  });

  test("without folders is always current", () => {
    const { variables, isCurrent } = new GuestEnvironments({ environment: { A: "a" } }).now();
    assert.deepEqual([variables, isCurrent()], [{ A: "a" }, true]);
  });
});
