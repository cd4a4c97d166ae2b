import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { fixture, type HostUnderTest, startHost } from "./host-under-test.ts";
import { accept, ask, credential, open, read, servedLines, startServing, until } from "./serving-under-test.ts";

const next = "b".repeat(43);

describe("a host whose component serves HTTP", () => {
  let host: HostUnderTest;
  before(async () => {
    host = await startServing({ limits: { timeoutMs: 3_000, memoryBytes: 64 * 1024 * 1024, concurrency: 3 } });
  });
  after(() => host?.stop());

  test("gives it a request as it came, but for the credential and what is of one connection", async () => {
    const { status, text } = await ask(host, "/seen?a=%20b", {
      method: "PUT",
      headers: { host: "issues-mcp", "x-mine": "1", te: "trailers", connection: "x-gone", "content-type": "text/plain" },
      body: "hello",
    });
    assert.equal(status, 200);
    assert.match(text, /^Method::Put issues-mcp \/seen\?a=%20b\n/);
    assert.match(text, /^x-mine: 1$/m);
    assert.match(text, /^content-type: text\/plain$/m);
    assert.doesNotMatch(text, /ambit-hop|aaaa|^te:|^connection:/m);
  });

  test("logs what a request took, and neither where it went nor what it said", async () => {
    const from = host.lines.length;
    await ask(host, "/echo?secret=s3cret", { method: "POST", headers: { authorization: "s3cret" }, body: "s3cret" });
    const logged = () => servedLines(host, from).find(({ method }) => method === "POST");
    await until(() => logged() !== undefined);
    const { queueMs = -1, runMs = -1, ...line } = logged() ?? {};
    assert.deepEqual(line, { method: "POST", status: 200, receivedBytes: 6, sentBytes: 6 });
    assert.ok(queueMs >= 0 && runMs > 0);
    assert.ok(!host.lines.slice(from).some((text) => text.includes("s3cret") || text.includes(credential)));
  });

  test("makes a fresh instance for each request", async () => {
    for (let i = 0; i < 3; i++) assert.match((await ask(host, "/seen")).text, /^requests: 1$/m);
  });

  for (const [who, headers] of Object.entries<OutgoingHttpHeaders>({
    nobody: { "ambit-hop": undefined },
    "somebody else": { "ambit-hop": next },
    "somebody with the start of it": { "ambit-hop": credential.slice(0, 42) },
    "somebody with two": { "ambit-hop": [credential, credential] },
  })) {
    test(`refuses ${who} with 401, and runs nothing`, async () => {
      const request = httpRequest(`${host.serving}/trap`, { agent: false, headers: headers["ambit-hop"] === undefined ? {} : headers });
      request.end();
      const [response] = (await once(request, "response")) as [IncomingMessage];
      const { status, text } = await read(response);
      assert.equal(status, 401);
      assert.doesNotMatch(text, /aaaa/);
      assert.ok(!host.lines.some((line) => line.includes("/trap")));
    });
  }

  test("takes two credentials while they change, and the older no longer than it is told", async () => {
    assert.equal(await accept(host, 2, [next, credential]), 200);
    assert.equal((await ask(host, "/seen")).status, 200);
    assert.equal((await ask(host, "/seen", { headers: { "ambit-hop": next } })).status, 200);
    assert.equal(await accept(host, 3, [next]), 200);
    assert.equal((await ask(host, "/seen")).status, 401);
    assert.equal(await accept(host, 3, [credential]), 409);
    assert.equal(await accept(host, 4, [credential]), 200);
  });

  test("takes no hop that somebody else signed, or of another start, or without a credential", async () => {
    const put = async (document: string) => (await host.request("PUT", "/v1/hop", document)).status;
    assert.notEqual(await put(host.signedByRoot({ kind: "hop", boot: "other", version: 9, accept: [next] })), 200);
    assert.notEqual(await put(JSON.stringify({ payload: "{}", signature: "" })), 200);
    assert.notEqual(await put(host.signedByRoot({ kind: "hop", boot: host.boot, version: 9, accept: ["short"] })), 200);
    assert.notEqual(await put(host.signedByRoot({ kind: "hop", boot: host.boot, version: 9, accept: [next, credential, next] })), 200);
    assert.notEqual(await put(host.signedByRoot({ kind: "hop", boot: host.boot, version: 9 })), 200);
    assert.equal((await ask(host, "/seen")).status, 200);
  });

  test("takes no call, whoever signed its ticket", async () => {
    const { status, body } = await host.call({ interface: "wasi:http/incoming-handler@0.2.12", function: "handle" }, {});
    assert.deepEqual([status, body.code], [409, "ServesOnly"]);
  });

  test("brings bodies of any length both ways, and each piece when it comes", async () => {
    const request = open(host, "/echo", { method: "POST" });
    request.write("first");
    const [response] = (await once(request, "response")) as [IncomingMessage];
    const [first] = (await once(response, "data")) as [Buffer];
    assert.equal(first.toString(), "first");
    request.end("second");
    let rest = "";
    for await (const chunk of response) rest += chunk;
    assert.equal(rest, "second");
  });

  test("reads a body no further than the component does", async () => {
    const { text } = await ask(host, "/count", { method: "POST", body: Buffer.alloc(20 * 1024 * 1024) });
    assert.equal(text, String(20 * 1024 * 1024));
    assert.equal((await ask(host, "/unread", { method: "POST", body: Buffer.alloc(300 * 1024) })).text, "not read");
  });

  test("gives status, headers and trailers as the component set them, and frames the body itself", async () => {
    assert.deepEqual(await ask(host, "/status?418").then(({ status, text }) => [status, text]), [418, "so it is"]);
    const { headers, text, isCut } = await ask(host, "/length");
    assert.deepEqual([headers["content-length"], text, isCut], [undefined, "short", false]);
    assert.equal((await ask(host, "/trailers")).trailers["x-sum"], "42");
    assert.equal((await ask(host, "/status?204", { method: "HEAD" })).text, "");
  });

  const failures: Record<string, { status: number; isCut?: boolean; log: RegExp }> = {
    "/error": { status: 500, log: /it said no/ },
    "/nothing": { status: 500, log: /gave no response/ },
    "/unfinished": { status: 200, isCut: true, log: /gave its response up|did not finish/ },
    "/trap": { status: 500, log: /Trap/ },
    "/trap-later": { status: 200, isCut: true, log: /Trap/ },
    "/spin": { status: 504, log: /Deadline/ },
    "/grow": { status: 500, log: /OutOfMemory|Trap/ },
    "/bytes?3000000": { status: 200, isCut: true, log: /more than 1048576 bytes/ },
  };
  for (const [path, { status, isCut = false, log }] of Object.entries(failures)) {
    test(`of a component that fails at ${path} the client learns that and no more, and the next request is served`, async () => {
      const from = host.lines.length;
      const answer = await ask(host, path);
      assert.deepEqual([answer.status, answer.isCut], [status, isCut]);
      assert.doesNotMatch(answer.text, /said no|traps|wasm/);
      await until(() => host.lines.slice(from).some((line) => log.test(line)));
      assert.equal((await ask(host, "/seen")).status, 200);
    });
  }

  test("asks nobody whom it was not granted", async () => {
    const { status, text } = await ask(host, "/ask?issues.example.com");
    assert.equal(status, 502);
    assert.match(text, /not granted/);
  });

  test("serves as many at once as it may, lets others wait, and turns away what is too much with 503", async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => ask(host, "/spin")));
    const statuses = new Set(answers.map(({ status }) => status));
    assert.deepEqual([...statuses].sort(), [503, 504]);
    assert.ok(answers.some(({ status, headers }) => status === 503 && headers["retry-after"] !== undefined));
    await until(async () => (await ask(host, "/seen")).status === 200);
  });

  test("lets no client that reads nothing, sends nothing or goes away keep an instance beyond the deadline", async () => {
    const slow = open(host, "/count", { method: "POST" });
    slow.on("error", () => undefined);
    slow.write("one byte");
    const deaf = open(host, "/bytes?1000000");
    deaf.on("error", () => undefined);
    deaf.end();
    const gone = open(host, "/echo", { method: "POST" });
    gone.on("error", () => undefined);
    gone.write("hello");
    await once(gone, "response");
    gone.destroy();
    await until(async () => ((await host.request("GET", "/healthz")).body as { running: number }).running === 0);
    assert.equal((await ask(host, "/seen")).status, 200);
    for (const request of [slow, deaf]) request.destroy();
  });

  test("keeps a connection for the next request, and closes it after one that it refused", async () => {
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    const ports = new Set<number | undefined>();
    for (let i = 0; i < 3; i++) {
      const request = open(host, "/seen", { agent });
      request.end();
      const [response] = (await once(request, "response")) as [IncomingMessage];
      ports.add(response.socket.localPort);
      await read(response);
    }
    assert.equal(ports.size, 1);
    assert.equal((await ask(host, "/seen", { agent, headers: { "ambit-hop": next } })).headers.connection, "close");
    agent.destroy();
  });

  test("answers what is no HTTP, or two requests in one, with 400 and nothing else", async () => {
    const port = Number(new URL(host.serving ?? "").port);
    for (const bytes of [
      "nonsense\r\n\r\n",
      `POST /seen HTTP/1.1\r\nhost: a\r\nambit-hop: ${credential}\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      `GET /seen HTTP/1.1\r\nhost: a\r\nambit-hop: ${credential}\r\nx: ${"v".repeat(20_000)}\r\n\r\n`,
    ]) {
      const socket = connect(port, "127.0.0.1");
      socket.write(bytes);
      let text = "";
      for await (const chunk of socket) text += chunk;
      assert.match(text, /^HTTP\/1\.1 4(00|31) /);
    }
    assert.equal((await ask(host, "/seen")).status, 200);
  });
});

describe("a host whose component serves HTTP and is kept", () => {
  test("gives an instance the next request, until it fails", async () => {
    const host = await startServing({ limits: { concurrency: 1 }, config: { callsPerInstance: 100 } });
    const seen = async () => /^requests: (\d+)$/m.exec((await ask(host, "/seen")).text)?.[1];
    assert.equal(await seen(), "1");
    assert.equal(await seen(), "2");
    await ask(host, "/trap");
    assert.equal(await seen(), "1");
    await host.stop();
  });
});

describe("a host that does not serve yet", () => {
  test("waits for the hop, and then for nothing", async () => {
    const host = await startHost({ component: fixture("serving.wasm"), config: { serve: { address: "127.0.0.1", port: 0 } } });
    assert.deepEqual((await host.request("GET", "/readyz")).body, { ready: false, missing: ["hop"] });
    assert.equal((await ask(host, "/seen")).status, 401);
    await accept(host, 1, [credential]);
    assert.equal((await host.request("GET", "/readyz")).status, 200);
    await host.stop();
  });

  test("refuses a component that does not serve", async () => {
    const component = fixture("mission.wasm");
    const host = await startHost({ component, config: { serve: { address: "127.0.0.1", port: 0 } }, deliver: "nothing" });
    const { status, body } = await host.request("PUT", "/v1/component", component);
    assert.deepEqual([status, body.code], [409, "ServesNoHttp"]);
    await host.stop();
  });

  test("has no use for a hop where its component is a tool", async () => {
    const host = await startHost({ component: fixture("mission.wasm") });
    assert.equal(await accept(host, 1, [credential]), 409);
    await host.stop();
  });
});
