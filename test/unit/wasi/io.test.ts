import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { defaultWasiBudgets } from "../../../src/host/wasi/call-context.ts";
import { systemClock } from "../../../src/host/wasi/clock.ts";
import { createWasi } from "../../../src/host/wasi/create.ts";
import { asyncImportNames } from "../../../src/host/wasi/provided.ts";
import { decodeComponent } from "../../../src/wit/decode.ts";
import { probeOf, reaching } from "./probe.ts";

const wasi = createWasi({ environment: {}, mounts: [], allowedHosts: [], dial: async () => [], log: () => undefined });

describe("what a component may import", async () => {
  const { imports } = decodeComponent(await readFile(new URL("../../fixtures/wasi/probe.wasm", import.meta.url)));

  it("is all that the probe imports", () => {
    for (const { id, functions, resources } of imports) {
      for (const name of [...functions, ...resources]) assert.ok(wasi.provides(id, name), `${id} ${name}`);
    }
    assert.deepEqual(
      Object.keys(wasi.importsFor(imports)).sort(),
      imports
        .filter(({ kind }) => kind === "instance")
        .map(({ id }) => id)
        .sort(),
    );
  });

  const cases: [id: string, name: string, verdict: boolean][] = [
    ["wasi:io/poll@0.2.0", "poll", true],
    ["wasi:io/poll@0.2.12", "[method]pollable.block", true],
    ["wasi:io/poll@0.2.12", "pollable", true],
    ["wasi:io/poll@0.3.0", "poll", false],
    ["wasi:io/poll@0.2.0-rc-2023-11-10", "poll", false],
    ["wasi:io/poll", "poll", false],
    ["other:io/poll@0.2.0", "poll", false],
    ["wasi:io/poll@0.2.0", "[method]pollable.explode", false],
    ["wasi:io/poll@0.2.0", "constructor", false],
    ["wasi:io/poll@0.2.0", "[method]pollable.constructor", false],
    ["wasi:io/poll@0.2.0", "[method]pollable.to-string", false],
    ["wasi:http/types@0.2.6", "[constructor]fields", true],
    ["wasi:http/types@0.2.6", "[static]fields.from-list", true],
    ["wasi:http/types@0.2.6", "[method]outgoing-request.set-authority", true],
    ["wasi:http/types@0.2.6", "[method]incoming-request.headers", true],
    ["wasi:http/types@0.2.6", "http-error-code", true],
    ["wasi:http/outgoing-handler@0.2.6", "handle", true],
    ["wasi:sockets/tcp@0.2.6", "[method]tcp-socket.start-connect", true],
    ["wasi:sockets/tcp-create-socket@0.2.6", "create-tcp-socket", true],
    ["wasi:cli/exit@0.2.6", "exit-with-code", true],
    ["wasi:cli/command@0.2.6", "run", false],
    ["wasi:keyvalue/store@0.2.0", "open", false],
    ["wasi:constructor/prototype@0.2.0", "x", false],
  ];
  for (const [id, name, verdict] of cases)
    it(`${id} ${name}: ${verdict ? "provided" : "not"}`, () => assert.equal(wasi.provides(id, name), verdict));

  it("suspends only in components that can send requests", () => {
    assert.deepEqual(asyncImportNames(imports).sort(), [
      "wasi:io/poll@0.2.4#[method]pollable.block",
      "wasi:io/poll@0.2.4#poll",
      "wasi:io/streams@0.2.4#[method]input-stream.blocking-read",
      "wasi:io/streams@0.2.4#[method]output-stream.blocking-write-and-flush",
    ]);
    assert.deepEqual(asyncImportNames(imports.filter(({ id }) => !id.startsWith("wasi:http/outgoing-handler"))), []);
  });

  it("has no way to a socket or a name", () => {
    const sockets = ["tcp-create-socket", "udp-create-socket", "ip-name-lookup"].map((name) => ({
      id: `wasi:sockets/${name}@0.2.0`,
      kind: "instance" as const,
      functions: [],
      resources: [],
    }));
    const made = wasi.importsFor(sockets) as Record<string, Record<string, () => unknown>>;
    for (const [id, name] of [
      ["wasi:sockets/tcp-create-socket@0.2.0", "createTcpSocket"],
      ["wasi:sockets/udp-create-socket@0.2.0", "createUdpSocket"],
      ["wasi:sockets/ip-name-lookup@0.2.0", "resolveAddresses"],
    ] as const) {
      assert.throws(() => made[id]?.[name]?.(), { payload: "access-denied" });
    }
  });
});

