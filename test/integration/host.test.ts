import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { sha256Of } from "../../src/api/digest.ts";
import type { TicketClaims } from "../../src/api/ticket.ts";
import { fixture, type HostUnderTest, startHost, temporaryFolder } from "./host-under-test.ts";

const mission = fixture("mission.wasm");
const hostile = fixture("hostile.wasm");
const listIssues = { interface: "example:github/issues", function: "list-issues" };
const attack = (name: string) => ({ interface: "ambit:hostile/attacks@0.1.0", function: name });

describe("a host with its component", () => {
  let host: HostUnderTest;
  before(async () => {
    host = await startHost({ component: mission });
  });
  after(() => host.stop());

  it("is ready and says who it is", async () => {
    assert.deepEqual((await host.request("GET", "/readyz")).body, { ready: true, missing: [] });
    const { body } = await host.request("GET", "/v1/boot");
    assert.deepEqual(body, { boot: host.boot, component: sha256Of(mission), pod: "pod-under-test", hasComponent: true });
  });

  it("answers a call with text and structured data", async () => {
    const { status, body } = await host.call(listIssues, { repo: "octo/spoon", state: "open" });
    assert.equal(status, 200);
    assert.equal(body.outcome, "ok");
    assert.deepEqual(JSON.parse(body.text), body.structured.result);
    assert.ok(body.stats.runMs > 0);
  });

  it("carries the function's own error as text", async () => {
    const { body } = await host.call(listIssues, { repo: "no/such", state: "open" });
    assert.equal(body.outcome, "tool-error");
    assert.deepEqual(JSON.parse(body.text), { tag: "not-found", val: "no/such" });
  });

  it("refuses arguments of the wrong type before anything runs", async () => {
    const { status, body } = await host.call(listIssues, { repo: "octo/spoon", state: "ajar" });
    assert.deepEqual([status, body.refused, body.code], [422, true, "ArgumentInvalid"]);
    assert.match(body.message, /\/state/);
  });

  it("refuses text that is no JSON", async () => {
    assert.deepEqual((await host.call(listIssues, "{")).body.code, "JsonSyntax");
    const duplicated = '{"repo":"a","repo":"b","state":"open"}';
    assert.deepEqual((await host.call(listIssues, duplicated)).body.code, "JsonDuplicateKey");
  });

  it("refuses a function that the component has not", async () => {
    const { status, body } = await host.call({ ...listIssues, function: "drop-table" }, {});
    assert.deepEqual([status, body.code], [409, "FunctionUnknown"]);
  });

  const args = JSON.stringify({ repo: "octo/spoon", state: "open" });
  const tickets: Record<string, { change?: Partial<TicketClaims>; ticket?: string; status: number; code: string }> = {
    "without a ticket": { ticket: "", status: 401, code: "TicketMissing" },
    "with a ticket for other arguments": { change: { body: sha256Of("{}") }, status: 401, code: "TicketBodyMismatch" },
    "with a ticket that has expired": {
      change: { iat: Date.now() - 100_000, exp: Date.now() - 50_000 },
      status: 401,
      code: "TicketExpired",
    },
    "with a ticket for another pod": { change: { pod: "other" }, status: 401, code: "TicketMisdirected" },
    "with a ticket for an earlier start of this host": { change: { boot: "other" }, status: 401, code: "TicketMisdirected" },
    "with a ticket for other code": { change: { component: sha256Of("other") }, status: 401, code: "TicketMisdirected" },
  };
  for (const [name, { change, ticket, status, code }] of Object.entries(tickets)) {
    it(`refuses a call ${name}`, async () => {
      const answer = await host.request("POST", "/v1/call", args, { "ambit-ticket": ticket ?? host.ticketFor(args, listIssues, change) });
      assert.deepEqual([answer.status, answer.body.refused, answer.body.code], [status, true, code]);
    });
  }

  it("runs a ticket once, even if it comes twice at the same time", async () => {
    const headers = { "ambit-ticket": host.ticketFor(args, listIssues) };
    const answers = await Promise.all([1, 2, 3].map(() => host.request("POST", "/v1/call", args, headers)));
    assert.deepEqual(answers.map(({ body }) => body.outcome ?? body.code).sort(), ["TicketUsed", "TicketUsed", "ok"]);
  });

  it("does not use up a ticket that came with other arguments", async () => {
    const headers = { "ambit-ticket": host.ticketFor(args, listIssues) };
    assert.equal((await host.request("POST", "/v1/call", "{}", headers)).body.code, "TicketBodyMismatch");
    assert.equal((await host.request("POST", "/v1/call", args, headers)).body.outcome, "ok");
  });

  it("answers no other path", async () => {
    assert.equal((await host.request("GET", "/v1/call")).status, 404);
    assert.equal((await host.request("GET", "/../etc/passwd")).status, 404);
  });

  it("refuses arguments that are too long to read", async () => {
    const long = `{"repo":"${"a".repeat(2 * 1024 * 1024)}","state":"open"}`;
    assert.equal((await host.call(listIssues, long)).body.code, "JsonTooLong");
  });
});

