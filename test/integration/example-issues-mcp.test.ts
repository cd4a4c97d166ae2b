import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { isJsonObject, parseJson } from "../../src/api/json.ts";
import { untypedInterface } from "../../src/api/untyped.ts";
import { definitionDigest } from "../../src/grants/definition.ts";
import { readListing } from "../../src/grants/listing.ts";
import { bridgeComponent } from "./bridge-under-test.ts";
import { type HostUnderTest, startHost } from "./host-under-test.ts";
import { ask, credential, startServing } from "./serving-under-test.ts";

const component = readFileSync(new URL("../../examples/mcp-server-component/issues-mcp.wasm", import.meta.url));
const authority = "issues-mcp";

/** 230 issues, every tenth of which is a pull request. */
const issues = Array.from({ length: 230 }, (_, at) => ({
  number: 230 - at,
  title: `Issue ${230 - at}`,
  state: "open",
  body: `Text of ${230 - at}`,
  ...(at % 10 === 9 && { pull_request: {} }),
}));

describe("the example of an MCP server that is a component", () => {
  let tracker: Server;
  let host: HostUnderTest;
  let bridge: HostUnderTest;
  const asked: { readonly url: string; readonly authorization: string | undefined; readonly hop: unknown }[] = [];

  before(async () => {
    tracker = createServer((request, response) => {
      const url = new URL(request.url ?? "/", "http://tracker.test");
      asked.push({ url: url.pathname, authorization: request.headers.authorization, hop: request.headers["ambit-hop"] });
      const [size, page] = ["per_page", "page"].map((name) => Number(url.searchParams.get(name) ?? 1)) as [number, number];
      const number = /^\/repos\/octo\/app\/issues\/(\d+)$/.exec(url.pathname)?.[1];
      const found =
        url.pathname === "/repos/octo/app/issues"
          ? issues.slice((page - 1) * size, page * size)
          : issues.find((issue) => String(issue.number) === number);
      response.writeHead(found === undefined ? 404 : 200, { "content-type": "application/json" }).end(JSON.stringify(found ?? {}));
    }).listen(0, "127.0.0.1");
    await once(tracker, "listening");
    const { port } = tracker.address() as AddressInfo;
    host = await startServing({
      component,
      config: {
        allowedHosts: ["http://tracker.test"],
        hostOverrides: { "tracker.test:80": `127.0.0.1:${port}` },
        environment: { GITHUB_API_URL: "http://tracker.test", GITHUB_TOKEN: "t0ken" },
      },
    });
    bridge = await startHost({
      component: bridgeComponent,
      config: { hop: { authority }, environment: { MCP_URL: `http://${authority}/mcp` }, callsPerInstance: 1000 },
    });
    const servers = [{ address: "127.0.0.1", port: Number(new URL(host.serving ?? "").port) }];
    const document = { kind: "hop", boot: bridge.boot, version: 1, reach: { authority, credential, servers } };
    assert.equal((await bridge.request("PUT", "/v1/hop", bridge.signedByRoot(document))).status, 200);
  });
  after(async () => {
    await bridge?.stop();
    await host?.stop();
    tracker?.close();
  });

  const post = async (message: object, headers: Record<string, string> = {}) => {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    const sent = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
    return ask(host, "/mcp", { method: "POST", headers: sent, body });
  };
  const stateless = (method: string, params: object = {}, headers: Record<string, string> = {}) =>
    post(
      { id: 1, method, params: { ...params, _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } },
      { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...headers },
    );

  test("answers both eras of the protocol without a session", async () => {
    const begun = await post({ id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: {} } });
    const { result } = JSON.parse(begun.text);
    assert.deepEqual([begun.status, result.protocolVersion, begun.headers["mcp-session-id"]], [200, "2025-06-18", undefined]);
    assert.equal((await post({ method: "notifications/initialized" })).status, 202);
    const discovered = JSON.parse((await stateless("server/discover")).text);
    assert.deepEqual(discovered.result.supportedVersions, ["2026-07-28"]);
    const lists = [await post({ id: 2, method: "tools/list" }), await stateless("tools/list")];
    for (const { text } of lists)
      assert.deepEqual(
        JSON.parse(text).result.tools.map(({ name }: { name: string }) => name),
        ["list_issues", "get_issue", "count_issues"],
      );
  });

  const refused: Record<string, { answer: () => ReturnType<typeof post>; status: number; code?: number }> = {
    "what is not JSON": { answer: () => ask(host, "/mcp", { method: "POST", body: "{" }), status: 400 },
    "another path": { answer: () => ask(host, "/other", { method: "POST", body: "{}" }), status: 404 },
    "a stream to listen to": { answer: () => ask(host, "/mcp"), status: 405 },
    "a method that it does not have": { answer: () => stateless("prompts/list"), status: 404, code: -32601 },
    "a header that says otherwise than the body": {
      answer: () => stateless("tools/list", {}, { "mcp-method": "tools/call" }),
      status: 400,
      code: -32020,
    },
    "a body of 2 MiB": { answer: () => ask(host, "/mcp", { method: "POST", body: Buffer.alloc(2 * 1024 * 1024) }), status: 413 },
  };
  for (const [what, { answer, status, code }] of Object.entries(refused)) {
    test(`refuses ${what}`, async () => {
      const given = await answer();
      assert.equal(given.status, status);
      if (code !== undefined) assert.equal(JSON.parse(given.text).error.code, code);
    });
  }

  test("tells of its progress as events, before the result", async () => {
    const params = { name: "count_issues", arguments: { repo: "octo/app" }, _meta: { progressToken: "p" } };
    const { headers, text } = await post({ id: 3, method: "tools/call", params });
    assert.equal(headers["content-type"], "text/event-stream");
    const events = text.split("\n\n").flatMap((event) => (event === "" ? [] : [JSON.parse(event.replace(/^[^{]*/, ""))]));
    assert.deepEqual(
      events.map(({ method, params, result }) => [method, params?.message ?? result.content[0].text]),
      [
        ["notifications/progress", "90 so far"],
        ["notifications/progress", "180 so far"],
        [undefined, "207 open issues"],
      ],
    );
  });

  const call = async (name: string, args: object) => {
    const request = bridge.signedByRoot({ kind: "listing", boot: bridge.boot, known: null, waitMs: 20_000 });
    const { body } = await bridge.request("POST", "/v1/listing", request);
    const listing = parseJson(JSON.stringify(body.listing));
    const tool = isJsonObject(listing) ? readListing(listing).tools.find((one) => one.name === name) : undefined;
    assert.ok(tool, `${name} is listed: ${JSON.stringify(body.fault)}`);
    const text = JSON.stringify(args);
    const ticket = bridge.ticketFor(text, { interface: untypedInterface, function: name }, { definition: definitionDigest(tool) });
    return (await bridge.request("POST", "/v1/call", text, { "ambit-ticket": ticket })).body;
  };

  test("is called through its bridge, and asks the tracker as itself", async () => {
    const listed = await call("list_issues", { repo: "octo/app" });
    assert.equal(listed.outcome, "ok");
    assert.deepEqual([listed.structured.issues.length, listed.structured.issues[0].title], [27, "Issue 230"]);
    assert.match((await call("get_issue", { repo: "octo/app", number: 7 })).text, /^#7 Issue 7 \(open\)\n\nText of 7$/);
    assert.equal((await call("count_issues", { repo: "octo/app" })).text, "207 open issues");
    assert.ok(asked.every(({ authorization, hop }) => authorization === "Bearer t0ken" && hop === undefined));
  });

  test("says to the model what is wrong with a call, and asks for no other path than a repository's", async () => {
    const before = asked.length;
    for (const repo of ["../user", "octo/..", "octo/app/../../user", "octo/app?x", "octo"]) {
      const { outcome, text } = await call("list_issues", { repo });
      assert.deepEqual([outcome, /named as owner\/name/.test(text)], ["tool-error", true]);
    }
    assert.equal(asked.length, before);
    const unknown = await call("get_issue", { repo: "octo/other", number: 1 });
    assert.deepEqual([unknown.outcome, unknown.text], ["tool-error", "octo/other has no such issue, or is private"]);
  });
});
