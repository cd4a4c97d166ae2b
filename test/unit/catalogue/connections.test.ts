import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { Agent, request } from "node:https";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { Connections } from "../../../src/catalogue/connections.ts";
import { defaultServerLimits } from "../../../src/catalogue/server.ts";
import { newCertificateKey } from "../../../src/identity/certificate.ts";
import { certifyServer, newAuthority } from "../../../src/identity/host-identity.ts";
import { serving } from "./serving.ts";

/** A connection from an address, as far as it is looked at. */
class Connection extends EventEmitter {
  readonly remoteAddress: string;
  readonly remotePort: number;
  destroyed = false;

  constructor(address: string, port: number) {
    super();
    this.remoteAddress = address;
    this.remotePort = port;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit("close");
  }
}

const scene = (most: number, mostOfAddress: number) => {
  const connections = new Connections({ connections: most, connectionsPerAddress: mostOfAddress });
  let port = 1000;
  const open = (address: string, isKnown = false): Connection => {
    const connection = new Connection(address, port++);
    connections.opened(connection as unknown as Socket);
    if (isKnown) connections.callerIsKnown(connection);
    return connection;
  };
  return { open };
};

test("an address may have its share, and again when one of it is closed", () => {
  const { open } = scene(100, 2);
  const [first, second, third] = [open("a"), open("a", true), open("a")];
  assert.deepEqual([first.destroyed, second.destroyed, third.destroyed], [false, false, true]);
  assert.equal(open("b").destroyed, false);
  second.destroy();
  assert.equal(open("a").destroyed, false);
});

test("where there are too many, the oldest one makes room whose caller isn't known", () => {
  const { open } = scene(3, 100);
  const [known, older, newer, newest] = [open("a", true), open("b"), open("c"), open("d")];
  assert.deepEqual(
    [known, older, newer, newest].map(({ destroyed }) => destroyed),
    [false, true, false, false],
  );
});

test("where all are known, the newest makes room", () => {
  const { open } = scene(2, 100);
  const [first, second, third] = [open("a", true), open("b", true), open("c")];
  assert.deepEqual([first.destroyed, second.destroyed, third.destroyed], [false, false, true]);
});

test("a caller that is known by its token keeps its connection over TLS too, however many come", async () => {
  const authority = newAuthority("catalogue", Date.now());
  const key = newCertificateKey();
  const cert = certifyServer(authority, ["localhost"], createPublicKey(key), Date.now(), 3_600_000);
  const tls = { cert, key: key.export({ type: "pkcs8", format: "pem" }) };
  await using served = await serving({}, { tls, limits: { ...defaultServerLimits, connections: 3 } });
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: authority.certificate });
  const ask = async (): Promise<number> => {
    const headers = { authorization: "Bearer secret" };
    const sent = request({ host: "localhost", port: served.port, path: "/v1/declarations", agent, headers }).end();
    const [response] = await once(sent, "response");
    await text(response);
    return sent.reusedSocket ? response.statusCode : -response.statusCode;
  };
  assert.equal(await ask(), -200, "on a new connection");
  const others = Array.from({ length: 8 }, () => connect(served.port, "127.0.0.1").on("error", () => undefined));
  const closed = others.slice(0, 5).map((socket) => once(socket.resume(), "close"));
  await Promise.all(closed);
  assert.equal(await ask(), 200, "on the same one");
  for (const socket of others) socket.destroy();
  agent.destroy();
});
