import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  type Bridged,
  bridgeTo,
  conformanceServer,
  everythingServer,
  type ServerProcess,
  startServer,
  type Told,
} from "./bridge-under-test.ts";
import type { HostAnswer } from "./host-under-test.ts";

/** The first call in each worker of the host asks the server how it is spoken to. */
const fewestRequests = async (call: () => Promise<HostAnswer>): Promise<number> => {
  const counts: number[] = [];
  for (let run = 0; run < 6; run++) counts.push((await call()).body.stats.use.requests);
  return Math.min(...counts);
};

describe("a bridge to MCP's official example server", () => {
  let server: ServerProcess;
  let bridged: Bridged;
  let told: Told;
  before(async () => {
    server = await startServer(everythingServer, ["streamableHttp"]);
    bridged = await bridgeTo(server.target);
    told = await bridged.ask();
  });
  after(async () => {
    await bridged?.stop();
    await server?.stop();
  });

  it("lists what the server says of its tools and of itself", () => {
    assert.equal(told.fault, null);
    assert.deepEqual(told.listing?.notOffered, []);
    const sum = told.listing?.tools.find(({ name }) => name === "get-sum");
    assert.equal(sum?.server, "mcp-servers/everything");
    assert.match(sum?.instructions ?? "", /^# Everything Server/);
    assert.equal(sum?.title, "Get Sum Tool");
    assert.deepEqual(Object.keys(sum?.inputSchema ?? {}), ["$schema", "type", "properties", "required"]);
    assert.equal(sum?.annotations?.readOnlyHint, true);
  });

  it("is not shown the tools for which a client must be able to ask a person or a model", () => {
    const names = told.listing?.tools.map(({ name }) => name) ?? [];
    assert.ok(names.includes("echo"));
    assert.ok(!names.some((name) => /sampling|elicitation|roots/.test(name)), names.join());
  });

  it("makes one request a call, in the session that it keeps", async () => {
    const { body } = await bridged.call("get-sum", { a: 40, b: 2 });
    assert.deepEqual([body.outcome, body.text], ["ok", "The sum of 40 and 2 is 42."]);
    assert.equal(await fewestRequests(() => bridged.call("get-sum", { a: 1, b: 2 })), 1);
  });

  it("gives a structured value with its text", async () => {
    const { body } = await bridged.call("get-structured-content", { location: "Chicago" });
    assert.deepEqual(body.structured, JSON.parse(body.text));
    assert.equal(typeof body.structured.temperature, "number");
  });

  it("gives images and links in their order among the text", async () => {
    const image = (await bridged.call("get-tiny-image")).body;
    assert.deepEqual(
      image.content.map(({ type }: { type: string }) => type),
      ["text", "image", "text"],
    );
    assert.match(image.content[1].data, /^iVBORw0KGgo/);
    const links = (await bridged.call("get-resource-links", { count: 2 })).body;
    assert.deepEqual(
      links.content.map(({ type }: { type: string }) => type),
      ["text", "resource_link", "resource_link"],
    );
  });

  it("tells the model of arguments that the server does not take", async () => {
    const { body } = await bridged.call("get-sum", { a: "no number" });
    assert.equal(body.outcome, "tool-error");
    assert.match(body.text, /validation/i);
  });
});

describe("a bridge to a server that starts anew", () => {
  it("begins another session, and calls again", async (t) => {
    const first = await startServer(everythingServer, ["streamableHttp"]);
    const bridged = await bridgeTo(first.target);
    t.after(() => bridged.stop());
    assert.equal((await bridged.call("echo", { message: "a" })).body.text, "Echo: a");
    await first.stop();
    const gone = (await bridged.call("echo", { message: "b" })).body;
    assert.deepEqual([gone.outcome, gone.code, gone.ran], ["failed", "FarSideUnavailable", false]);
    const second = await startServer(everythingServer, ["streamableHttp"], first.port);
    t.after(() => second.stop());
    assert.equal((await bridged.call("echo", { message: "c" })).body.text, "Echo: c");
  });

  it("asks in the server's other protocol where it is another by then", async (t) => {
    const first = await startServer(everythingServer, ["streamableHttp"]);
    const bridged = await bridgeTo(first.target);
    t.after(() => bridged.stop());
    await bridged.call("echo", { message: "a" });
    await first.stop();
    const second = await startServer(conformanceServer, [], first.port);
    t.after(() => second.stop());
    const known = (await bridged.ask()).digest;
    const told = await bridged.ask(known);
    assert.ok(told.listing?.tools.some(({ name }) => name === "test_simple_text"));
    assert.equal((await bridged.call("test_simple_text")).body.outcome, "ok");
  });
});

describe("a bridge to the conformance suite's own server, which has no sessions", () => {
  let server: ServerProcess;
  let bridged: Bridged;
  before(async () => {
    server = await startServer(conformanceServer);
    bridged = await bridgeTo(server.target);
  });
  after(async () => {
    await bridged?.stop();
    await server?.stop();
  });

  it("lists and calls, in one request a call", async () => {
    const told = await bridged.ask();
    assert.ok((told.listing?.tools.length ?? 0) > 20);
    const { body } = await bridged.call("test_multiple_content_types");
    assert.deepEqual(
      body.content.map(({ type }: { type: string }) => type),
      ["text", "image", "resource"],
    );
    assert.equal(await fewestRequests(() => bridged.call("test_simple_text")), 1);
  });

  it("tells the model where the server asks for what only a client could give", async () => {
    const { body } = await bridged.call("test_input_required_result_elicitation");
    assert.equal(body.outcome, "tool-error");
    assert.match(body.text, /asks for more than the arguments/);
  });

  it("is in doubt about an answer that it can't read", async () => {
    const { body } = await bridged.call("test_streaming_elicitation");
    assert.deepEqual([body.outcome, body.code, body.ran], ["failed", "FarSideLost", true]);
  });
});
