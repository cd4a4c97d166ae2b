import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseJson } from "../../src/api/json.ts";
import { type ToolListing, untypedInterface } from "../../src/api/untyped.ts";
import { definitionDigest } from "../../src/grants/definition.ts";
import { readListing } from "../../src/grants/listing.ts";
import { fixture, type HostUnderTest, startHost } from "./host-under-test.ts";

const conformance = fixture("conformance.wasm");

const listingOf = async (host: HostUnderTest, known: string | null = null, waitMs = 20_000): Promise<ToolListing> => {
  const request = { kind: "listing", boot: host.boot, known, waitMs };
  const { status, body } = await host.request("POST", "/v1/listing", host.signedByRoot(request));
  assert.equal(status, 200, JSON.stringify(body));
  return readListing(parseJson(JSON.stringify(body.listing)));
};

describe("a host whose component lists its own tools", () => {
  let host: HostUnderTest;
  let listing: ToolListing;
  before(async () => {
    host = await startHost({ component: conformance });
    listing = await listingOf(host);
  });
  after(() => host.stop());

  const call = (name: string, args: object, definition?: string) => {
    const tool = listing.tools.find((one) => one.name === name);
    const body = JSON.stringify(args);
    const change = { definition: (definition ?? (tool ? definitionDigest(tool) : "v1:sha256:none")) as `v1:sha256:${string}` };
    const ticket = host.ticketFor(body, { interface: untypedInterface, function: name }, change);
    return host.request("POST", "/v1/call", body, { "ambit-ticket": ticket });
  };

  it("gives what the component says of each tool", () => {
    const tool = listing.tools.find(({ name }) => name === "test_structured_content");
    assert.equal(tool?.server, "ambit-conformance");
    assert.equal(tool?.description, "Adds two integers and answers with a value.");
    assert.deepEqual(JSON.parse(JSON.stringify(tool?.annotations)), { readOnlyHint: true });
    assert.deepEqual(Object.keys(tool?.outputSchema ?? {}), ["type", "properties", "required", "additionalProperties"]);
  });

  it("answers with one text", async () => {
    const { body } = await call("test_simple_text", {});
    assert.deepEqual([body.outcome, body.text, body.content], ["ok", "This is a simple text response for testing.", undefined]);
  });

  it("answers with blocks of several kinds, in order", async () => {
    const { body } = await call("test_multiple_content_types", {});
    assert.deepEqual(
      body.content.map(({ type }: { type: string }) => type),
      ["text", "image", "resource"],
    );
    assert.match(body.content[1].data, /^iVBORw0KGgo/);
    assert.equal(body.text, "Multiple content types test:");
  });

  it("answers with a structured value", async () => {
    const { body } = await call("test_structured_content", { a: 2, b: 40 });
    assert.deepEqual([body.outcome, body.structured], ["ok", { sum: 42 }]);
  });

  it("tells an error from an answer", async () => {
    const { body } = await call("test_error_handling", {});
    assert.deepEqual([body.outcome, body.text], ["tool-error", "This tool intentionally returns an error for testing"]);
  });

  it("passes arguments on byte for byte", async () => {
    const { body } = await call("test_tool_with_logging", { z: 1, a: "\u00e9 " });
    assert.equal(body.text, '{"z":1,"a":"\u00e9 "}');
  });

  it("refuses a tool that is defined otherwise than the ticket says, and runs nothing", async () => {
    const { status, body } = await call("test_simple_text", {}, `v1:sha256:${"0".repeat(64)}`);
    assert.deepEqual([status, body.refused, body.code], [409, true, "DefinitionChanged"]);
  });

  it("refuses a tool that is not listed", async () => {
    const { status, body } = await call("no_such_tool", {});
    assert.deepEqual([status, body.code], [409, "ToolGone"]);
  });

  it("does not offer the interface itself to tickets for functions", async () => {
    const body = JSON.stringify({ cursor: null });
    const fn = { interface: "ambit:tool/untyped@0.1.0", function: "list-tools" };
    const answer = await host.request("POST", "/v1/call", body, { "ambit-ticket": host.ticketFor(body, fn) });
    assert.deepEqual([answer.status, answer.body.code], [409, "FunctionUnknown"]);
  });

  it("lists only for who holds the root key", async () => {
    const request = JSON.stringify({
      payload: JSON.stringify({ kind: "listing", boot: host.boot, known: null, waitMs: 0 }),
      signature: "AAAA",
    });
    const { status, body } = await host.request("POST", "/v1/listing", request);
    assert.deepEqual([status, body.code], [401, "SignatureWrong"]);
  });
});

describe("a host whose component has typed functions", () => {
  it("says that there is no list", async (context) => {
    const host = await startHost({ component: fixture("mission.wasm") });
    context.after(() => host.stop());
    const request = { kind: "listing", boot: host.boot, known: null, waitMs: 0 };
    const { status, body } = await host.request("POST", "/v1/listing", host.signedByRoot(request));
    assert.deepEqual([status, body.code], [409, "ListsNoTools"]);
  });
});