describe("a character in an asynchronous function", () => {
  it("comes back whole, whatever plane it is of", async () => {
    const host = await startHost({ component: fixture("echo.wasm") });
    try {
      for (const value of ["a", "\0", "\uffff", "😀", "\u{10ffff}"]) {
        for (const id of ["ambit:echo/sync@0.1.0", "ambit:echo/async-echo@0.1.0"]) {
          const { body } = await host.call({ interface: id, function: "echo-char" }, { value });
          assert.deepEqual([body.outcome, body.text], ["ok", value], id);
        }
      }
    } finally {
      await host.stop();
    }
  });
});

describe("a host that waits for its deliveries", () => {
  let host: HostUnderTest;
  before(async () => {
    host = await startHost({ component: mission, deliver: "nothing", config: { resolver: "table", cacheFolder: temporaryFolder() } });
  });
  after(() => host.stop());

  const put = async (path: string, body: string | Uint8Array): Promise<[number, string]> => {
    const answer = await host.request("PUT", path, body);
    return [answer.status, answer.body.code ?? "taken"];
  };

  it("says what is missing and takes no calls", async () => {
    assert.deepEqual((await host.request("GET", "/readyz")).body.missing, ["keys", "addresses", "component"]);
    const { status, body } = await host.call(listIssues, {});
    assert.deepEqual([status, body.code], [503, "NotReady"]);
  });

  it("takes only bytes of its digest", async () => {
    assert.deepEqual(await put("/v1/component", hostile), [409, "DigestMismatch"]);
  });

  it("takes only documents of its root key, of the right kind and for this start", async () => {
    const stranger = generateKeyPairSync("ed25519").privateKey;
    assert.deepEqual(await put("/v1/keys", host.signedByRoot(host.keySet(), stranger)), [401, "SignatureWrong"]);
    assert.deepEqual(await put("/v1/keys", host.signedByRoot(host.keySet({ kind: "addresses" }))), [422, "DeliveryMalformed"]);
    assert.deepEqual(await put("/v1/keys", host.signedByRoot(host.keySet({ boot: "other" }))), [409, "DeliveryMisdirected"]);
    assert.deepEqual(await put("/v1/keys", host.signedByRoot(host.keySet({ keys: [] }))), [422, "DeliveryMalformed"]);
    const rsa = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ type: "spki", format: "der" }).toString("base64");
    const foreign = host.keySet({ keys: [{ kid: "k", publicKey: rsa, notAfter: Date.now() + 1000 }] });
    assert.deepEqual(await put("/v1/keys", host.signedByRoot(foreign)), [422, "KeyMalformed"]);
    assert.deepEqual(await put("/v1/keys", "nonsense"), [422, "DeliveryMalformed"]);
    assert.deepEqual(await put("/v1/keys", "null"), [422, "DeliveryMalformed"]);
  });

  it("takes no older key set or address table than it has", async () => {
    const keys = host.signedByRoot(host.keySet());
    assert.deepEqual(await put("/v1/keys", keys), [200, "taken"]);
    assert.deepEqual(await put("/v1/keys", keys), [409, "DeliveryOutdated"]);
    const table = (version: number, addresses: unknown) =>
      host.signedByRoot({ kind: "addresses", boot: host.boot, version, table: addresses });
    assert.deepEqual(await put("/v1/addresses", table(2, { "api.example.com:443": ["192.0.2.7"] })), [200, "taken"]);
    assert.deepEqual(await put("/v1/addresses", table(2, {})), [409, "DeliveryOutdated"]);
    assert.deepEqual(await put("/v1/addresses", table(3, { "api.example.com:443": "192.0.2.7" })), [422, "DeliveryMalformed"]);
  });

  it("is ready once the component has come, which may be sent twice at once", async () => {
    const answers = await Promise.all([put("/v1/component", mission), put("/v1/component", mission)]);
    assert.deepEqual(answers, [
      [200, "taken"],
      [200, "taken"],
    ]);
    assert.equal((await host.request("GET", "/readyz")).status, 200);
    assert.equal((await host.call(listIssues, { repo: "octo/spoon", state: "open" })).body.outcome, "ok");
  });

  it("judges a ticket's age by the time that was signed for it, not by its own clock", async () => {
    const yesterday = Date.now() - 86_400_000;
    const fresh = await startHost({ component: mission, deliver: "nothing" });
    try {
      const keys = fresh.keySet({ time: yesterday });
      assert.equal((await fresh.request("PUT", "/v1/keys", fresh.signedByRoot(keys))).status, 200);
      assert.equal((await fresh.request("PUT", "/v1/component", mission)).status, 200);
      const args = JSON.stringify({ repo: "octo/spoon", state: "open" });
      const at = (iat: number) => ({ "ambit-ticket": fresh.ticketFor(args, listIssues, { iat, exp: iat + 30_000 }) });
      assert.equal((await fresh.request("POST", "/v1/call", args, at(Date.now()))).body.code, "TicketNotYetValid");
      assert.equal((await fresh.request("POST", "/v1/call", args, at(yesterday))).body.outcome, "ok");
    } finally {
      await fresh.stop();
    }
  });
});

