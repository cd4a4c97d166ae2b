import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fixture, type HostUnderTest, startHost } from "./host-under-test.ts";

const mebibyte = 1024 * 1024;
const attack = (name: string) => ({ interface: "ambit:hostile/attacks@0.1.0", function: name });
const asyncAttack = (name: string) => ({ interface: "ambit:hostile/async-attacks@0.1.0", function: name });
const worldFunction = (name: string) => ({ interface: null, function: name });

describe("a guest that attacks from within ends its own call alone", () => {
  let host: HostUnderTest;
  before(async () => {
    host = await startHost({ component: fixture("hostile.wasm"), limits: { timeoutMs: 1500, memoryBytes: 64 * mebibyte, concurrency: 3 } });
  });
  after(() => host.stop());

  const attacks: Record<string, { fn: { interface: string; function: string }; args?: object; code: string; text: RegExp }> = {
    spins: { fn: attack("spin"), code: "Deadline", text: /within 1.5 s/ },
    "spins asynchronously": { fn: asyncAttack("spin"), code: "Deadline", text: /within 1.5 s/ },
    "allocates without end": { fn: attack("allocate"), code: "OutOfMemory", text: /64 MiB/ },
    recurses: { fn: attack("recurse"), code: "Trap", text: /recursed too deeply/ },
    traps: { fn: attack("trap"), code: "Trap", text: /unreachable/ },
    "traps asynchronously": { fn: asyncAttack("trap"), code: "Trap", text: /unreachable/ },
    "reads beyond its memory": { fn: attack("read-out-of-bounds"), code: "Trap", text: /out of bounds/ },
    "returns too many bytes": { fn: attack("return-bytes"), args: { count: 20_000_000 }, code: "ResultTooLarge", text: /1048576 bytes/ },
    "returns too many bytes asynchronously": {
      fn: asyncAttack("return-bytes"),
      args: { count: 20_000_000 },
      code: "ResultTooLarge",
      text: /1048576 bytes/,
    },
    "returns too long a text": { fn: attack("return-text"), args: { length: 20_000_000 }, code: "ResultTooLarge", text: /1048576 bytes/ },
    "returns a text just above the cap": {
      fn: attack("return-text"),
      args: { length: mebibyte + 1 },
      code: "ResultTooLarge",
      text: /1048576/,
    },
    "returns too many texts": { fn: attack("return-texts"), args: { count: 1_000_000 }, code: "ResultTooLarge", text: /1048576 bytes/ },
    "returns too many empty lists": {
      fn: attack("return-empties"),
      args: { count: 2_000_000 },
      code: "ResultTooLarge",
      text: /1048576 bytes/,
    },
    "fails with too long a reason": {
      fn: attack("fail-at-length"),
      args: { length: 20_000_000 },
      code: "ResultTooLarge",
      text: /1048576 bytes/,
    },
  };
  for (const [name, { fn, args, code, text }] of Object.entries(attacks)) {
    it(`${name}: ${code}`, async () => {
      const { status, body } = await host.call(fn, args ?? {});
      assert.deepEqual([status, body.outcome, body.code, body.ran], [200, "failed", code, true]);
      assert.match(body.text, text);
      assert.equal((await host.call(attack("echo"), { text: "still here" })).body.text, "still here");
    });
  }

  it("may return exactly as much as the cap allows", async () => {
    const { body } = await host.call(attack("return-text"), { length: mebibyte - 100 });
    assert.equal(body.outcome, "ok");
    assert.equal(body.text.length, mebibyte - 100);
  });

  it("grows its memory to the cap and no further", async () => {
    assert.equal((await host.call(attack("grow-memory"), {})).body.structured.result, 1024);
  });

  it("does not hold up others while it spins", async () => {
    const spinning = host.call(attack("spin"), {});
    for (let i = 0; i < 5; i++) {
      assert.equal((await host.call(attack("echo"), { text: `call ${i}` })).body.text, `call ${i}`);
    }
    assert.equal((await spinning).body.code, "Deadline");
  });

  it("leaves every other call whole while all attack at once", async () => {
    const calls = [
      ...Object.values(attacks).map(({ fn, args }) => host.call(fn, args ?? {})),
      ...Array.from({ length: 10 }, (_, i) => host.call(attack("echo"), { text: `amid ${i}` })),
    ];
    const answers = await Promise.all(calls);
    const echoes = answers.slice(-10).map(({ body }) => body.text ?? body.code);
    for (const [i, text] of echoes.entries()) assert.ok(text === `amid ${i}` || /busy/.test(text), text);
    assert.equal((await host.call(attack("echo"), { text: "after" })).body.text, "after");
  });

  it("gives its memory back after its call", async () => {
    for (let i = 0; i < 6; i++) await host.call(attack("allocate"), {});
    await until(async () => {
      await host.call(attack("echo"), { text: "tick" });
      return host.residentBytes() < 350 * mebibyte;
    });
  });
});

