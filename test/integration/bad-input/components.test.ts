import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fixture } from "../host-under-test.ts";
import { type ServedFolder, serveFolder, workload } from "./served-folder.ts";

const mission = fixture("mission.wasm");
const preamble = [0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0];

const cut = (share: number): Uint8Array => mission.subarray(0, Math.floor(mission.length * share));
const flipped = (at: number, bit: number): Uint8Array => {
  const bytes = Uint8Array.from(mission);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
  return bytes;
};

/** Refused while it is read: no process is started for it. */
const unreadable: Record<string, { bytes: Uint8Array; code: string; says: RegExp }> = {
  empty: { bytes: new Uint8Array(), code: "NotWasm", says: /not WebAssembly/ },
  text: { bytes: Buffer.from("#!/bin/sh\nexit 1\n"), code: "NotWasm", says: /not WebAssembly/ },
  "core-module": { bytes: fixture("wat/core-module.wasm"), code: "CoreModule", says: /component new/ },
  "cut-in-preamble": { bytes: mission.subarray(0, 6), code: "ComponentMalformed", says: /file ends/ },
  "cut-early": { bytes: cut(0.1), code: "ComponentMalformed", says: /only \d+ are left/ },
  "cut-in-half": { bytes: cut(0.5), code: "ComponentMalformed", says: /only \d+ are left/ },
  "cut-at-the-end": { bytes: mission.subarray(0, mission.length - 1), code: "ComponentMalformed", says: /only \d+ are left/ },
  "nested-types": { bytes: fixture("wat/nested-types.wasm"), code: "ComponentTooDeep", says: /deeper than the 100/ },
  "two-gigabytes": {
    bytes: Uint8Array.from([...preamble, 7, 0xff, 0xff, 0xff, 0xff, 0x07, 1, 2, 3]),
    code: "ComponentMalformed",
    says: /2147483647 bytes, but only 3 are left/,
  },
  "doubling-type": { bytes: fixture("wat/doubling-type.wasm"), code: "ComponentTooLarge", says: /parts/ },
};

/** Readable, and refused by its host. */
const unrunnable: Record<string, { bytes: Uint8Array; code: string; says: RegExp }> = {
  "missing-import": { bytes: fixture("wat/missing-import.wasm"), code: "ImportNotGranted", says: /example:nowhere\/door@1\.0\.0#open/ },
  "gc-arrays": { bytes: fixture("wat/gc-arrays.wasm"), code: "ComponentUnsupported", says: /garbage-collected/ },
};

/** One bit each, in the parts of the file that its name says. A flip in code may leave a program that is merely another. */
const flips: Record<string, Uint8Array> = {
  "flip-in-version": flipped(4, 1),
  "flip-in-module-header": flipped(0x0e, 3),
  "flip-in-code": flipped(0x1000, 4),
  "flip-in-types": flipped(0x4660, 6),
  "flip-in-docs": flipped(mission.length - 434, 7),
};

describe("components that are none, beside one that is served", () => {
  let served: ServedFolder;
  before(async () => {
    served = await serveFolder("mission", () => true);
  });
  after(() => served?.close());

  interface Seen {
    readonly key: { readonly workload: string };
    readonly fault: { readonly code: string; readonly message: string } | null;
    readonly offered: number;
    readonly notOffered: readonly { readonly function: string; readonly reason: string }[];
  }

  /** Adds a Workload for each, and gives what `up` says of them once it has looked. */
  const add = async (bytes: Readonly<Record<string, Uint8Array>>): Promise<Map<string, Seen>> => {
    const since = served.up.events.length;
    for (const [name, content] of Object.entries(bytes)) await writeFile(join(served.folder, `${name}.wasm`), content);
    const manifests = Object.keys(bytes).map((name) => workload(name, `${name}.wasm`));
    await writeFile(join(served.folder, `${Object.keys(bytes)[0]}.yaml`), manifests.join("---\n"));
    const seen = new Map<string, Seen>();
    await served.up.waitFor((event) => {
      if (event.event !== "settled") return false;
      for (const one of event.components as Seen[]) seen.set(one.key.workload, one);
      return Object.keys(bytes).every((name) => seen.has(name));
    }, since);
    return seen;
  };
  const bytesOf = (cases: Record<string, { bytes: Uint8Array }>) =>
    Object.fromEntries(Object.entries(cases).map(([name, { bytes }]) => [name, bytes]));
  const hostEnd = (name: string) =>
    served.up.waitFor(({ event, key }) => /^host-(failed|ready)$/.test(event) && (key as Seen["key"]).workload === name, 0);

  const stillServed = async () => {
    assert.equal((await served.call("list_issues", { repo: "octo/spoon", state: "open" })).outcome, "ok");
    assert.deepEqual(
      served.up.events.filter(({ event }) => event === "fault"),
      [],
    );
    const pids = served.up.events.filter(({ event, key }) => event === "host-ready" && (key as Seen["key"]).workload === "tool");
    assert.equal(pids.length, 1, "the good tool's host was never started again");
  };

  test("each that can't be read is told with its code, and the good one is served", async () => {
    const seen = await add(bytesOf(unreadable));
    for (const [name, { code, says }] of Object.entries(unreadable)) {
      const fault = seen.get(name)?.fault;
      assert.equal(fault?.code, code, `${name}: ${fault?.message}`);
      assert.match(fault?.message ?? "", says, name);
    }
    await stillServed();
  });

  test("each that its host refuses is told with its code, an ungranted import by its name, and the good one is served", async () => {
    await add(bytesOf(unrunnable));
    for (const [name, { code, says }] of Object.entries(unrunnable)) {
      const event = await hostEnd(name);
      assert.deepEqual([event.event, event.code, event.retryInMs], ["host-failed", code, null], JSON.stringify(event));
      assert.match(String(event.message), says, name);
    }
    await stillServed();
  });

  test("each with one bit flipped is refused with a code, or runs as what it is, and the good one is served", async () => {
    const seen = await add(flips);
    let refused = 0;
    for (const name of Object.keys(flips)) {
      const one = seen.get(name);
      const end = one && one.fault === null && one.offered > 0 ? await hostEnd(name) : null;
      const code = one?.fault?.code ?? end?.code;
      if (code === undefined) continue;
      refused++;
      assert.match(String(code), /^(Component[A-Za-z]+|DocsMalformed|NotWasm|ImportNotGranted)$/, `${name}: ${JSON.stringify(end ?? one)}`);
    }
    assert.ok(refused >= 3, `only ${refused} of the flips were refused`);
    await stillServed();
  });

  test("one whose exports jco can't load offers nothing and says why, and the good one is served", async () => {
    const names = { "name-arguments": "arguments", "name-acronym": "get-URL" };
    const seen = await add(Object.fromEntries(Object.keys(names).map((name) => [name, fixture(`wat/${name}.wasm`)])));
    for (const [name, fn] of Object.entries(names)) {
      const one = seen.get(name);
      assert.equal(one?.offered, 0);
      assert.match(one?.notOffered[0]?.reason ?? "", new RegExp(`jco cannot load one that exports a function named ${fn}`));
    }
    await stillServed();
  });
});
