import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { type Bridged, bridgeTo, type ServerProcess, startServer } from "./bridge-under-test.ts";

const hostileServer = fileURLToPath(new URL("../fixtures/mcp-servers/hostile.ts", import.meta.url));

/** What a host says of a list that the server answers so, by the last part of its path. */
const faults: Record<string, { code: string; message: RegExp }> = {
  never: { code: "ListingFailed", message: /did not finish within 2 s/ },
  trickle: { code: "ListingFailed", message: /did not finish within 2 s/ },
  gigabyte: { code: "ListingFailed", message: /it is too large/ },
  "gigabyte-of-events": { code: "ListingFailed", message: /it is too large/ },
  "endless-notifications": { code: "ListingFailed", message: /says too much/ },
  "malformed-json": { code: "ListingFailed", message: /no JSON-RPC message/ },
  "malformed-events": { code: "ListingFailed", message: /no JSON-RPC message/ },
  "no-utf-8": { code: "ListingFailed", message: /not UTF-8/ },
  "malformed-headers": { code: "ListingFailed", message: /HttpProtocolError/ },
  closes: { code: "ListingFailed", message: /ConnectionTerminated/ },
  "ends-early": { code: "ListingFailed", message: /ended before it came to the result/ },
  "other-id": { code: "ListingFailed", message: /ended before it came to the result/ },
  "both-result-and-error": { code: "ListingFailed", message: /error -1: Both/ },
  "wrong-shape": { code: "ListingFailed", message: /not in the protocol's form/ },
  redirects: { code: "ListingFailed", message: /redirects \(status 307\), which is not followed/ },
  "redirects-to-metadata": { code: "ListingFailed", message: /redirects \(status 302\), which is not followed/ },
  unauthorized: { code: "ListingFailed", message: /does not take the credentials/ },
  breaks: { code: "ListingFailed", message: /status 500/ },
  "rpc-error": { code: "ListingFailed", message: /^.{1,700}$/ },
  "endless-pages": { code: "ListingTooLarge", message: /more than 200 pages/ },
  "same-cursor": { code: "ListingEndless", message: /comes back to where it was/ },
  "cursors-in-a-ring": { code: "ListingEndless", message: /comes back to where it was/ },
  "hundred-thousand": { code: "ListingTooLarge", message: /100000 tools, more than 5000/ },
};

/** What comes of a call that the server answers so. */
const answers: Record<string, { outcome: "ok" | "tool-error" | "failed"; code?: string; ran?: boolean; text: RegExp }> = {
  fine: { outcome: "ok", text: /^Fine\.$/ },
  gigabyte: { outcome: "failed", code: "FarSideLost", ran: true, text: /too large/ },
  "gigabyte-of-events": { outcome: "failed", code: "FarSideLost", ran: true, text: /too large/ },
  "endless-notifications": { outcome: "failed", code: "FarSideLost", ran: true, text: /says too much/ },
  "malformed-json": { outcome: "failed", code: "FarSideLost", ran: true, text: /no JSON-RPC message/ },
  "malformed-events": { outcome: "failed", code: "FarSideLost", ran: true, text: /no JSON-RPC message/ },
  "malformed-headers": { outcome: "failed", code: "FarSideLost", ran: true, text: /HttpProtocolError/ },
  closes: { outcome: "failed", code: "FarSideLost", ran: true, text: /ConnectionTerminated/ },
  "ends-early": { outcome: "failed", code: "FarSideLost", ran: true, text: /ended before/ },
  "other-id": { outcome: "failed", code: "FarSideLost", ran: true, text: /ended before/ },
  "wrong-shape": { outcome: "failed", code: "FarSideLost", ran: true, text: /not in the protocol's form/ },
  "no-base64": { outcome: "failed", code: "FarSideLost", ran: true, text: /not in the protocol's form/ },
  breaks: { outcome: "failed", code: "FarSideLost", ran: true, text: /status 500/ },
  redirects: { outcome: "failed", code: "FarSideUnavailable", ran: false, text: /not followed/ },
  "redirects-to-metadata": { outcome: "failed", code: "FarSideUnavailable", ran: false, text: /not followed/ },
  unauthorized: { outcome: "failed", code: "FarSideUnavailable", ran: false, text: /credentials/ },
  "rpc-error": { outcome: "tool-error", text: /^It said no\. !{400,600}$/ },
  "large-answer": { outcome: "failed", code: "ResultTooLarge", ran: true, text: /larger than/ },
  "asks-a-model-first": { outcome: "ok", text: /^Nobody answered\.$/ },
  "wants-input": { outcome: "tool-error", text: /asks for more than the arguments/ },
  "unknown-block": { outcome: "ok", text: /not known here.*\nSeen\.$/ },
};

/** More than one answer may have, with what was under way when it was given up. */
const mostReceived = 18 << 20;

describe("a bridge to a server that means harm", () => {
  let server: ServerProcess;
  before(async () => {
    server = await startServer(hostileServer);
  });
  after(() => server?.stop());

  describe("in its list", { concurrency: 3 }, () => {
    const listing = async (name: string): Promise<Bridged> =>
      bridgeTo(server.target, { path: `/lists/${name}`, limits: { timeoutMs: /never|trickle/.test(name) ? 2000 : 20_000 } });

    for (const [name, { code, message }] of Object.entries(faults)) {
      it(`says why there is none: ${name}`, async (t) => {
        const bridged = await listing(name);
        t.after(() => bridged.stop());
        const { listing: heard, fault } = await bridged.ask();
        assert.equal(heard, null);
        assert.equal(fault?.code, code);
        assert.match(fault?.message ?? "", message);
      });
    }

    it("takes a list although the server asks for a model and a person first", async (t) => {
      const bridged = await listing("asks-a-model-first");
      t.after(() => bridged.stop());
      const { listing: heard } = await bridged.ask();
      assert.deepEqual(
        heard?.tools.map(({ name }) => name),
        ["patient"],
      );
    });

    it("leaves out what is no tool that can be offered, with the reason, and offers the others", async (t) => {
      const bridged = await listing("odd");
      t.after(() => bridged.stop());
      const { listing: heard } = await bridged.ask();
      assert.deepEqual(
        heard?.tools.map(({ name }) => name),
        ["__proto__", "constructor", "good", "l\u043e\u043ek_alike", "remote", "slow_pattern", "with.dots"],
      );
      const reasons = new Map(heard?.notOffered.map(({ name, reason }) => [name, reason]));
      assert.deepEqual([...reasons.keys()].sort(), [
        "",
        "line\nbreak",
        "list_schema",
        "n".repeat(128),
        "no_schema",
        "twice",
        "wordy",
        "wrong_header",
      ]);
      assert.match(reasons.get("twice") ?? "", /same name/);
      assert.match(reasons.get("wordy") ?? "", /20000 characters/);
      assert.match(reasons.get("wrong_header") ?? "", /only a string, an integer or a boolean travels in a header/);
    });

    it("leaves out a schema of any depth, and offers the others", async (t) => {
      const bridged = await listing("deep");
      t.after(() => bridged.stop());
      const { listing: heard } = await bridged.ask();
      assert.deepEqual([heard?.tools.map(({ name }) => name), heard?.notOffered.map(({ name }) => name)], [["shallow"], ["deep"]]);
    });
  });

  describe("in its answers to calls", () => {
    let bridged: Bridged;
    before(async () => {
      bridged = await bridgeTo(server.target, { path: "/calls", limits: { timeoutMs: 2000 } });
      await bridged.call("fine");
    });
    after(() => bridged?.stop());

    for (const [name, { text, ...outcome }] of Object.entries(answers)) {
      it(`says what came of it, after one request: ${name}`, async () => {
        const { body } = await bridged.call(name);
        assert.deepEqual({ outcome: body.outcome, code: body.code, ran: body.ran }, { code: undefined, ran: undefined, ...outcome });
        assert.match(body.text, text);
        const { exchanges, receivedBytes } = body.stats.use;
        assert.ok(receivedBytes < mostReceived, `${receivedBytes} bytes received`);
        // A worker that has not called yet asks the server first how it is spoken to.
        const hosts = (exchanges as { host: string }[]).map(({ host }) => host);
        assert.ok(hosts.length <= 2 && hosts.every((host) => host === "http://localhost"), hosts.join());
      });
    }

    it("ends a call that never comes to its end, and calls others meanwhile", async () => {
      const stuck = Promise.all([bridged.call("never"), bridged.call("trickle")]);
      const { body } = await bridged.call("fine");
      assert.equal(body.text, "Fine.");
      for (const { body } of await stuck) assert.deepEqual([body.outcome, body.code, body.ran], ["failed", "Deadline", true]);
    });
  });

  describe("to those who listen for changes", { concurrency: 3 }, () => {
    for (const name of ["never", "other-things", "changes", "malformed-events", "one-line"]) {
      it(`is listed and called all the same: ${name}`, async (t) => {
        const bridged = await bridgeTo(server.target, { path: `/watches/${name}` });
        t.after(() => bridged.stop());
        for (let call = 0; call < 3; call++) assert.equal((await bridged.call("fine")).body.text, "Fine.");
        const first = await bridged.ask();
        assert.equal(first.fault, null);
        assert.ok(bridged.host.residentBytes() < 400 << 20, `${bridged.host.residentBytes() >> 20} MiB`);
      });
    }
  });

  it("never sent a call twice, nor anything to where it was redirected", async () => {
    const heard = (await (await fetch(`http://${server.target}/heard`)).json()) as { method: string; path: string; host: string }[];
    assert.ok(heard.every(({ host, path }) => host === "localhost" && /^\/(lists|calls|watches)/.test(path)));
    const wanted = Object.keys(answers).length + 1 + 3 + 5 * 3;
    assert.equal(heard.filter(({ method }) => method === "tools/call").length, wanted);
  });
});
