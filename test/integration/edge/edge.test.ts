import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { becomes } from "../../cluster/becomes.ts";
import { type Bystander, type EdgeServer, head, rawConnection, startBystander, startEdgeServer, writeOften } from "./edge-server.ts";
import type { FloodOrder } from "./flood-process.ts";

const megabyte = 1024 * 1024;

/** What anybody who reaches the catalogue may send it. A bystander calls a tool all along, on new connections, and must not notice. */
describe("bad input at a catalogue's edge harms nobody else", () => {
  let server: EdgeServer;
  let bystander: Bystander;

  before(async () => {
    server = await startEdgeServer();
  });

  after(async () => {
    await server?.stop();
  });

  beforeEach(() => {
    bystander = startBystander(server.port);
  });

  afterEach(async () => {
    const { answered, failures } = await bystander.stop();
    assert.deepEqual(failures, []);
    assert.ok(answered > 0);
    assert.deepEqual(server.faults, [], "none of it is a fault of the catalogue's");
    const isFree = await becomes(async () => (await server.holds()).connections <= 1, 15_000);
    assert.ok(isFree, "no connection is left behind");
  });

  const post = async (body: string | ReadableStream<Uint8Array>, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${server.port}/v1/calls`, {
      method: "POST",
      headers: { authorization: "Bearer attacker", "content-type": "application/json", connection: "close", ...headers },
      body,
      ...(typeof body === "string" ? {} : { duplex: "half" as const }),
    });
  const codeOf = async (response: Response): Promise<string> => ((await response.json()) as { error: { code: string } }).error.code;

  test("a hundred megabytes, announced or not, are refused at four, and not held", async () => {
    const before = (await server.holds()).megabytes;
    const chunk = Buffer.alloc(megabyte, " ");
    const pieces = {
      "content-length: 104857600": chunk,
      "transfer-encoding: chunked": Buffer.concat([Buffer.from("100000\r\n"), chunk, Buffer.from("\r\n")]),
    };
    const send = async (length: string, piece: Buffer): Promise<void> => {
      const connection = rawConnection(server.port);
      connection.socket.write(head([length]));
      await writeOften(connection, piece, 100);
      connection.socket.end();
      assert.match(await connection.heard, /^HTTP\/1\.1 413 /, length);
    };
    await Promise.all(Object.entries(pieces).map(([length, piece]) => send(length, piece)));
    const { megabytes } = await server.holds();
    assert.ok(megabytes - before < 150, `${Math.round(before)} MB, then ${Math.round(megabytes)} MB`);
  });

  test("a body that comes a byte at a time is cut off when its time is over, and so are headers", async () => {
    const starts = [head(["content-length: 1000"]), "POST /v1/calls HTTP/1.1\r\nhost: localhost\r\nx-slow: "];
    await Promise.all(
      starts.map(async (start) => {
        const { socket, heard } = rawConnection(server.port);
        socket.write(start);
        const drip = setInterval(() => socket.write(" "), 100);
        assert.match(await heard, /^HTTP\/1\.1 408 /);
        clearInterval(drip);
      }),
    );
  });

  test("who asks for much and reads none of it is cut off", async () => {
    const call = JSON.stringify({ name: "echo", arguments: { text: "x".repeat(900_000) } });
    const ask = `${head([`content-length: ${call.length}`])}${call}`;
    const asked = server.sent.length;
    const connections = Array.from({ length: 4 }, () => rawConnection(server.port));
    // Answers have their text twice; beyond what the operating system keeps, the server has to.
    const asking = connections.map((connection) => {
      connection.socket.pause();
      return writeOften(connection, ask, 20);
    });
    const hasBegun = async (): Promise<boolean> => server.sent.slice(asked).filter(({ body }) => body.length > 900_000).length > 8;
    assert.ok(await becomes(hasBegun, 20_000), "calls are made");
    assert.ok(await becomes(async () => (await server.holds()).connections <= 2, 20_000), "they are cut off");
    for (const { socket } of connections) socket.destroy();
    await Promise.all(asking);
  });

  test("JSON that nests a million levels deep is told so", async () => {
    const levels = 1_000_000;
    const nested = `{"name":"echo","arguments":{"text":${"[".repeat(levels)}${"]".repeat(levels)}}}`;
    const response = await post(nested);
    assert.deepEqual([response.status, await codeOf(response)], [400, "JsonTooDeep"]);
  });

  test("a client that goes away in the middle of anything leaves nothing", async () => {
    const parts = ["", "POST /v1/ca", head(["content-length: 50"]), `${head(["content-length: 50"])}{"name"`];
    await Promise.all(
      parts.flatMap((part) =>
        [true, false].map(async (isReset) => {
          const { socket, heard } = rawConnection(server.port);
          await once(socket, "connect");
          socket.write(part);
          if (isReset) socket.resetAndDestroy();
          else socket.end();
          await heard;
        }),
      ),
    );
  });

  test("a connection that never says anything is closed", async () => {
    const { heard } = rawConnection(server.port);
    assert.doesNotMatch(await heard, /^HTTP\/1\.1 2/);
  });

  test("ten thousand connections of one client keep nobody out", async () => {
    await flood({ port: server.port, addresses: ["127.0.0.2"], connections: 10_000 }, async () => {
      const { connections } = await server.holds();
      assert.ok(connections <= 1_024 + 2, `${connections} connections`);
    });
  });

  test("ten thousand connections of many clients keep nobody out", async () => {
    const addresses = Array.from({ length: 20 }, (_, index) => `127.0.0.${index + 2}`);
    await flood({ port: server.port, addresses, connections: 10_000 }, async () => {
      const { connections } = await server.holds();
      assert.ok(connections <= 4_096 + 2, `${connections} connections`);
    });
  });

  const disagreements: Record<string, { readonly lines: readonly string[]; readonly body: string; readonly answer: RegExp }> = {
    "two lengths": { lines: ["content-length: 2", "content-length: 50"], body: "{}", answer: /^HTTP\/1\.1 400 / },
    "a length and chunks": { lines: ["content-length: 2", "transfer-encoding: chunked"], body: "0\r\n\r\n{}", answer: /^HTTP\/1\.1 400 / },
    "a length that is none": { lines: ["content-length: +2"], body: "{}", answer: /^HTTP\/1\.1 400 / },
    "chunks that are no chunks": { lines: ["transfer-encoding: chunked"], body: "zz\r\n{}\r\n0\r\n\r\n", answer: /^HTTP\/1\.1 400 / },
    "a transfer encoding within another": { lines: ["transfer-encoding: chunked, gzip"], body: "0\r\n\r\n", answer: /^HTTP\/1\.1 400 / },
    "a body that is said to be compressed": {
      lines: ["content-length: 2", "content-encoding: gzip"],
      body: "{}",
      answer: /^HTTP\/1\.1 415 /,
    },
    "a body that is said to be another type": {
      lines: ["content-length: 2", "content-type: text/plain"],
      body: "{}",
      answer: /^HTTP\/1\.1 (400|415) /,
    },
    "a folded header": { lines: ["x-a: b\r\n c", "content-length: 2"], body: "{}", answer: /^HTTP\/1\.1 400 / },
    "a bare line feed": { lines: ["x-a: b\nx-c: d", "content-length: 2"], body: "{}", answer: /^HTTP\/1\.1 400 / },
    "two hosts": { lines: ["host: localhost", "content-length: 2"], body: "{}", answer: /^HTTP\/1\.1 400 / },
    "two tokens": { lines: ["authorization: Bearer neighbour", "content-length: 2"], body: "{}", answer: /^HTTP\/1\.1 4/ },
  };

  for (const [what, { lines, body, answer }] of Object.entries(disagreements)) {
    test(`headers and body that disagree are no call: ${what}`, async () => {
      const asked = server.sent.length;
      const { socket, heard } = rawConnection(server.port);
      socket.write(`${head([...lines, "connection: close"])}${body}`);
      assert.match(await heard, answer);
      assert.equal(server.sent.slice(asked).filter(({ body: sent }) => sent !== '{"text":"hello"}').length, 0);
    });
  }

  test("a request that is hidden behind another's body is never run", async () => {
    const hidden = JSON.stringify({ name: "echo", arguments: { text: "smuggled" } });
    const { socket, heard } = rawConnection(server.port);
    socket.write(
      `${head(["content-length: 0", "transfer-encoding: chunked"])}0\r\n\r\n${head([`content-length: ${hidden.length}`])}${hidden}`,
    );
    assert.match(await heard, /^HTTP\/1\.1 400 /);
    assert.ok(!server.sent.some(({ body }) => body.includes("smuggled")));
  });

  const outsiders: Record<string, { readonly headers: Record<string, string>; readonly status: number }> = {
    "a host that was made to resolve here": { headers: { host: "attacker.example" }, status: 421 },
    "a host with our name in it": { headers: { host: "localhost.attacker.example" }, status: 421 },
    "another machine's address": { headers: { host: "10.0.0.1" }, status: 421 },
    "a page's origin": { headers: { origin: "https://attacker.example" }, status: 403 },
    "a page without an origin": { headers: { origin: "null" }, status: 403 },
    "a token that nobody gave out": { headers: { authorization: "Bearer guessed" }, status: 401 },
    "a token in another scheme": { headers: { authorization: "Basic bmVpZ2hib3VyOg==" }, status: 401 },
    "a token of other characters": { headers: { authorization: "Bearer neigh\u00e9bour" }, status: 401 },
    "an identity in headers alone": {
      headers: { authorization: "", "x-remote-user": "system:serviceaccount:agents:neighbour" },
      status: 401,
    },
  };

  for (const [what, { headers, status }] of Object.entries(outsiders)) {
    test(`nobody gets in with ${what}`, async () => {
      const lines = Object.entries({ host: "localhost", authorization: "Bearer attacker", ...headers }).map(
        ([name, value]) => `${name}: ${value}`,
      );
      const { socket, heard } = rawConnection(server.port);
      socket.write(Buffer.from(`GET /v1/declarations HTTP/1.1\r\n${lines.join("\r\n")}\r\nconnection: close\r\n\r\n`, "latin1"));
      assert.match(await heard, new RegExp(`^HTTP/1\\.1 ${status} `));
    });
  }

  test("a ticket that was used is refused by the host, and one for other bytes too", async () => {
    const { status } = await post(JSON.stringify({ name: "echo", arguments: { text: "once" } }));
    assert.equal(status, 200);
    const used = server.sent.find(({ body }) => body === '{"text":"once"}');
    assert.ok(used);
    const replay = async (body: string) => {
      const response = await fetch(`${server.hostUrl}/v1/call`, {
        method: "POST",
        headers: { "ambit-ticket": used.ticket, "content-type": "application/json" },
        body,
      });
      return (await response.json()) as { refused?: boolean; code?: string };
    };
    assert.deepEqual(await replay(used.body).then(({ refused, code }) => [refused, code]), [true, "TicketUsed"]);
    assert.equal((await replay('{"text":"twice"}')).refused, true);
  });

  /** Holds so many connections open from a process of their own while `work` looks. */
  const flood = async (order: FloodOrder, work: () => Promise<void>): Promise<void> => {
    const child = fork(fileURLToPath(new URL("flood-process.ts", import.meta.url)));
    try {
      child.send(order);
      await once(child, "message");
      await work();
    } finally {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    }
  };
});
