import assert from "node:assert/strict";
import { test } from "node:test";
import { decodedHeader } from "../../../../src/catalogue/mcp/revisions.ts";
import { speaking, statelessMeta } from "./speaking.ts";

const version = "io.modelcontextprotocol/protocolVersion";
const capabilities = "io.modelcontextprotocol/clientCapabilities";
const current = { "mcp-protocol-version": "2026-07-28" };
const listHeaders = { ...current, "mcp-method": "tools/list" };
const callHeaders = { ...current, "mcp-method": "tools/call", "mcp-name": "list_issues" };

const asking = (method: string, params: object = {}) => ({ jsonrpc: "2.0", id: 7, method, params: { _meta: statelessMeta, ...params } });

interface Case {
  readonly message: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly code: number;
  /** False where the id could not be read. */
  readonly hasId?: boolean;
}

const refused: Readonly<Record<string, Case>> = {
  "no JSON": { message: "{", status: 400, code: -32700, hasId: false },
  "a key twice": { message: '{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}', status: 400, code: -32700, hasId: false },
  "half a surrogate pair": { message: '{"jsonrpc":"2.0","id":7,"method":"\\ud800"}', status: 400, code: -32700, hasId: false },
  "depth without end": {
    message: `{"jsonrpc":"2.0","id":7,"method":"ping","params":${'{"a":'.repeat(200)}1${"}".repeat(200)}}`,
    status: 400,
    code: -32700,
    hasId: false,
  },
  "no object": { message: '"ping"', status: 400, code: -32600, hasId: false },
  "another JSON-RPC": { message: { jsonrpc: "1.0", id: 7, method: "ping" }, status: 400, code: -32600 },
  "no method": { message: { jsonrpc: "2.0", id: 7 }, status: 400, code: -32600 },
  "an id of null": { message: { jsonrpc: "2.0", id: null, method: "ping" }, status: 400, code: -32600, hasId: false },
  "an id of a fraction": { message: { jsonrpc: "2.0", id: 1.5, method: "ping" }, status: 400, code: -32600, hasId: false },
  "params as a list": { message: { jsonrpc: "2.0", id: 7, method: "ping", params: [] }, status: 400, code: -32600 },
  "an empty batch": { message: "[]", status: 400, code: -32600, hasId: false },
  "a batch of a revision without": {
    message: '[{"jsonrpc":"2.0","id":7,"method":"ping"}]',
    headers: current,
    status: 400,
    code: -32600,
    hasId: false,
  },
  "no _meta": { message: { jsonrpc: "2.0", id: 7, method: "tools/list" }, headers: listHeaders, status: 400, code: -32602 },
  "no version in _meta": {
    message: asking("tools/list", { _meta: { [capabilities]: {} } }),
    headers: listHeaders,
    status: 400,
    code: -32602,
  },
  "no capabilities in _meta": {
    message: asking("tools/list", { _meta: { [version]: "2026-07-28" } }),
    headers: listHeaders,
    status: 400,
    code: -32602,
  },
  "no version header": { message: asking("tools/list"), headers: { "mcp-method": "tools/list" }, status: 400, code: -32020 },
  "a version header that differs": {
    message: asking("tools/list"),
    headers: { "mcp-protocol-version": "2025-11-25", "mcp-method": "tools/list" },
    status: 400,
    code: -32020,
  },
  "an unknown version": {
    message: asking("tools/list", { _meta: { ...statelessMeta, [version]: "2030-01-01" } }),
    headers: { "mcp-protocol-version": "2030-01-01", "mcp-method": "tools/list" },
    status: 400,
    code: -32022,
  },
  "a version of sessions in a request that stands alone": {
    message: asking("tools/list", { _meta: { ...statelessMeta, [version]: "2025-11-25" } }),
    headers: { "mcp-protocol-version": "2025-11-25", "mcp-method": "tools/list" },
    status: 400,
    code: -32022,
  },
  "no method header": { message: asking("tools/list"), headers: current, status: 400, code: -32020 },
  "another method in the header": { message: asking("tools/list"), headers: callHeaders, status: 400, code: -32020 },
  "the method's header in another case": {
    message: asking("tools/list"),
    headers: { ...current, "mcp-method": "Tools/List" },
    status: 400,
    code: -32020,
  },
  "no name header": {
    message: asking("tools/call", { name: "list_issues" }),
    headers: { ...current, "mcp-method": "tools/call" },
    status: 400,
    code: -32020,
  },
  "another name in the header": {
    message: asking("tools/call", { name: "list_issues" }),
    headers: { ...callHeaders, "mcp-name": "list_issues2" },
    status: 400,
    code: -32020,
  },
  "a name header in broken Base64": {
    message: asking("tools/call", { name: "list_issues" }),
    headers: { ...callHeaders, "mcp-name": "=?base64?bGlzdF9pc3N1ZXM?=" },
    status: 400,
    code: -32020,
  },
  "an unknown method": { message: asking("tools/guess"), headers: { ...current, "mcp-method": "tools/guess" }, status: 404, code: -32601 },
  "a method named as what every object has": {
    message: asking("constructor"),
    headers: { ...current, "mcp-method": "constructor" },
    status: 404,
    code: -32601,
  },
  "a method of sessions in a request that stands alone": {
    message: asking("ping"),
    headers: { ...current, "mcp-method": "ping" },
    status: 404,
    code: -32601,
  },
  "an unknown method in a session": { message: { jsonrpc: "2.0", id: 7, method: "resources/list" }, status: 200, code: -32601 },
  "a cursor of somebody's making": { message: asking("tools/list", { cursor: "2" }), headers: listHeaders, status: 200, code: -32602 },
  "a cursor that is no text": { message: asking("tools/list", { cursor: 2 }), headers: listHeaders, status: 200, code: -32602 },
  "a call without a name": {
    message: asking("tools/call"),
    headers: { ...current, "mcp-method": "tools/call" },
    status: 200,
    code: -32602,
  },
  "a session of ours that is too long": {
    message: asking("tools/call", { name: "list_issues", _meta: { ...statelessMeta, "dev.ambit/session": "x".repeat(200) } }),
    headers: callHeaders,
    status: 200,
    code: -32602,
  },
  "an answer, of which none is awaited": { message: { jsonrpc: "2.0", id: 7, result: {} }, headers: current, status: 400, code: -32600 },
  "listening for nothing": {
    message: asking("subscriptions/listen"),
    headers: { ...current, "mcp-method": "subscriptions/listen" },
    status: 200,
    code: -32602,
  },
  "listening for what is no flag": {
    message: asking("subscriptions/listen", { notifications: { toolsListChanged: "yes" } }),
    headers: { ...current, "mcp-method": "subscriptions/listen" },
    status: 200,
    code: -32602,
  },
};

