import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Bridged, bridgeTo, everythingServer, type ServerProcess, startServer, type Told } from "./bridge-under-test.ts";

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
    await bridged.call("get-sum", { a: 1, b: 2 });
    const { body } = await bridged.call("get-sum", { a: 40, b: 2 });
    assert.deepEqual([body.outcome, body.text], ["ok", "The sum of 40 and 2 is 42."]);
    assert.equal(body.stats.use.requests, 1);
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
