import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Transient } from "../../../src/api/errors.ts";
import { serviceAccountCaller } from "../../../src/catalogue/caller.ts";
import type { Dispatched } from "../../../src/catalogue/dispatch.ts";
import { defaultServerLimits } from "../../../src/catalogue/server.ts";
import { type Ask, serving } from "./serving.ts";
import { liveGrant, objectIn, okReply } from "./world.ts";

const codeIn = (text: string): unknown => (objectIn(text).error as { readonly code?: unknown } | undefined)?.code;

const refusals: Record<string, { readonly path?: string; readonly ask: Ask; readonly status: number; readonly code: string }> = {
  "no token": { ask: { token: null }, status: 401, code: "Unauthenticated" },
  "a token that nobody has": { ask: { token: "guessed" }, status: 401, code: "Unauthenticated" },
  "a name that was made to resolve to us": { ask: { headers: { host: "evil.example" } }, status: 421, code: "HostUnknown" },
  "another machine's address as Host": { ask: { headers: { host: "127.0.0.2:80" } }, status: 421, code: "HostUnknown" },
  "a web page": { ask: { headers: { origin: "http://localhost:3000" } }, status: 403, code: "OriginRefused" },
  "a page without an origin": { ask: { headers: { origin: "null" } }, status: 403, code: "OriginRefused" },
  "an unknown path": { path: "/v2/declarations", ask: {}, status: 404, code: "PathUnknown" },
  "another method": { ask: { method: "DELETE" }, status: 405, code: "MethodNotAllowed" },
  "a misspelt parameter": { path: "/v1/declarations?fromat=anthropic", ask: {}, status: 400, code: "QueryInvalid" },
  "a parameter twice": { path: "/v1/declarations?limit=1&limit=2", ask: {}, status: 400, code: "QueryInvalid" },
  "an unknown format": { path: "/v1/declarations?format=constructor", ask: {}, status: 400, code: "QueryInvalid" },
  "a limit of nothing": { path: "/v1/declarations?limit=0", ask: {}, status: 400, code: "QueryInvalid" },
  "a cursor of somebody's making": { path: "/v1/declarations?cursor=abc", ask: {}, status: 400, code: "QueryInvalid" },
  "a tool that is not offered": { path: "/v1/declarations/constructor", ask: {}, status: 404, code: "NotOffered" },
  "a path that is not UTF-8": { path: "/v1/declarations/%ff", ask: {}, status: 400, code: "PathInvalid" },
  "a search for nothing": { path: "/v1/search?q=%20", ask: {}, status: 400, code: "QueryInvalid" },
};
for (const [what, { path = "/v1/declarations", ask, status, code }] of Object.entries(refusals)) {
  test(`what is refused says why in its own code: ${what}`, async () => {
    await using served = await serving();
    const answer = await served.ask(path, ask);
    assert.equal(answer.status, status);
    assert.equal(codeIn(answer.text), code);
    assert.deepEqual(served.faults, []);
  });
}

test("probes are answered whatever their Host, and readiness waits for the state", async () => {
  let ready = false;
  await using served = await serving({ isReady: () => ready });
  const probe = { token: null, headers: { host: "10.1.2.3:8080" } };
  assert.equal((await served.ask("/healthz", probe)).status, 200);
  assert.equal((await served.ask("/readyz", probe)).status, 503);
  const early = await served.ask("/v1/declarations");
  assert.equal(early.status, 503);
  assert.equal(early.headers["retry-after"], "1");
  ready = true;
  assert.equal((await served.ask("/readyz", probe)).status, 200);
});

test("who cannot be checked now is not let in, and told to come again", async () => {
  const authenticate = async () => {
    throw new Transient("ApiServerUnreachable", "the API server at 10.0.0.1 is down");
  };
  await using served = await serving({ authenticate });
  const answer = await served.ask("/v1/declarations");
  assert.equal(answer.status, 503);
  assert.ok(!answer.text.includes("10.0.0.1"));
  assert.equal(served.faults.length, 1);
});

