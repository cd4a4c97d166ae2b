import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { fixture, type HostAnswer, type HostUnderTest, startHost } from "../host-under-test.ts";

const mebibyte = 1024 * 1024;
const attack = (name: string) => ({ interface: "ambit:hostile/attacks@0.1.0", function: name });
const attempt = (name: string) => ({ interface: "ambit:intruder/attempts@0.1.0", function: name });
const worldFunction = (name: string) => ({ interface: null, function: name });

const failedWith = ({ status, body }: HostAnswer, code: string, text: RegExp): void => {
  assert.deepEqual([status, body.outcome, body.code, body.ran], [200, "failed", code, true], JSON.stringify(body).slice(0, 300));
  assert.match(body.text, text);
};

describe("a guest that prints and exits", () => {
  let host: HostUnderTest;
  before(async () => {
    host = await startHost({ component: fixture("intruder.wasm"), limits: { timeoutMs: 2_000 } });
  });
  after(() => host?.stop());
  /** Whatever it did, the next call is answered by the same process, and nothing of the ended call is heard any more. */
  afterEach(async () => {
    assert.equal((await host.call(attempt("mounts"), {})).body.outcome, "ok");
    host.lines.length = 0;
  });

  const printed = () => host.lines.map((line) => (JSON.parse(line) as { guest: { stream: string; text: string; cut: boolean } }).guest);

  it("is heard, line by line", async () => {
    await host.call(attempt("print"), { text: "one\ntwo" });
    await host.call(attempt("print-error"), { text: "three" });
    assert.deepEqual(
      printed().map(({ stream, text }) => [stream, text]),
      [
        ["stdout", "one"],
        ["stdout", "two"],
        ["stderr", "three"],
      ],
    );
  });

  it("floods stdout: the log takes 200 lines and says that it was cut", async () => {
    assert.equal((await host.call(attempt("flood-stdout"), { lines: 1_000 })).body.outcome, "ok");
    const lines = printed();
    assert.equal(lines.length, 200);
    assert.deepEqual([lines.at(-1)?.cut, lines.at(-2)?.cut], [true, false]);
  });

  it("floods stdout without end: its deadline ends it", async () => {
    failedWith(await host.call(attempt("flood-stdout-for-ever"), {}), "Deadline", /within 2 s/);
    assert.ok(printed().length <= 200);
  });

  for (const success of [true, false]) {
    it(`exits with ${success ? "success" : "failure"}: its call fails, its host stays`, async () => {
      failedWith(await host.call(attempt("exit"), { success }), "Exited", /exit/);
      assert.equal(host.child.exitCode, null);
    });
  }

  it("sleeps past its deadline", async () => {
    failedWith(await host.call(attempt("sleep"), { milliseconds: 60_000 }), "Deadline", /within 2 s/);
  });
});

describe("a guest that returns more than its host may hold", () => {
  it("100 MB are not copied, whatever memory it was given to make them in", async () => {
    const host = await startHost({
      component: fixture("hostile.wasm"),
      limits: { timeoutMs: 10_000, memoryBytes: 512 * mebibyte, concurrency: 1 },
    });
    try {
      for (const name of ["return-bytes", "return-text"]) {
        const args = name === "return-bytes" ? { count: 100_000_000 } : { length: 100_000_000 };
        failedWith(await host.call(attack(name), args), "ResultTooLarge", /1048576 bytes/);
        assert.equal((await host.call(attack("echo"), { text: "still here" })).body.text, "still here");
      }
    } finally {
      await host.stop();
    }
  });

  it("a hundred aliases of one buffer are charged a hundred times", async () => {
    const host = await startHost({ component: fixture("wat/aliases.wasm"), limits: { timeoutMs: 5_000, memoryBytes: 64 * mebibyte } });
    try {
      for (const name of ["byte-lists", "texts", "number-lists"]) {
        // Each alias of the smaller buffer is far below the cap; only all of them together are above. (Its bytes are no booleans.)
        for (const size of name === "number-lists" ? [mebibyte] : [mebibyte, 25_000]) {
          failedWith(await host.call(worldFunction(name), { count: 100, size }), "ResultTooLarge", /1048576 bytes/);
        }
        const { body } = await host.call(worldFunction(name), { count: 2, size: 0 });
        assert.equal(body.outcome, "ok", JSON.stringify(body));
      }
    } finally {
      await host.stop();
    }
  });
});

describe("a guest that takes what is not its memory", () => {
  it("grows tables to what a component may have, and its host answers on", async () => {
    const host = await startHost({ component: fixture("wat/table-grow.wasm"), limits: { timeoutMs: 5_000 } });
    try {
      const reached = async () => (await host.call(worldFunction("grow-until-refused"), { step: 1000 })).body.structured.result;
      assert.ok((await reached()) <= 1_000_000);
      assert.equal((await host.call(worldFunction("grow"), { by: 4_000_000_000 })).body.structured.result, -1);
      assert.equal((await host.call(worldFunction("grow"), { by: 1 })).body.structured.result, 1);
    } finally {
      await host.stop();
    }
  });

  it("breaks what its types say: the call fails, the next one is answered", async () => {
    const host = await startHost({ component: fixture("wat/lies.wasm"), limits: { timeoutMs: 5_000 } });
    try {
      const lies = [
        "text-beyond-memory",
        "list-beyond-memory",
        "huge-text",
        "huge-list",
        "text-not-utf8",
        "surrogate",
        "beyond-unicode",
        "unknown-case",
        "result-out-of-bounds",
      ];
      for (const name of lies) {
        const { status, body } = await host.call(worldFunction(name), {});
        assert.deepEqual([status, body.outcome, body.ran], [200, "failed", true], `${name}: ${JSON.stringify(body)}`);
        assert.ok(["Trap", "ResultTooLarge"].includes(body.code), `${name}: ${body.code}`);
      }
      assert.equal((await host.request("GET", "/readyz")).status, 200);
    } finally {
      await host.stop();
    }
  });
});

describe("a guest whose functions have names that mean something to JavaScript", () => {
  it("is called like any other", async () => {
    const host = await startHost({ component: fixture("wat/awkward-names.wasm") });
    try {
      for (const name of ["then", "constructor", "prototype", "to-string", "has-own-property", "default", "await"]) {
        assert.equal((await host.call(worldFunction(name), {})).body.structured?.result, 1, name);
      }
      assert.equal((await host.call(worldFunction("value-of"), {})).body.code, "FunctionUnknown");
    } finally {
      await host.stop();
    }
  });
});
