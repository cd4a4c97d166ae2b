import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { AmbitClient, CatalogueError, type ConnectionOptions } from "../../../src/client/client.ts";

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

type Script = (response: ServerResponse, asked: Asked) => void;

const says =
  (status: number, body: string, headers: Readonly<Record<string, string>> = {}): Script =>
  (response) =>
    response.writeHead(status, headers).end(body);
const busy = says(503, '{"error":{"code":"Busy","message":"too many calls"}}', { "retry-after": "0" });
/** Takes all of the request and gives no answer. */
const cut: Script = (response) => response.destroy();

/** A catalogue that answers in turn with these, the last one again and again. */
const scripted = async (scripts: readonly Script[], options: Partial<ConnectionOptions> = {}) => {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const { method = "", url = "", headers } = request;
    asked.push({ method, url, headers, body: await text(request) });
    scripts[Math.min(asked.length, scripts.length) - 1]?.(response, asked[asked.length - 1] as Asked);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { client: new AmbitClient({ url, token: "secret", ...options }), asked, close, [Symbol.asyncDispose]: close };
};

const callOf = '{"content":[{"type":"text","text":"[]"}],"isError":false,"outcome":"ok"}';
const failure = async (attempt: Promise<unknown>): Promise<CatalogueError> => {
  const thrown = await attempt.then(
    () => assert.fail("it went well"),
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof CatalogueError, String(thrown));
  return thrown;
};

test("a call is made with the token, and its outcome is a result, whatever it is", async () => {
  await using catalogue = await scripted([says(200, '{"content":[],"isError":true,"outcome":"refused"}')]);
  const result = await catalogue.client.call({ name: "list_issues", arguments: { repo: "octo/app" }, session: "s" });
  assert.equal(result.outcome, "refused");
  const [{ method, url, headers, body } = assert.fail()] = catalogue.asked;
  assert.deepEqual([method, url, headers.authorization], ["POST", "/v1/calls", "Bearer secret"]);
  assert.deepEqual(JSON.parse(body), { name: "list_issues", arguments: { repo: "octo/app" }, session: "s" });
});

test("headers of the agent's go along, and take nobody else's place", async () => {
  const headers = () => ({ traceparent: "00-1", authorization: "Bearer mine" });
  await using catalogue = await scripted([says(200, callOf)], { headers });
  await catalogue.client.call({ name: "a" });
  const [{ headers: sent } = assert.fail()] = catalogue.asked;
  assert.deepEqual([sent.traceparent, sent.authorization], ["00-1", "Bearer secret"]);
});

test("a token that is read from a file is read for every request", async () => {
  let reads = 0;
  await using catalogue = await scripted([says(200, callOf)], { token: async () => `token-${++reads}\n` });
  await catalogue.client.call({ name: "a" });
  await catalogue.client.call({ name: "a" });
  assert.deepEqual(
    catalogue.asked.map(({ headers }) => headers.authorization),
    ["Bearer token-1", "Bearer token-2"],
  );
});

const again: Record<string, { first: Script; isCall: boolean; tries: number; mayHaveRun?: boolean; code?: string }> = {
  "a call that a busy catalogue turned away": { first: busy, isCall: true, tries: 2 },
  "a list that a busy catalogue turned away": { first: busy, isCall: false, tries: 2 },
  "a list whose connection broke": { first: cut, isCall: false, tries: 2 },
  "a list that a proxy failed at": { first: says(502, "<html>", { "retry-after": "0" }), isCall: false, tries: 2 },
  "a call whose connection broke is left alone": { first: cut, isCall: true, tries: 1, mayHaveRun: true, code: "Unreachable" },
  "a call that a proxy failed at is left alone": {
    first: says(502, "<html>"),
    isCall: true,
    tries: 1,
    mayHaveRun: true,
    code: "StatusUnexpected",
  },
  "a call that a proxy calls unavailable is left alone": {
    first: says(503, "<html>", { "retry-after": "0" }),
    isCall: true,
    tries: 1,
    mayHaveRun: true,
    code: "StatusUnexpected",
  },
  "a call without a valid token is not tried again": {
    first: says(401, '{"error":{"code":"Unauthenticated","message":"send a token"}}'),
    isCall: true,
    tries: 1,
    mayHaveRun: false,
    code: "Unauthenticated",
  },
  "a body that is no call is not tried again": {
    first: says(400, '{"error":{"code":"CallMalformed","message":"no","at":"/name"}}'),
    isCall: true,
    tries: 1,
    mayHaveRun: false,
    code: "CallMalformed",
  },
  "an answer that sends us elsewhere is not followed": {
    first: says(307, "", { location: "http://127.0.0.1:9/" }),
    isCall: true,
    tries: 1,
    mayHaveRun: true,
    code: "Unreachable",
  },
};

for (const [what, { first, isCall, tries, mayHaveRun, code }] of Object.entries(again)) {
  test(`made again only where nothing ran: ${what}`, async () => {
    await using catalogue = await scripted([first, says(200, isCall ? callOf : "[]")]);
    const attempt = isCall ? catalogue.client.call({ name: "a" }) : catalogue.client.declarations("neutral");
    if (code === undefined) {
      await attempt;
    } else {
      const error = await failure(attempt);
      assert.deepEqual([error.code, error.mayHaveRun], [code, mayHaveRun]);
    }
    assert.equal(catalogue.asked.length, tries);
  });
}

test("a catalogue that isn't there is tried so often as was said, and cannot have run anything", async () => {
  const gone = await scripted([busy], { retries: 1 });
  await gone.close();
  const error = await failure(gone.client.call({ name: "a" }));
  assert.deepEqual([error.code, error.status, error.mayHaveRun], ["Unreachable", null, false]);
});