test("a fault of ours is reported, and told without its text", async () => {
  const random = () => {
    throw new Error("no entropy in /dev/secret");
  };
  await using served = await serving({ random });
  const answer = await served.post("/v1/calls", '{"name":"list_issues","arguments":{"repo":"a/b"}}');
  assert.equal(answer.status, 500);
  assert.ok(!answer.text.includes("secret"));
  assert.equal(served.faults.length, 1);
});

test("the same state gives the same bytes and ETag, and 304 to who has them", async () => {
  await using served = await serving();
  await using replica = await serving();
  const first = await served.ask("/v1/declarations?format=anthropic");
  const other = await replica.ask("/v1/declarations?format=anthropic");
  assert.equal(first.status, 200);
  assert.equal(first.text, other.text);
  assert.equal(first.headers.etag, other.headers.etag);
  assert.match(first.headers.etag ?? "", /^"[0-9a-f]{64}"$/);
  for (const known of [first.headers.etag ?? "", `W/${first.headers.etag}`, `"x", ${first.headers.etag}`, "*"]) {
    const again = await served.ask("/v1/declarations?format=anthropic", { headers: { "if-none-match": known } });
    assert.equal(again.status, 304, known);
    assert.equal(again.text, "");
    assert.equal(again.headers.etag, first.headers.etag);
  }
  served.state.apply([{ kind: "grant", grant: liveGrant("another", { declaration: { name: "another" } }) }]);
  const changed = await served.ask("/v1/declarations?format=anthropic", { headers: { "if-none-match": first.headers.etag ?? "" } });
  assert.equal(changed.status, 200);
  assert.notEqual(changed.headers.etag, first.headers.etag);
});

test("a list long enough is compressed for who takes that, under an ETag of its own", async () => {
  await using served = await serving();
  served.state.apply(["a", "b", "c", "d", "e", "f"].map((name) => ({ kind: "grant", grant: liveGrant(name, { declaration: { name } }) })));
  const plain = await served.ask("/v1/declarations");
  const packed = await served.ask("/v1/declarations", { headers: { "accept-encoding": "br, gzip" } });
  assert.equal(packed.headers["content-encoding"], "gzip");
  assert.equal(gunzipSync(packed.body).toString("utf8"), plain.text);
  assert.notEqual(packed.headers.etag, plain.headers.etag);
  const known = { "accept-encoding": "gzip", "if-none-match": packed.headers.etag ?? "" };
  assert.equal((await served.ask("/v1/declarations", { headers: known })).status, 304);
  const refused = await served.ask("/v1/declarations", { headers: { "accept-encoding": "gzip;q=0" } });
  assert.equal(refused.headers["content-encoding"], undefined);
});

test("pages follow names, so that what comes and goes between them neither repeats nor skips another", async () => {
  await using served = await serving();
  const named = (name: string) => ({ kind: "grant", grant: liveGrant(`g-${name}`, { declaration: { name } }) }) as const;
  served.state.apply([{ kind: "grant-withdrawn", id: "agents/github-list-issues" }, ...["a", "b", "c", "d"].map(named)]);
  const names = (text: string) => [...text.matchAll(/"name":"(\w+)"/g)].map((match) => match[1]);
  const first = await served.ask("/v1/declarations?limit=2");
  assert.deepEqual(names(first.text), ["a", "b"]);
  const next = await served.ask(`/v1/declarations?limit=1&cursor=${first.headers["ambit-next-cursor"]}`);
  assert.deepEqual(names(next.text), ["c"]);
  served.state.apply([{ kind: "grant-withdrawn", id: "agents/g-b" }, named("aa")]);
  const second = await served.ask(`/v1/declarations?limit=2&cursor=${first.headers["ambit-next-cursor"]}`);
  assert.deepEqual(names(second.text), ["c", "d"]);
  assert.equal(second.headers["ambit-next-cursor"], undefined);
});

