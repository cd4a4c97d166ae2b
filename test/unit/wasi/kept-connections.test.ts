import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { tableResolver } from "../../../src/egress/resolver.ts";
import { defaultWasiBudgets } from "../../../src/host/wasi/call-context.ts";
import { KeptConnections } from "../../../src/host/wasi/http/kept-connections.ts";
import { type ProbeRun, probeOf, probeRequest, reaching } from "./probe.ts";

const whole = (text: string, headers = ""): string => `HTTP/1.1 200 OK\r\n${headers}content-length: ${text.length}\r\n\r\n${text}`;

/** What each path is answered with, as bytes; null: the connection ends instead. */
const answers: Record<string, (timesOnConnection: number) => string | null> = {
  "/": () => whole("hello"),
  "/closing": () => whole("bye", "connection: close\r\n"),
  "/old": () => "HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nold",
  "/twice": () => whole("one") + whole("two"),
  "/long": () => whole("x".repeat(200_000)),
  "/leaves": (times) => (times === 1 ? whole("first") : null),
};

interface Seen {
  readonly connection: number;
  readonly line: string;
  readonly head: string;
}

describe("a connection of a component", async () => {
  const make = await probeOf("probe.wasm");
  const seen: Seen[] = [];
  const sockets: Socket[] = [];
  let server: Server;
  let now = 0;
  let connections: KeptConnections;
  let budgets = defaultWasiBudgets;
  const runs: ProbeRun[] = [];

  before(async () => {
    server = createServer((socket) => {
      const connection = sockets.push(socket);
      let text = "";
      let times = 0;
      socket.on("error", () => undefined);
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1");
        for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
          const head = text.slice(0, end);
          const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
          if (text.length < end + 4 + length) return;
          text = text.slice(end + 4 + length);
          const line = head.slice(0, head.indexOf("\r\n"));
          seen.push({ connection, line, head });
          times++;
          const answer = answers[line.split(" ")[1] ?? ""]?.(times);
          if (answer === null || answer === undefined) socket.destroy();
          else socket.write(answer);
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });

  beforeEach(() => {
    for (const run of runs.splice(0)) run.dispose();
    seen.splice(0);
    now = 0;
    budgets = defaultWasiBudgets;
    connections = new KeptConnections(() => now);
  });

  after(() => {
    for (const run of runs) run.dispose();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  const portOf = (): number => {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the server does not listen");
    return address.port;
  };

  /** A fresh instance's request, as each call has one. */
  const fetched = async (given: Record<string, unknown> = {}): Promise<string> => {
    const at = `127.0.0.1:${portOf()}`;
    const run = make({
      ...reaching(["http://api.test", "http://other.test"], { "api.test:80": at, "other.test:80": at }),
      connections,
      budgets,
    });
    runs.push(run);
    const response = (await run.call("fetch", probeRequest(given))) as { body: Uint8Array };
    run.dispose();
    return Buffer.from(response.body).toString();
  };

  const used = (): number => new Set(seen.map(({ connection }) => connection)).size;
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise((resolve) => setImmediate(resolve));
  };
  const post = { method: "POST", body: Buffer.from("{}") };

  it("carries the requests of one instance after another's", async () => {
    for (let i = 0; i < 20; i++) assert.equal(await fetched(i % 2 === 0 ? {} : post), "hello");
    assert.equal(used(), 1);
    assert.match(seen[0]?.head ?? "", /connection: keep-alive/i);
  });

  it("is another for another host at the same address", async () => {
    await fetched();
    await fetched({ authority: "other.test" });
    assert.equal(used(), 2);
  });

  it("carries requests beside each other on connections of their own", async () => {
    await Promise.all([fetched(), fetched(), fetched()]);
    assert.equal(used(), 3);
  });

  for (const [what, first] of [
    ["whose server said that it closes it", { path: "/closing" }],
    ["of a server that speaks HTTP/1.0", { path: "/old" }],
    ["by which a client authenticates all that follows", { headers: [["authorization", "NTLM abc"]] }],
  ] as const) {
    it(`${what} is used once`, async () => {
      await fetched(first);
      await fetched();
      assert.equal(used(), 2);
    });
  }

  it("that brings more than was asked for is used no more", async () => {
    await fetched({ path: "/twice" }).catch(() => undefined);
    assert.equal(await fetched(), "hello");
    assert.equal(used(), 2);
  });

  it("that says something while nobody asks is used no more", async () => {
    await fetched();
    sockets.at(-1)?.write(whole("planted"));
    assert.equal(await fetched(), "hello");
    assert.equal(used(), 2);
  });

  it("whose response was not read to its end is closed", async () => {
    budgets = { ...defaultWasiBudgets, responseBodyBytes: 100_000 };
    await assert.rejects(fetched({ path: "/long" }), { payload: /HTTP-response-body-size/ });
    const last = sockets.at(-1);
    await until(() => last?.destroyed === true);
    assert.equal(await fetched(), "hello");
    assert.equal(used(), 2);
  });

  it("that its server left is no request's", async () => {
    await fetched();
    sockets.at(-1)?.destroy();
    assert.equal(await fetched(post), "hello");
    assert.equal(used(), 2);
  });

  it("that its server leaves as a request comes: the request is sent again where it may run twice", async () => {
    await fetched({ path: "/leaves" });
    assert.equal(await fetched({ path: "/leaves" }), "first");
    assert.deepEqual(
      seen.map(({ line }) => line.split(" ")[0]),
      ["GET", "GET", "GET"],
    );
  });

  it("that its server leaves as a request comes: the request fails where it may not run twice", async () => {
    for (const given of [post, { ...post, method: "PUT" }, { method: "PATCH", body: Buffer.from("x") }]) {
      seen.splice(0);
      connections = new KeptConnections(() => now);
      await fetched({ path: "/leaves" });
      await assert.rejects(fetched({ path: "/leaves", ...given }), { payload: /ConnectionTerminated/ });
      assert.equal(seen.filter(({ line }) => !line.startsWith("GET")).length, 1, given.method);
    }
  });

  it("is kept for requests that may be repeated, and a second for others", async () => {
    await fetched();
    now = 1_500;
    await fetched(post);
    assert.equal(used(), 2);
    now = 10_000;
    await fetched();
    assert.equal(used(), 2);
  });

  it("is kept unused for a time, and in all for a time", async () => {
    await fetched();
    now = 16_000;
    await fetched();
    assert.equal(used(), 2);
    for (; now < 400_000; now += 10_000) await fetched();
    assert.ok(used() > 2);
  });

  it("is one of a few that are kept", async () => {
    const before = sockets.length;
    await Promise.all(Array.from({ length: 12 }, () => fetched()));
    await until(() => sockets.slice(before).filter(({ destroyed }) => !destroyed).length <= 8);
  });

  it("is closed where its address may be dialled no more", async () => {
    await fetched();
    const last = sockets.at(-1);
    connections.keepOnly(({ target }) => target.host !== "api.test");
    await until(() => last?.destroyed === true);
  });

  it("is not used where the address is another now", async () => {
    await fetched();
    const run = make({
      ...reaching(["http://api.test"]),
      dial: tableResolver(() => new Map([["api.test:80", ["127.0.0.9"]]])),
      connections,
    });
    runs.push(run);
    await assert.rejects(run.call("fetch", probeRequest()), { payload: /ConnectionRefused/ });
    assert.equal(seen.length, 1);
  });
});