test("a catalogue that stays busy is given up on", async () => {
  await using catalogue = await scripted([busy], { retries: 2 });
  assert.equal((await failure(catalogue.client.call({ name: "a" }))).code, "Busy");
  assert.equal(catalogue.asked.length, 3);
});

test("a signal ends a request, with its own reason", async () => {
  await using catalogue = await scripted([() => undefined]);
  const ending = new AbortController();
  const attempt = catalogue.client.call({ name: "a" }, { signal: ending.signal });
  const reason = new Error("enough");
  ending.abort(reason);
  await assert.rejects(attempt, reason);
});

test("a list that did not change does not travel again, and each answer is the agent's own to change", async () => {
  const list: Script = (response, { headers }) =>
    headers["if-none-match"] === '"one"'
      ? response.writeHead(304, { etag: '"one"' }).end()
      : response.writeHead(200, { etag: '"one"', "ambit-left-out": '"odd"' }).end('[{"name":"a"}]');
  await using catalogue = await scripted([list]);
  const ask = () =>
    catalogue.client.declarations("neutral", { cache: "off", reserve: [1, 2, 3], search: "only", names: ["a", "b"], defer: 5 });
  const first = await ask();
  first.tools.push(...first.tools);
  const second = await ask();
  assert.deepEqual(
    second.tools.map(({ name }) => name),
    ["a"],
  );
  assert.deepEqual([second.etag, second.leftOut], ['"one"', '"odd"']);
  assert.equal(catalogue.asked[1]?.url, "/v1/declarations?format=neutral&cache=off&reserve=1%2C2%2C3&defer=5&search=only&names=a%2Cb");
  assert.equal(catalogue.asked[1]?.headers["if-none-match"], '"one"');
});

test("a tool that isn't offered is null, and hits come as the catalogue ranks them", async () => {
  await using catalogue = await scripted([
    says(404, '{"error":{"code":"NotOffered","message":"no"}}'),
    says(200, '{"hits":[{"score":1,"declaration":{"name":"a"}}]}'),
  ]);
  assert.equal(await catalogue.client.declaration("neutral", "a/b"), null);
  assert.equal(catalogue.asked[0]?.url, "/v1/declarations/a%2Fb?format=neutral");
  const [hit] = await catalogue.client.search("neutral", "an a", { limit: 3 });
  assert.equal(hit?.declaration.name, "a");
  assert.equal(catalogue.asked[1]?.url, "/v1/search?q=an+a&format=neutral&limit=3");
});

test("a turn goes as the model gave it, without bytes, and Bedrock's pictures come as its SDK takes them", async () => {
  const answer =
    '{"answer":{"role":"user","content":[{"toolResult":{"toolUseId":"1","content":[{"image":{"format":"png","source":{"bytes":"AQI="}}}]}}]},"calls":[{"outcome":"ok"}]}';
  await using catalogue = await scripted([says(200, answer)]);
  const turn = [{ reasoningContent: { redactedContent: new Uint8Array(3) } }, { toolUse: { toolUseId: "1", name: "a", input: {} } }];
  const message = await catalogue.client.answer("bedrock", turn);
  assert.deepEqual(message.content[0]?.toolResult.content, [{ image: { format: "png", source: { bytes: Uint8Array.of(1, 2) } } }]);
  assert.deepEqual(JSON.parse(catalogue.asked[0]?.body ?? ""), {
    turn: [{ reasoningContent: {} }, { toolUse: { toolUseId: "1", name: "a", input: {} } }],
  });
});

test("a conversation declares what was found in it, each tool once", async () => {
  const found = (...names: string[]) =>
    says(200, JSON.stringify({ answer: { role: "user", content: [] }, calls: [{ outcome: "ok", found: names }] }));
  await using catalogue = await scripted([says(200, "[]"), found("a", "b"), found("b", "c"), says(200, "[]")]);
  const conversation = catalogue.client.conversation("anthropic", { search: "only", session: "s" });
  await conversation.tools();
  await conversation.answer([]);
  await conversation.answer([]);
  await conversation.tools();
  assert.equal(JSON.parse(catalogue.asked[1]?.body ?? "").session, "s");
  assert.match(catalogue.asked[3]?.url ?? "", /search=only&names=a%2Cb%2Cc$/);
});

const event = (etag: string) => `: still here\n\nevent: declarations\ndata: ${JSON.stringify({ etag })}\n\n`;
const streams =
  (...parts: readonly string[]): Script =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const part of parts) response.write(part);
    response.end();
  };

test("a watch goes on over broken connections, tells each list once, and ends with its token", async () => {
  const whole = event("two");
  await using catalogue = await scripted([
    streams(event("one"), whole.slice(0, 20), whole.slice(20)),
    streams(event("two"), event("three")),
    says(401, '{"error":{"code":"Unauthenticated","message":"send a token"}}'),
  ]);
  const told: string[] = [];
  const watching = (async () => {
    for await (const etag of catalogue.client.watch("neutral", {}, AbortSignal.timeout(30_000))) told.push(etag);
  })();
  assert.equal((await failure(watching)).code, "Unauthenticated");
  assert.deepEqual(told, ["one", "two", "three"]);
  assert.equal(catalogue.asked[0]?.url, "/v1/declarations?format=neutral&watch");
});

test("a watch ends when its signal says so", async () => {
  await using catalogue = await scripted([(response) => response.writeHead(200).write(event("one"))]);
  const ending = new AbortController();
  const told: string[] = [];
  for await (const etag of catalogue.client.watch("neutral", {}, ending.signal)) {
    told.push(etag);
    ending.abort();
  }
  assert.deepEqual(told, ["one"]);
});