describe("a component that escapes a naive limit", () => {
  const running = async (file: string, use: (host: HostUnderTest) => Promise<void>): Promise<void> => {
    const host = await startHost({ component: fixture(file), limits: { timeoutMs: 5000, memoryBytes: 64 * mebibyte } });
    try {
      await use(host);
    } finally {
      await host.stop();
    }
  };

  it("by naming one buffer a hundred times is charged for each copy as it is made", async () => {
    await running("wat/aliases.wasm", async (host) => {
      for (const name of ["byte-lists", "texts", "number-lists"]) {
        const { body } = await host.call(worldFunction(name), { count: 100, size: 16 * mebibyte });
        assert.equal(body.code, "ResultTooLarge", name);
      }
      const { body } = await host.call(worldFunction("texts"), { count: 3, size: 2 });
      assert.deepEqual(body.structured.result, ["aa", "aa", "aa"]);
      assert.ok(host.residentBytes() < 400 * mebibyte, `${host.residentBytes()}`);
    });
  });

  it("by growing tables is stopped at the elements a component may have", async () => {
    await running("wat/table-grow.wasm", async (host) => {
      const { body } = await host.call(worldFunction("grow-until-refused"), { step: 1000 });
      assert.ok(body.structured.result <= 1_000_000, JSON.stringify(body));
      assert.equal((await host.call(worldFunction("grow"), { by: 1_000_000_000 })).body.structured.result, -1);
    });
  });

  it("by having twenty memories shares one cap among them", async () => {
    await running("wat/twenty-instances.wasm", async (host) => {
      const { body } = await host.call(worldFunction("grow"), { pages: 51 - 1 });
      assert.ok(body.structured.result * 64 * 1024 <= 64 * mebibyte, JSON.stringify(body));
    });
  });
});

describe("a component that can't be run is refused when it is delivered", () => {
  const refusals: Record<string, { file: string; status: number; code: string; message: RegExp }> = {
    "a core module": { file: "wat/core-module.wasm", status: 422, code: "CoreModule", message: /not a component/ },
    "garbage-collected arrays": { file: "wat/gc-arrays.wasm", status: 422, code: "ComponentUnsupported", message: /garbage-collected/ },
    "a memory above the cap at its start": {
      file: "wat/large-memory.wasm",
      status: 409,
      code: "ComponentNeedsMoreMemory",
      message: /4096 MiB/,
    },
    "a table above the cap at its start": { file: "wat/large-table.wasm", status: 409, code: "ComponentNeedsMoreMemory", message: /table/ },
    "twenty memories in one module": { file: "wat/twenty-memories.wasm", status: 422, code: "ComponentUnsupported", message: /memories/ },
    "an import that no one grants": {
      file: "wat/missing-import.wasm",
      status: 409,
      code: "ImportNotGranted",
      message: /example:nowhere\/door@1\.0\.0#open/,
    },
    "a function that our WASI has not": {
      file: "wat/missing-function.wasm",
      status: 409,
      code: "ImportNotGranted",
      message: /wasi:clocks\/wall-clock@0\.2\.99#tomorrow/,
    },
    "a function imported by the world": { file: "wat/missing-world-function.wasm", status: 409, code: "ImportNotGranted", message: /ask/ },
    "a start that traps": { file: "wat/start-trap.wasm", status: 500, code: "ComponentUnstartable", message: /unreachable/ },
    "a start that spins": { file: "wat/start-spin.wasm", status: 500, code: "ComponentUnstartable", message: /within/ },
    "a type that doubles at each step": { file: "wat/doubling-type.wasm", status: 422, code: "ComponentTooLarge", message: /parts/ },
  };
  for (const [name, { file, status, code, message }] of Object.entries(refusals)) {
    it(`${name}: ${code}`, async () => {
      const host = await startHost({ component: fixture(file), limits: { timeoutMs: 1000 }, deliver: "nothing" });
      try {
        const answer = await host.request("PUT", "/v1/component", fixture(file));
        assert.deepEqual([answer.status, answer.body.code], [status, code], answer.body.message);
        assert.match(answer.body.message, message);
        assert.deepEqual((await host.request("GET", "/readyz")).body.missing, ["keys", "component"]);
      } finally {
        await host.stop();
      }
    });
  }
});

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error("it did not come true within 20 s");
    await new Promise((resolve) => setImmediate(resolve));
  }
};
