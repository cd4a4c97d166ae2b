import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, before, describe, it } from "node:test";
import {
  bare,
  type Heard,
  type Script,
  type ScriptedServer,
  startScripted,
  stateless,
  withSessions,
} from "../fixtures/mcp-servers/scripted.ts";
import { type Bridged, bridgeTo } from "./bridge-under-test.ts";

const tools = ["echo", "gr\u00f6\u00dfe", "with space "].map((name) => ({
  name,
  description: "Does it.",
  inputSchema: { type: "object" },
}));
const sessions = withSessions(tools);

const stream = (response: ServerResponse): ServerResponse => response.writeHead(200, { "content-type": "text/event-stream" });
const event = (message: object, id = ""): string =>
  `${id === "" ? "" : `id: ${id}\n`}data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
const resultOf = (call: Pick<Heard, "id">, text: string): object => ({ id: call.id, result: { content: [{ type: "text", text }] } });
/** Where a stream may be taken up again, and how soon. */
const resumable = (id: string): string => `retry: 1\nid: ${id}\ndata:\n\n`;

describe("a bridge whose call a server with sessions answers in a stream", () => {
  let server: ScriptedServer;
  let bridged: Bridged;
  before(async () => {
    server = await startScripted(sessions);
    bridged = await bridgeTo(server.target, { limits: { concurrency: 1 } });
    await bridged.ask();
    await bridged.call("echo");
  });
  after(async () => {
    await bridged?.stop();
    await server?.stop();
  });

  const answering = (
    toCall: (call: Heard, response: ServerResponse) => void,
    toGet: (get: Heard, response: ServerResponse) => void,
  ): Script => {
    return (heard, response) => {
      if (heard.method === "tools/call") toCall(heard, response);
      else if (heard.verb === "GET") toGet(heard, response);
      else return false;
      return true;
    };
  };
  const calls = () => server.heard.filter(({ method }) => method === "tools/call");
  const gets = () => server.heard.filter(({ verb }) => verb === "GET");
  /** Whatever a test did to the session, the next one begins in a new one that holds. */
  const called = async (script: Script) => {
    server.answer(() => false);
    await bridged.call("echo");
    server.answer(script);
    return (await bridged.call("echo")).body;
  };

  for (const [how, ends] of [
    ["ends", (response: ServerResponse) => response.end()],
    ["breaks off", (response: ServerResponse) => response.write(":\n", () => response.destroy())],
  ] as const) {
    it(`takes it up again where it ${how} before the result, in the same session, without calling again`, async () => {
      let call: Heard | undefined;
      const body = await called(
        answering(
          (heard, response) => {
            call = heard;
            stream(response).write(resumable("at-1"));
            ends(response);
          },
          (_, response) => stream(response).end(event(resultOf({ id: call?.id ?? null }, "Late."), "at-2")),
        ),
      );
      assert.deepEqual([body.outcome, body.text, calls().length], ["ok", "Late.", 1]);
      const [get] = gets();
      assert.equal(get?.headers["last-event-id"], "at-1");
      assert.equal(get?.headers["mcp-session-id"], calls()[0]?.headers["mcp-session-id"]);
      assert.equal(get?.headers["mcp-protocol-version"], "2025-11-25");
    });
  }

  for (const [what, script, mostGets] of [
    [
      "ends before the result and does not say where",
      answering(
        (_, response) => stream(response).end(":\n\n"),
        (_, response) => bare(response, 405),
      ),
      0,
    ],
    [
      "is not given again",
      answering(
        (_, response) => stream(response).end(resumable("at-1")),
        (_, response) => bare(response, 405),
      ),
      1,
    ],
    [
      "is of a session that is gone by then",
      answering(
        (_, response) => stream(response).end(resumable("at-1")),
        (_, response) => bare(response, 404),
      ),
      1,
    ],
    [
      "ends again and again",
      answering(
        (_, response) => stream(response).end(resumable("at-1")),
        (_, response) => stream(response).end(resumable("at-1")),
      ),
      10,
    ],
  ] as const) {
    it(`is in doubt where it ${what}, and does not call again`, async () => {
      const body = await called(script);
      assert.deepEqual([body.outcome, body.code, body.ran], ["failed", "FarSideLost", true]);
      assert.deepEqual([calls().length, gets().length], [1, mostGets]);
    });
  }

  it("says no to what the server asks for meanwhile, yes to whether it is there, and reads on", async () => {
    const body = await called(
      answering(
        (heard, response) => {
          stream(response).write(event({ id: "ask-1", method: "sampling/createMessage", params: {} }));
          response.write(event({ id: 2, method: "elicitation/create", params: {} }) + event({ id: "p", method: "ping" }));
          response.write(event({ method: "notifications/message", params: { data: "Something." } }));
          response.end(event(resultOf(heard, "Nobody answered.")));
        },
        (_, response) => bare(response, 405),
      ),
    );
    assert.equal(body.text, "Nobody answered.");
    const answers = server.heard.filter(({ verb, method }) => verb === "POST" && method === null);
    assert.deepEqual(
      answers.map(({ id }) => id),
      ["ask-1", 2, "p"],
    );
    const session = calls()[0]?.headers["mcp-session-id"];
    assert.ok(answers.every(({ headers }) => headers["mcp-session-id"] === session));
  });
});

describe("a bridge to a server without sessions", () => {
  it("names the tool in a header as the protocol encodes it", async (t) => {
    const server = await startScripted(stateless(tools));
    const bridged = await bridgeTo(server.target);
    t.after(() => Promise.all([bridged.stop(), server.stop()]));
    const named: Record<string, string> = {};
    for (const { name } of tools) {
      assert.equal((await bridged.call(name)).body.text, `${name} was called.`);
      named[name] = String(server.heard.at(-1)?.headers["mcp-name"]);
    }
    const base64 = (text: string) => `=?base64?${Buffer.from(text).toString("base64")}?=`;
    assert.deepEqual(named, { echo: "echo", "gr\u00f6\u00dfe": base64("gr\u00f6\u00dfe"), "with space ": base64("with space ") });
  });
});
