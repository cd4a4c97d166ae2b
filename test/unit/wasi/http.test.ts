import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";
import { after, before, describe, it } from "node:test";
import { systemResolver } from "../../../src/egress/resolver.ts";
import { defaultWasiBudgets } from "../../../src/host/wasi/call-context.ts";
import { type ProbeRun, probeOf, probeRequest, reaching } from "./probe.ts";

interface Response {
  readonly status: number;
  readonly headers: readonly [string, string][];
  readonly body: Uint8Array;
}

const portOf = (server: Server | TcpServer): number => (server.address() as AddressInfo).port;

const listening = async <S extends Server | TcpServer>(server: S): Promise<S> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
};

const bodyOf = async (message: IncomingMessage): Promise<Buffer> => Buffer.concat(await message.toArray());

describe("a component's requests", async () => {
  const make = await probeOf("probe.wasm");
  const seen: { method: string; url: string; headers: string[]; body: Buffer }[] = [];
  const closed: Promise<unknown>[] = [];
  let server: Server;
  let run: ProbeRun;

  const answers: Record<string, RequestListener> = {
    "/": (_, response) =>
      response.writeHead(200, { "content-type": "text/plain", "x-seen": "yes", "keep-alive": "timeout=5" }).end("hello"),
    "/elsewhere": (_, response) => response.writeHead(302, { location: "http://other.test/" }).end(),
    "/empty": (_, response) => response.writeHead(204).end(),
    "/big": (_, response) => response.end(Buffer.alloc(300_000, "x")),
    "/cut": (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("partial", () => response.destroy());
    },
    "/never": () => undefined,
    "/wide": (_, response) => response.writeHead(200, { "x-wide": "x".repeat(100_000) }).end(),
    "/upgrade": (_, response) => response.socket?.end("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"),
  };

  before(async () => {
    server = await listening(
      createServer({ maxHeaderSize: 200_000 }, (message, response) => {
        void bodyOf(message).then(
          (body) => {
            const url = message.url ?? "";
            seen.push({ method: message.method ?? "", url, headers: message.rawHeaders, body });
            (answers[url] ?? answers["/"])?.(message, response);
          },
          () => undefined,
        );
      }),
    );
    server.on("connection", (socket: Socket) => {
      closed.push(new Promise((resolve) => socket.on("close", resolve)));
    });
    run = make(overrides(["http://api.test"]));
  });

  after(() => {
    run.dispose();
    server.closeAllConnections();
    server.close();
  });

  const overrides = (hosts: readonly string[], more: Record<string, string> = {}) =>
    reaching(hosts, { "api.test:80": `127.0.0.1:${portOf(server)}`, ...more });

  const fetched = async (given: Record<string, unknown> = {}, by = run): Promise<Response> =>
    (await by.call("fetch", probeRequest(given))) as Response;

  it("reach a granted host and give status, headers and body", async () => {
    const response = await fetched();
    assert.equal(response.status, 200);
    assert.equal(Buffer.from(response.body).toString(), "hello");
    const headers = Object.fromEntries(response.headers);
    assert.equal(headers["x-seen"], "yes");
    assert.equal(headers["keep-alive"], undefined);
    assert.equal(headers.connection, undefined);
  });

  it("send the method, path and headers of the guest, and the host that was judged", async () => {
    await fetched({
      method: "HEAD",
      path: "/a?b=%20c",
      headers: [
        ["X-Mine", "1"],
        ["accept", "*/*"],
      ],
    });
    const last = seen.at(-1);
    assert.equal(last?.method, "HEAD");
    assert.equal(last?.url, "/a?b=%20c");
    assert.deepEqual(last?.headers, ["host", "api.test", "x-mine", "1", "accept", "*/*", "connection", "close"]);
  });

  it("are told with what admitted them, how long they took and what came of them", async () => {
    const below = make(overrides(["http://*.test", "http://api.test"]));
    const since = performance.now();
    assert.equal(below.useSince(since), null);
    await fetched({ method: "POST", body: Buffer.from("abc"), path: "/secret?of=a-value" }, below);
    await fetched({ method: "PROPFIND", path: "/empty" }, below);
    await assert.rejects(fetched({ authority: "evil.example" }, below));
    const use = below.useSince(since);
    below.dispose();
    assert.ok(use);
    const { exchanges, ...counts } = use;
    assert.deepEqual(counts, { requests: 3, deniedRequests: 1, sentBytes: 3, receivedBytes: 5, writtenFileBytes: 0 });
    assert.deepEqual(
      exchanges.map(({ method, host, status }) => ({ method, host, status })),
      [
        { method: "POST", host: "http://*.test", status: 200 },
        { method: "other", host: "http://*.test", status: 204 },
      ],
    );
    const [first, second] = exchanges;
    assert.ok(first && second && first.atMs >= 0 && first.ms > 0 && second.atMs >= first.atMs + first.ms);
    assert.doesNotMatch(JSON.stringify(use), /secret|api\.test|evil/);
  });

  it("are counted beyond those that are told one by one", async () => {
    const many = make(overrides(["http://api.test"]));
    for (let count = 0; count < 20; count++) await fetched({ path: "/empty" }, many);
    const use = many.useSince(0);
    many.dispose();
    assert.deepEqual([use?.requests, use?.exchanges.length], [20, 16]);
  });

  it("send a small body whole, with its length", async () => {
    await fetched({ method: "POST", body: Buffer.from("abc") });
    assert.equal(seen.at(-1)?.body.toString(), "abc");
    assert.ok(seen.at(-1)?.headers.join().includes("content-length,3"));
  });

  it("send a large body in chunks", async () => {
    await fetched({ method: "POST", body: Buffer.alloc(500_000, "y") });
    assert.equal(seen.at(-1)?.body.length, 500_000);
    assert.ok(seen.at(-1)?.headers.join().includes("transfer-encoding,chunked"));
  });

  it("say that a body is empty where the method expects one", async () => {
    await fetched({ method: "POST" });
    assert.ok(seen.at(-1)?.headers.join().includes("content-length,0"));
  });

  it("hold a guest to the length that it declared", async () => {
    const headers = [["content-length", "5"]];
    await fetched({ method: "POST", headers, body: Buffer.from("12345") });
    assert.equal(seen.at(-1)?.body.toString(), "12345");
    const before = seen.length;
    await assert.rejects(fetched({ method: "POST", headers, body: Buffer.from("123") }), { payload: /HttpRequestBodySize/ });
    await assert.rejects(fetched({ method: "POST", headers, body: Buffer.from("1234567") }), { payload: /longer than declared/ });
    await assert.rejects(fetched({ method: "POST", headers: [...headers, ...headers], body: Buffer.from("12345") }));
    assert.equal(seen.length, before);
  });

  it("give redirects to the guest and follow none", async () => {
    const before = seen.length;
    const response = await fetched({ path: "/elsewhere" });
    assert.equal(response.status, 302);
    assert.equal(Object.fromEntries(response.headers).location, "http://other.test/");
    assert.equal(seen.length, before + 1);
  });

  it("take responses without a body and large ones", async () => {
    assert.equal((await fetched({ path: "/empty" })).status, 204);
    assert.equal((await fetched({ path: "/big" })).body.length, 300_000);
  });

  it("run beside each other", async () => {
    const both = (await run.call("fetchBoth", probeRequest(), probeRequest({ path: "/big" }))) as [Response, Response];
    assert.deepEqual(
      both.map(({ body }) => body.length),
      [5, 300_000],
    );
  });

  const denied: Record<string, { given: Record<string, unknown>; message: RegExp }> = {
    "another host": { given: { authority: "evil.test" }, message: /http:\/\/evil\.test:80 is not granted/ },
    "another port": { given: { authority: "api.test:8080" }, message: /http:\/\/api\.test:8080 is not granted/ },
    "another scheme": { given: { scheme: "https" }, message: /https:\/\/api\.test:443 is not granted/ },
    "no scheme, which means https": { given: { scheme: undefined }, message: /https:\/\/api\.test:443 is not granted/ },
    "a scheme that is none of HTTP's": { given: { scheme: "ftp" }, message: /ftp:\/\/api\.test is not http or https/ },
    "a name below it": { given: { authority: "a.api.test" }, message: /a\.api\.test:80 is not granted/ },
    "its address": { given: { authority: "127.0.0.1" }, message: /127\.0\.0\.1:80 is not granted/ },
    "user info before another host": { given: { authority: "api.test@evil.test" }, message: /user info/ },
    "a trailing dot": { given: { authority: "api.test." }, message: /trailing dot/ },
    "another Host header": { given: { headers: [["Host", "evil.test"]] }, message: /Host header differs/ },
    "two Host headers, one of them another": {
      given: {
        headers: [
          ["host", "api.test"],
          ["host", "evil.test"],
        ],
      },
      message: /Host header differs/,
    },
    "a Host header with another port": { given: { headers: [["host", "api.test:8080"]] }, message: /Host header differs/ },
  };
  for (const [what, { given, message }] of Object.entries(denied)) {
    it(`to ${what} are denied by name, and nothing is sent`, async () => {
      const before = seen.length;
      await assert.rejects(fetched(given), (error: { payload?: string }) => {
        assert.match(error.payload ?? "", message);
        assert.match(error.payload ?? "", /request denied/);
        return true;
      });
      assert.equal(seen.length, before);
      assert.match(run.denied.at(-1)?.detail ?? "", message);
    });
  }

  it("may repeat the Host header that was judged", async () =>
    assert.equal((await fetched({ headers: [["host", "API.test:80"]] })).status, 200));

  const unsayable: Record<string, Record<string, unknown>> = {
    "a header that belongs to the connection": { headers: [["transfer-encoding", "chunked"]] },
    "an upgrade": { headers: [["Upgrade", "h2c"]] },
    "a header with a line's end": { headers: [["x", "a\r\nhost: evil.test"]] },
    "a header name with a space": { headers: [["x y", "a"]] },
    "a path with a line's end": { path: "/ HTTP/1.1\r\nhost: evil.test\r\n\r\n" },
    "a path with a space": { path: "/a b" },
    "a path that is a URL": { path: "http://evil.test/" },
    "an authority with a path": { authority: "api.test/x" },
    "a method with a space": { method: "GET /" },
    CONNECT: { method: "CONNECT" },
    "connect in lower case": { method: "connect" },
    "no authority": { authority: undefined },
  };
  for (const [what, given] of Object.entries(unsayable)) {
    it(`with ${what} are refused before anything is sent`, async () => {
      const before = seen.length;
      await assert.rejects(fetched(given), (error: { payload?: unknown }) => typeof error.payload === "string");
      assert.equal(seen.length, before);
    });
  }

  const failures: Record<string, { given: Record<string, unknown>; message: RegExp }> = {
    "a response that ends early": { given: { path: "/cut" }, message: /ConnectionTerminated|connection-terminated|incomplete/ },
    "a response that does not come in time": { given: { path: "/never", firstByteTimeout: 20_000_000n }, message: /HttpResponseTimeout/ },
    "a response with too large a head": { given: { path: "/wide" }, message: /HttpResponseHeaderSectionSize/ },
    "a response that changes the protocol": { given: { path: "/upgrade" }, message: /HttpUpgradeFailed/ },
  };
  for (const [what, { given, message }] of Object.entries(failures)) {
    it(`tell the guest of ${what}`, () => assert.rejects(fetched(given), { payload: message }));
  }

  it("tell the guest that nobody listens", async () => {
    const unused = await listening(createTcpServer());
    const port = portOf(unused);
    await new Promise((resolve) => unused.close(resolve));
    const other = make(overrides(["gone.test:80"], { "gone.test:80": `127.0.0.1:${port}` }));
    await assert.rejects(fetched({ authority: "gone.test" }, other), { payload: /ConnectionRefused/ });
    other.dispose();
  });

  it("tell the guest that what answers does not speak HTTP", async () => {
    const babble = await listening(createTcpServer((socket) => socket.on("error", () => undefined).end("220 hello\r\n")));
    const other = make(overrides(["ftp.test:80"], { "ftp.test:80": `127.0.0.1:${portOf(babble)}` }));
    await assert.rejects(fetched({ authority: "ftp.test" }, other), { payload: /HttpProtocolError/ });
    other.dispose();
    babble.close();
  });

  it("to a granted name that resolves to this machine are denied by name, without the address", async () => {
    const other = make({
      ...reaching(["inner.test"]),
      dial: systemResolver(async () => ["127.0.0.1"], {}),
    });
    await assert.rejects(fetched({ authority: "inner.test" }, other), (error: { payload?: string }) => {
      assert.match(error.payload ?? "", /inner\.test.*may not be dialled/);
      assert.doesNotMatch(error.payload ?? "", /127\.0\.0\.1/);
      return true;
    });
    assert.match(other.denied.at(-1)?.detail ?? "", /127\.0\.0\.1 is a loopback address/);
    other.dispose();
  });

  it("go to the next address when the first does not answer", async () => {
    const dial = async () => [
      { address: "127.0.0.1", port: 1 },
      { address: "127.0.0.1", port: portOf(server) },
    ];
    const other = make({ ...reaching(["api.test"]), dial });
    assert.equal((await fetched({}, other)).status, 200);
    other.dispose();
  });

  it("are limited in number, in how many run at once and in bytes", async () => {
    const limited = (budgets: Partial<typeof defaultWasiBudgets>) =>
      make({ ...overrides(["http://api.test"]), budgets: { ...defaultWasiBudgets, ...budgets } });
    const few = limited({ requests: 2 });
    await fetched({}, few);
    await fetched({}, few);
    await assert.rejects(fetched({}, few), { payload: /ConnectionLimitReached/ });
    const narrow = limited({ connections: 1 });
    await assert.rejects(narrow.call("fetchBoth", probeRequest(), probeRequest()), { payload: /ConnectionLimitReached/ });
    assert.equal((await fetched({}, narrow)).status, 200);
    const small = limited({ responseBodyBytes: 1000 });
    await assert.rejects(fetched({ path: "/big" }, small), { payload: /HTTP-response-body-size/ });
    const quiet = limited({ requestBodyBytes: 1000 });
    await assert.rejects(fetched({ method: "POST", body: Buffer.alloc(2000) }, quiet), { payload: /longer than/ });
    for (const each of [few, narrow, small, quiet]) each.dispose();
  });

  it("end with their call, also those still under way", async () => {
    const other = make(overrides(["http://api.test"]));
    const waiting = other.call("fetch", probeRequest({ path: "/never" }));
    void waiting.catch(() => undefined);
    const before = closed.length;
    while (closed.length === before || seen.at(-1)?.url !== "/never") await new Promise((resolve) => setImmediate(resolve));
    other.dispose();
    await Promise.all(closed);
  });

  it("end when the guest drops them", async () => {
    const other = make(overrides(["http://api.test"]));
    await other.call("startAndDrop", probeRequest({ path: "/never" }), 5);
    await Promise.all(closed);
    other.dispose();
  });
});