describe("a host's cache folder", () => {
  it("brings the component back after a restart, whatever was damaged in it", async () => {
    const cacheFolder = temporaryFolder();
    const config = { cacheFolder };
    const first = await startHost({ component: mission, config });
    await first.stop();
    const compiled = readdirSync(cacheFolder).find((name) => name.includes("-") && name.startsWith(sha256Of(mission).slice(7)));
    assert.ok(compiled !== undefined);
    writeFileSync(join(cacheFolder, compiled, "component.mjs"), "throw new Error('damaged')");
    const second = await startHost({ component: mission, config, deliver: "nothing" });
    try {
      await second.request("PUT", "/v1/keys", second.signedByRoot(second.keySet()));
      await until(async () => (await second.request("GET", "/readyz")).status === 200);
      assert.equal((await second.call(listIssues, { repo: "octo/spoon", state: "open" })).body.outcome, "ok");
    } finally {
      await second.stop();
    }
  });

  it("may be shared by hosts that start at once", async () => {
    const config = { cacheFolder: temporaryFolder() };
    const hosts = await Promise.all([startHost({ component: mission, config }), startHost({ component: mission, config })]);
    const answers = await Promise.all(hosts.map((host) => host.call(listIssues, { repo: "octo/spoon", state: "open" })));
    await Promise.all(hosts.map((host) => host.stop()));
    assert.deepEqual(
      answers.map(({ body }) => body.outcome),
      ["ok", "ok"],
    );
  });
});

describe("a host under load", () => {
  let host: HostUnderTest;
  before(async () => {
    host = await startHost({ component: hostile, limits: { concurrency: 1, timeoutMs: 1500 } });
  });
  after(() => host.stop());

  it("queues calls, refuses those beyond the queue as busy, and answers every one", async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => host.call(attack("work"), { millions: 20 })));
    const outcomes = answers.map(({ body }) => (body.outcome === "failed" ? body.code : body.outcome));
    assert.equal(
      outcomes.filter((outcome) => outcome === "ok").length + outcomes.filter((outcome) => outcome === "Busy").length,
      40,
      outcomes.join(),
    );
    assert.ok(outcomes.includes("Busy"));
    for (const { body } of answers) if (body.code === "Busy") assert.equal(body.ran, false);
  });

  it("gives each call a fresh instance", async () => {
    for (let i = 0; i < 3; i++) assert.equal((await host.call(attack("calls"), {})).body.structured.result, 1);
  });

  it("keeps an instance for as many calls as it was told, and no longer", async () => {
    const reusing = await startHost({ component: hostile, config: { callsPerInstance: 2 } });
    try {
      const seen: number[] = [];
      for (let i = 0; i < 4; i++) seen.push((await reusing.call(attack("calls"), {})).body.structured.result);
      assert.deepEqual(seen, [1, 2, 1, 2]);
      await reusing.call(attack("calls"), {});
      assert.equal((await reusing.call(attack("trap"), {})).body.code, "Trap");
      assert.equal((await reusing.call(attack("calls"), {})).body.structured.result, 1);
    } finally {
      await reusing.stop();
    }
  });

  it("lets a running call finish when it is asked to end", async () => {
    const ending = await startHost({ component: hostile });
    const running = ending.call(attack("work"), { millions: 300 });
    await until(async () => (await ending.request("GET", "/healthz")).body.running === 1);
    const code = await ending.stop();
    assert.equal((await running).body.outcome, "ok");
    assert.equal(code, 0);
  });

  it("ends when whoever started it is gone", async () => {
    const orphan = await startHost({ component: hostile });
    const exited = once(orphan.child, "exit");
    orphan.child.stdin?.end();
    await exited;
  });
});

const until = async (holds: () => Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + 20_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error("it did not come true within 20 s");
    await new Promise((resolve) => setImmediate(resolve));
  }
};
