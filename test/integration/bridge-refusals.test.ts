import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { bare, reply, type Script, type ScriptedServer, startScripted, stateless, withSessions } from "../fixtures/mcp-servers/scripted.ts";
import { type Bridged, bridgeTo } from "./bridge-under-test.ts";

const tools = [{ name: "echo", description: "Says it again.", inputSchema: { type: "object" } }];

/** How a call is answered: by a status alone, or with an error of JSON-RPC. */
interface Refusal {
  readonly status: number;
  readonly code?: number;
}

/** What comes of it: the call again in another session, the model's to read, or nothing ran. */
type Outcome = "again" | "read" | "not-run" | "in-doubt";

const inSessions: readonly (Refusal & { readonly comesTo: Outcome })[] = [
  { status: 404, comesTo: "again" },
  { status: 404, code: -32001, comesTo: "again" },
  { status: 404, code: -32600, comesTo: "again" },
  { status: 400, comesTo: "again" },
  { status: 400, code: -32000, comesTo: "again" },
  { status: 400, code: -32602, comesTo: "read" },
  { status: 400, code: -32603, comesTo: "read" },
  { status: 200, code: -32001, comesTo: "read" },
  { status: 200, code: -32000, comesTo: "read" },
  { status: 200, code: -32601, comesTo: "read" },
  { status: 200, code: -32602, comesTo: "read" },
  { status: 200, code: -32603, comesTo: "read" },
  { status: 500, code: -32603, comesTo: "read" },
  { status: 401, comesTo: "not-run" },
  { status: 401, code: -32001, comesTo: "not-run" },
  { status: 403, comesTo: "not-run" },
  { status: 429, code: -32000, comesTo: "not-run" },
  { status: 503, comesTo: "not-run" },
  { status: 503, code: -32000, comesTo: "not-run" },
  { status: 500, comesTo: "in-doubt" },
  { status: 502, comesTo: "in-doubt" },
];

const withoutSessions: readonly (Refusal & { readonly comesTo: Outcome })[] = [
  { status: 400, code: -32020, comesTo: "not-run" },
  { status: 400, code: -32022, comesTo: "not-run" },
  { status: 400, code: -32021, comesTo: "read" },
  { status: 400, code: -32602, comesTo: "read" },
  { status: 400, comesTo: "not-run" },
  { status: 404, code: -32601, comesTo: "not-run" },
  { status: 404, comesTo: "not-run" },
  { status: 200, code: -32602, comesTo: "read" },
  { status: 200, code: -32001, comesTo: "read" },
  { status: 401, comesTo: "not-run" },
  { status: 500, code: -32603, comesTo: "read" },
  { status: 500, comesTo: "in-doubt" },
];

const outcomes: Record<Outcome, { readonly outcome: string; readonly code?: string; readonly ran?: boolean; readonly text: RegExp }> = {
  again: { outcome: "ok", text: /^echo was called\.$/ },
  read: { outcome: "tool-error", text: /^It said no\.$/ },
  "not-run": { outcome: "failed", code: "FarSideUnavailable", ran: false, text: /can't be reached/ },
  "in-doubt": { outcome: "failed", code: "FarSideLost", ran: true, text: /status 50[02]/ },
};

const refusing =
  ({ status, code }: Refusal, times: number): Script =>
  (heard, response) => {
    if (heard.method !== "tools/call" || times-- <= 0) return false;
    return code === undefined ? bare(response, status) : reply(response, heard, { error: { code, message: "It said no." } }, status);
  };

const named = ({ status, code }: Refusal): string => `status ${status}${code === undefined ? "" : ` and error ${code}`}`;

for (const { era, answers, refusals, hasSessions } of [
  { era: "a server with sessions", answers: withSessions(tools), refusals: inSessions, hasSessions: true },
  { era: "a server without sessions", answers: stateless(tools), refusals: withoutSessions, hasSessions: false },
]) {
  describe(`a bridge whose call ${era} refuses`, () => {
    let server: ScriptedServer;
    let bridged: Bridged;
    before(async () => {
      server = await startScripted(answers);
      // One worker, so that each call finds the session that the one before left.
      bridged = await bridgeTo(server.target, { limits: { concurrency: 1 } });
      await bridged.ask();
    });
    beforeEach(async () => {
      server.answer(answers);
      await bridged.call("echo");
    });
    after(async () => {
      await bridged?.stop();
      await server?.stop();
    });

    const calls = () => server.heard.filter(({ method }) => method === "tools/call");

    for (const refusal of refusals) {
      const { outcome, code, ran, text } = outcomes[refusal.comesTo];
      it(`comes to ${refusal.comesTo} by ${named(refusal)}`, async () => {
        server.answer(refusing(refusal, refusal.comesTo === "again" ? 1 : 9), answers);
        const { body } = await bridged.call("echo");
        assert.deepEqual({ outcome: body.outcome, code: body.code, ran: body.ran }, { outcome, code, ran });
        assert.match(body.text, text);
        const inSession = calls().map(({ headers }) => headers["mcp-session-id"]);
        assert.equal(inSession.length, refusal.comesTo === "again" ? 2 : 1);
        assert.equal(new Set(inSession).size, inSession.length, "each was in a session of its own");
      });
    }

    if (hasSessions) {
      it("is called twice at most where every session is refused", async () => {
        server.answer(refusing({ status: 404, code: -32001 }, 9), answers);
        const { body } = await bridged.call("echo");
        assert.deepEqual([body.outcome, body.code, body.ran, calls().length], ["failed", "FarSideUnavailable", false, 2]);
      });
    }

    it("goes on in the other protocol where the server speaks that by now", async () => {
      const other = hasSessions ? stateless(tools) : withSessions(tools);
      server.answer((heard, response) => hasSessions && heard.headers["mcp-session-id"] !== undefined && bare(response, 404), other);
      const { body } = await bridged.call("echo");
      assert.deepEqual([body.outcome, body.text, calls().length], ["ok", "echo was called.", 2]);
      server.answer(() => false, answers);
      assert.equal((await bridged.call("echo")).body.outcome, "ok");
    });

    it("is one request in every other case", async () => {
      server.answer(() => false, answers);
      await bridged.call("echo");
      server.answer(() => false, answers);
      for (let call = 0; call < 3; call++) assert.equal((await bridged.call("echo")).body.stats.use.requests, 1);
      assert.equal(calls().length, 3);
    });
  });
}
