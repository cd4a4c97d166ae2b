import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, Agent as HttpAgent, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import type { HostUnderTest } from "./host-under-test.ts";
import { ask, credential, open, read, servedLines, startServing, until } from "./serving-under-test.ts";

const mebibyte = 1024 * 1024;

describe("a host whose component serves HTTP, to clients that ask too much of it", () => {
  let host: HostUnderTest;
  let upstream: Server;
  /** Requests that the component made, which nobody answers. */
  const asked: Socket[] = [];
  before(async () => {
    upstream = createServer((request) => asked.push(request.socket)).listen(0, "127.0.0.1");
    await once(upstream, "listening");
    const { port } = upstream.address() as AddressInfo;
    host = await startServing({
      limits: { timeoutMs: 120_000, memoryBytes: 64 * mebibyte, concurrency: 1 },
      config: { allowedHosts: ["http://tracker.test"], hostOverrides: { "tracker.test:80": `127.0.0.1:${port}` } },
    });
  });
  after(async () => {
    await host?.stop();
    upstream?.closeAllConnections();
    upstream?.close();
  });

  test("passes a body of 1 GiB through without keeping it", async () => {
    await ask(host, "/count", { method: "POST", body: Buffer.alloc(mebibyte) });
    const before = host.residentBytes();
    let most = 0;
    const request = open(host, "/count", { method: "POST" });
    const piece = Buffer.alloc(mebibyte);
    for (let sent = 0; sent < 1024; sent++) {
      if (!request.write(piece)) await once(request, "drain");
      most = Math.max(most, host.residentBytes());
    }
    request.end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    assert.equal((await read(response)).text, String(1024 * mebibyte));
    assert.ok(most - before < 200 * mebibyte, `it took ${Math.round((most - before) / mebibyte)} MiB`);
  });

  test("keeps a connection after an answer that came before the body, and ends it where too much of that is left", async () => {
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    const small = await ask(host, "/unread", { method: "POST", body: Buffer.alloc(300 * 1024), agent });
    const again = await ask(host, "/unread", { agent });
    assert.deepEqual([small.text, again.text], ["not read", "not read"]);
    agent.destroy();
    const socket = connect(Number(new URL(host.serving ?? "").port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(`POST /unread HTTP/1.1\r\nhost: a\r\nambit-hop: ${credential}\r\ncontent-length: 1000000000\r\n\r\n`);
    const [bytes] = (await once(socket, "data")) as [Buffer];
    assert.match(bytes.toString(), /^HTTP\/1\.1 200 /);
    const piece = Buffer.alloc(mebibyte);
    let sent = 0;
    const pour = (): void => {
      if (socket.destroyed) return;
      sent += piece.length;
      socket.write(piece, () => setImmediate(pour));
    };
    pour();
    await until(() => socket.destroyed);
    assert.ok(sent < 100 * mebibyte, `${sent} bytes were taken`);
  });

  test("ends what the component asks of others when its client goes", async () => {
    const from = host.lines.length;
    const request = open(host, "/ask?tracker.test");
    request.on("error", () => undefined);
    request.end();
    await until(() => asked.length === 1);
    request.destroy();
    const [socket] = asked as [Socket];
    await until(() => socket.destroyed);
    await until(() => servedLines(host, from).length === 1);
    assert.equal(servedLines(host, from)[0]?.status, null);
  });

  test("does not run what was left before its turn", async () => {
    const from = host.lines.length;
    const first = open(host, "/count", { method: "POST" });
    first.on("error", () => undefined);
    first.write("x");
    await until(async () => ((await host.request("GET", "/healthz")).body as { running: number }).running === 1);
    const second = open(host, "/seen");
    second.on("error", () => undefined);
    second.end();
    await once(second, "finish");
    // It is queued before this one is taken, on a connection of its own or not.
    const third = ask(host, "/seen");
    second.destroy();
    await until(() => servedLines(host, from).length === 1);
    const { status, runMs, fault } = servedLines(host, from)[0] ?? {};
    assert.deepEqual([status, runMs, fault], [null, 0, "the client went away"]);
    first.end();
    assert.equal((await third).status, 200);
  });

  test("takes 256 connections of 10,000, and serves again when they are gone", async () => {
    const port = Number(new URL(host.serving ?? "").port);
    const sockets: Socket[] = [];
    let refused = 0;
    for (let opened = 0; opened < 10_000; opened += 500) {
      const batch = Array.from({ length: 500 }, () => connect(port, "127.0.0.1"));
      for (const socket of batch) {
        socket.on("error", () => undefined);
        socket.on("close", () => refused++);
      }
      sockets.push(...batch);
      await until(() => batch.every((socket) => !socket.connecting));
    }
    await until(() => refused >= 10_000 - 256);
    assert.equal((await host.request("GET", "/healthz")).status, 200);
    for (const socket of sockets) socket.destroy();
    await until(() =>
      ask(host, "/seen").then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  });

  test("asks nobody to send a body who may not", async () => {
    const port = Number(new URL(host.serving ?? "").port);
    const first = async (shown: string): Promise<string> => {
      const socket = connect(port, "127.0.0.1");
      socket.write(`POST /count HTTP/1.1\r\nhost: a\r\nambit-hop: ${shown}\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n`);
      const [bytes] = (await once(socket, "data")) as [Buffer];
      socket.destroy();
      return bytes.toString().slice(0, 12);
    };
    assert.equal(await first("b".repeat(43)), "HTTP/1.1 401");
    assert.equal(await first(credential), "HTTP/1.1 100");
  });

  test("bounds the headers of a response", async () => {
    const many = await ask(host, "/headers?100");
    assert.equal(many.headers["x-99"], "v".repeat(100));
    // The component gets an error where it makes more than it may, and answers without; what is more than can be handed over ends it.
    const tooMany = await ask(host, "/headers?1000");
    assert.deepEqual([tooMany.status, tooMany.headers["x-0"]], [200, undefined]);
    assert.equal((await ask(host, "/headers?100000")).status, 500);
  });
});