describe("a component", async () => {
  const make = await probeOf("probe.wasm");

  it("sees the granted environment, no arguments and an empty input", async () => {
    const run = make({ environment: { GITHUB_API_URL: "https://api.github.com" } });
    assert.deepEqual(await run.call("environment"), [["GITHUB_API_URL", "https://api.github.com"]]);
    assert.deepEqual(await run.call("programArguments"), []);
    assert.equal(await run.call("readInput"), "0 bytes");
  });

  it("writes lines to the log, a cut character whole and the last one without its end", async () => {
    const run = make();
    await run.call("print", "one\ntw", 1);
    await run.call("print", "o 😀\n", 1);
    await run.call("printError", "three");
    run.dispose();
    assert.deepEqual(run.lines, [
      { stream: "stdout", text: "one", cut: false },
      { stream: "stdout", text: "two 😀", cut: false },
      { stream: "stderr", text: "three", cut: false },
    ]);
  });

  it("can flood neither the log nor the memory with lines", async () => {
    const run = make({ budgets: { ...defaultWasiBudgets, logLines: 3, logLineLength: 10 } });
    await run.call("print", `${"x".repeat(1000)}\n`, 1000);
    run.dispose();
    assert.deepEqual(run.lines, [
      { stream: "stdout", text: `${"x".repeat(10)}…`, cut: false },
      { stream: "stdout", text: `${"x".repeat(10)}…`, cut: false },
      { stream: "stdout", text: `${"x".repeat(10)}…`, cut: true },
    ]);
    const endless = make({ budgets: { ...defaultWasiBudgets, logLineLength: 10 } });
    await endless.call("print", "y".repeat(4096), 2000);
    endless.dispose();
    assert.deepEqual(endless.lines, [{ stream: "stdout", text: `${"y".repeat(10)}…`, cut: false }]);
  });

  it("is told the time that the host gives it", async () => {
    const clock = { ...systemClock, wall: () => 1_700_000_000_000_000_000n, monotonic: () => 42n };
    const run = make({ clock });
    assert.equal(await run.call("wallClock"), 1_700_000_000n);
    assert.equal(await run.call("monotonicClock"), 42n);
  });

  it("waits for timers, the first of several", async () => {
    const run = make();
    assert.ok(((await run.call("sleep", 2_000_000n)) as bigint) >= 2_000_000n);
    assert.deepEqual([...((await run.call("pollTimers", BigUint64Array.of(60_000_000_000n, 50_000_000_000n, 0n))) as Uint32Array)], [2]);
    assert.deepEqual([...((await run.call("pollTimers", BigUint64Array.of(60_000_000_000n, 1_000_000n))) as Uint32Array)], [1]);
    run.dispose();
  });

  it("that polls nothing is ended", async () => {
    await assert.rejects(make().call("pollTimers", new BigUint64Array()), { code: "PollOfNothing" });
  });

  it("gets random bytes, bounded", async () => {
    const run = make({ random: (into) => into.fill(7) });
    assert.deepEqual(await run.call("random", 3n), Uint8Array.of(7, 7, 7));
    assert.deepEqual([...((await run.call("randomNumbers")) as BigUint64Array)], Array(4).fill(0x0707070707070707n));
    await assert.rejects(make().call("random", 2n ** 40n), { code: "RandomTooLong" });
  });

  it("that exits says so", async () => {
    await assert.rejects(make().call("leave", true), { name: "ComponentExit", status: 0 });
    await assert.rejects(make().call("leave", false), { name: "ComponentExit", status: 1 });
  });

  it("keeps nothing running after its call ended", async () => {
    const run = make(reaching([]));
    void run.call("sleep", 3_600_000_000_000n).catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    run.dispose();
    // The test runner would wait an hour for a timer that is left.
  });
});

describe("a component that sends no requests", async () => {
  const make = await probeOf("quiet.wasm");

  it("waits without suspending: its exports give values, no promises", async () => {
    const run = make();
    assert.ok(((await run.call("sleep", 2_000_000n)) as bigint) >= 2_000_000n);
    assert.deepEqual([...((await run.call("pollTimers", BigUint64Array.of(60_000_000_000n, 1_000_000n))) as Uint32Array)], [1]);
  });
});