test("what a caller sees and calls is its own", async () => {
  await using served = await serving();
  served.callers.set("other", serviceAccountCaller("agents", "other"));
  const list = await served.ask("/v1/declarations", { token: "other" });
  assert.ok(!list.text.includes("list_issues"));
  assert.equal((await served.ask("/v1/declarations/list_issues", { token: "other" })).status, 404);
  assert.deepEqual(objectIn((await served.ask("/v1/search?q=issues", { token: "other" })).text).hits, []);
  const body = '{"name":"list_issues","arguments":{"repo":"octo/app"}}';
  const call = await served.ask("/v1/calls", { method: "POST", body, token: "other", headers: { "content-type": "application/json" } });
  assert.equal(objectIn(call.text).outcome, "refused");
  assert.equal(served.sent.length, 0);
});

test("a search finds a tool by a word of its name, its description or its parameters", async () => {
  await using served = await serving();
  const change = { declaration: { name: "weather", description: "Tells tomorrow's temperature." } };
  served.state.apply([{ kind: "grant", grant: liveGrant("weather", change) }]);
  for (const [query, expected] of Object.entries({
    "list-issues": "list_issues",
    TEMPERATURE: "weather",
    issue: "list_issues",
    temprature: "weather",
  })) {
    const { hits } = objectIn((await served.ask(`/v1/search?q=${query}&limit=1`)).text);
    assert.ok(Array.isArray(hits));
    assert.equal(hits[0]?.declaration?.name, expected, query);
    assert.ok(hits[0]?.declaration?.parameters?.properties?.repo);
  }
});

test("a call is answered with what the tool gave", async () => {
  await using served = await serving();
  const answer = await served.post("/v1/calls", '{"name":"list_issues","arguments":{"repo":"octo/app"},"session":"s"}');
  assert.equal(answer.status, 200);
  assert.equal(
    answer.text,
    '{"content":[{"type":"text","text":"[\\"an issue\\"]"}],"structuredContent":{"result":"[\\"an issue\\"]"},"isError":false,"outcome":"ok","label":{"sources":["tool:agents/github-list-issues"],"trusted":false,"sensitivity":"Internal"}}',
  );
  assert.equal(served.journal[0]?.session, "s");
});

test("why a call was refused is told to operators alone", async () => {
  const body = '{"name":"nothing_like_it","arguments":{}}';
  await using model = await serving();
  await using operator = await serving({}, { explainsTo: () => true });
  assert.equal(
    (await model.post("/v1/calls", body)).text,
    '{"content":[{"type":"text","text":"This call is not permitted."}],"isError":true,"outcome":"refused"}',
  );
  const { reason } = objectIn((await operator.post("/v1/calls", body)).text);
  assert.equal((reason as { readonly code?: string }).code, "NotOffered");
});

const badBodies: Record<
  string,
  { readonly body: string | Buffer; readonly status?: number; readonly code: string; readonly type?: string }
> = {
  "no JSON": { body: "{", code: "JsonSyntax" },
  "a list": { body: "[]", code: "CallMalformed" },
  "no name": { body: "{}", code: "CallMalformed" },
  "a key that a call has not": { body: '{"name":"list_issues","argumnets":{}}', code: "CallMalformed" },
  "a session that is too long": { body: `{"name":"x","session":"${"s".repeat(129)}"}`, code: "CallMalformed" },
  "a key twice": { body: '{"name":"list_issues","arguments":{"repo":"a","repo":"b"}}', code: "JsonDuplicateKey" },
  "half a surrogate pair": { body: '{"name":"list_issues","arguments":{"repo":"\\udc00"}}', code: "JsonLoneSurrogate" },
  "depth without end": { body: `{"name":"x","arguments":${"[".repeat(10_000)}`, code: "JsonTooDeep" },
  "bytes that are no UTF-8": { body: Buffer.from([0x22, 0xff, 0x22]), code: "BodyNotUtf8" },
  "a form": { body: "name=x", type: "application/x-www-form-urlencoded", status: 415, code: "ContentTypeUnsupported" },
  "text, as a page may send without asking": { body: "{}", type: "text/plain", status: 415, code: "ContentTypeUnsupported" },
};
for (const [what, { body, status = 400, code, type = "application/json" }] of Object.entries(badBodies)) {
  test(`a body that is no call is told so: ${what}`, async () => {
    await using served = await serving();
    const answer = await served.ask("/v1/calls", { method: "POST", body, headers: { "content-type": type } });
    assert.equal(answer.status, status);
    assert.equal(codeIn(answer.text), code);
    assert.equal(served.sent.length, 0);
    assert.deepEqual(served.faults, []);
  });
}