for (const [name, { message, headers = {}, status, code, hasId = true }] of Object.entries(refused)) {
  test(`a message is refused in MCP's words: ${name}`, async () => {
    await using served = await speaking();
    const said = await served.say(message, headers);
    assert.deepEqual([said.status, said.error.code], [status, code], said.text);
    assert.equal(said.text.includes('"id":7'), hasId, said.text);
    assert.equal(served.sent.length, 0);
    assert.deepEqual(served.faults, []);
  });
}

test("an unknown version is told which there are", async () => {
  await using served = await speaking();
  const meta = { ...statelessMeta, [version]: "1900-01-01" };
  const said = await served.say(asking("server/discover", { _meta: meta }), {
    "mcp-protocol-version": "1900-01-01",
    "mcp-method": "server/discover",
  });
  assert.deepEqual({ ...said.error.data }, { supported: ["2026-07-28"], requested: "1900-01-01" });
});

const unknownTools = [
  "list_issues ",
  " list_issues",
  "List_issues",
  "list-issues",
  "constructor",
  "__proto__",
  "",
  "agents/github-list-issues",
];

test("a name that is nearly one, and one that somebody else is offered, get the same error, and are journalled", async () => {
  await using served = await speaking();
  for (const name of unknownTools) {
    const header = `=?base64?${Buffer.from(name).toString("base64")}?=`;
    const said = await served.askAlone("tools/call", { name, arguments: { repo: "a/b" } }, { "mcp-name": header });
    assert.equal(said.text, '{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool"}}', name);
  }
  assert.equal(served.sent.length, 0);
  assert.deepEqual(
    served.journal.map(({ gate, outcome }) => [gate, outcome]),
    unknownTools.map(() => ["match", "refused"]),
  );
});

test("arguments that don't fit are told to the model; a refusal by policy is one constant sentence", async () => {
  await using served = await speaking();
  const wrong = await served.askAlone("tools/call", { name: "list_issues", arguments: { repo: 1 } });
  assert.equal(wrong.result.isError, true);
  assert.match(wrong.text, /\/repo/);
  const labels = { "/repo": { trusted: true } };
  const refusedCall = await served.askAlone("tools/call", {
    name: "list_issues",
    arguments: { repo: "a/b" },
    _meta: { ...statelessMeta, "dev.ambit/labels": labels },
  });
  assert.equal(refusedCall.result.isError, true);
  assert.match(refusedCall.text, /"This call is not permitted\."/);
  assert.doesNotMatch(refusedCall.text, /label|trust/i);
  assert.equal(served.journal.at(-1)?.gate, "labels");
  assert.equal(served.sent.length, 0);
});

test("integers are exact in arguments, in ids and in what a tool answers", async () => {
  await using served = await speaking();
  const body = `{"jsonrpc":"2.0","id":90071992547409931,"method":"tools/call","params":{"name":"list_issues","arguments":{"repo":"a/b","number":18446744073709551615}}}`;
  const said = await served.say(body);
  assert.match(said.text, /"id":90071992547409931,/);
  assert.equal(served.sent[0]?.body, '{"number":18446744073709551615,"repo":"a/b"}');
});

const headerValues: Readonly<Record<string, string | null>> = {
  "us-west1": "us-west1",
  "=?base64?SGVsbG8sIOS4lueVjA==?=": "Hello, 世界",
  "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=": "=?base64?literal?=",
  "=?base64?SGVsbG8": null,
  "=?base64?/w==?=": null,
  "=?base64?SGVsbG9=?=": null,
  "caf\u00e9": null,
};

for (const [value, meant] of Object.entries(headerValues)) {
  test(`the header value ${JSON.stringify(value)} means ${JSON.stringify(meant)}`, () => {
    assert.equal(decodedHeader(value), meant);
  });
}

test("other HTTP methods, forms of body and paths are refused", async () => {
  await using served = await speaking();
  assert.equal((await served.ask("/mcp", { headers: { accept: "text/event-stream" } })).status, 405);
  assert.equal((await served.ask("/mcp", { method: "DELETE" })).status, 405);
  assert.equal((await served.ask("/mcp", { method: "PUT" })).status, 405);
  assert.equal((await served.ask("/mcp", { method: "POST", body: "{}", headers: { "content-type": "text/plain" } })).status, 415);
  assert.equal((await served.ask("/mcp", { method: "POST", body: "{}", token: null })).status, 401);
  assert.equal((await served.ask("/mcp", { method: "POST", body: "{}", token: "another" })).status, 401);
  assert.equal((await served.ask("/mcp/", { method: "POST", body: "{}" })).status, 404);
});