test("a body over the cap ends there, declared or not", async () => {
  await using served = await serving({}, { limits: { ...defaultServerLimits, bodyBytes: 100 } });
  const declared = await served.post("/v1/calls", `{"name":"${"x".repeat(200)}"}`);
  assert.equal(declared.status, 413);
  const chunked = await served.post("/v1/calls", `{"name":"${"x".repeat(200)}"}`, { "transfer-encoding": "chunked" });
  assert.equal(chunked.status, 413);
  assert.equal((await served.ask("/healthz")).status, 200);
});

test("bodies held at one time are bounded over all callers, and given back", async () => {
  let release: (() => void) | undefined;
  let arrived: (() => void) | undefined;
  const held = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const dispatch = () =>
    new Promise<Dispatched>((resolve) => {
      release = () => resolve({ kind: "replied", reply: okReply() });
      arrived?.();
    });
  await using served = await serving({ dispatch }, { limits: { ...defaultServerLimits, heldBodyBytes: 80 } });
  const body = '{"name":"list_issues","arguments":{"repo":"octo/app"}}';
  const first = served.post("/v1/calls", body);
  await held;
  const second = await served.post("/v1/calls", body);
  assert.equal(second.status, 503);
  assert.equal(codeIn(second.text), "Busy");
  release?.();
  assert.equal((await first).status, 200);
  const third = served.post("/v1/calls", '{"name":"nothing","arguments":{}}');
  assert.equal((await third).status, 200);
});

test("a client that sends its body without ever ending it is cut off, and others are served", async () => {
  await using served = await serving({}, { limits: { ...defaultServerLimits, headersMs: 1_500, requestMs: 1_500 } });
  const socket = connect(served.port, "127.0.0.1");
  let heard = "";
  socket.on("data", (chunk) => {
    heard += chunk;
  });
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.write(
    "POST /v1/calls HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer secret\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{",
  );
  assert.equal((await served.ask("/v1/declarations")).status, 200);
  await closed;
  assert.match(heard, /^HTTP\/1\.1 408/);
});

test("closing waits for the calls under way, and not for the connections that they leave", async () => {
  let release: (() => void) | undefined;
  let arrived: (() => void) | undefined;
  const held = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const dispatch = () =>
    new Promise<Dispatched>((resolve) => {
      release = () => resolve({ kind: "replied", reply: okReply() });
      arrived?.();
    });
  await using served = await serving({ dispatch });
  const call = served.post("/v1/calls", '{"name":"list_issues","arguments":{"repo":"octo/app"}}', { connection: "keep-alive" });
  await held;
  let isClosed = false;
  const closed = served.catalogue.close().then(() => {
    isClosed = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isClosed, false);
  release?.();
  assert.equal((await call).status, 200);
  await closed;
});

test("two catalogues on one port: the second says what to do", async () => {
  await using served = await serving();
  await using second = await serving();
  second.catalogue.server.close();
  await assert.rejects(second.catalogue.listen("127.0.0.1", served.port), { code: "AddressInUse", message: /choose another port/ });
});
