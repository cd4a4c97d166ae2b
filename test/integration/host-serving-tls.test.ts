import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createPublicKey, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request as httpsRequest } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { sha256Of } from "../../src/api/digest.ts";
import { defaultHostLimits, type HopReach, type HostConfig } from "../../src/api/host.ts";
import { hostArguments, hostEntry, hostEnvironment } from "../../src/host/node-arguments.ts";
import { newCertificateKey } from "../../src/identity/certificate.ts";
import { certifyHost, hostServerName, hostTls, newAuthority } from "../../src/identity/host-identity.ts";
import { bridgeComponent } from "./bridge-under-test.ts";
import { type HostUnderTest, startHost, temporaryFolder } from "./host-under-test.ts";
import { credential, until } from "./serving-under-test.ts";

const component = readFileSync(new URL("../../examples/mcp-server-component/issues-mcp.wasm", import.meta.url));
const authority = "issues-mcp";
type Servers = HopReach["servers"];

/** As in a pod: the operator's part is played by the test. */
describe("the hop to a host that serves over TLS", () => {
  const root = generateKeyPairSync("ed25519");
  const hosts = newAuthority("Ambit hosts", Date.now());
  const podUid = randomUUID();
  const bridges: HostUnderTest[] = [];
  let child: ChildProcess;
  let boot: string;
  let port: number;
  let servingPort: number;

  const ask = (at: number, method: string, path: string, body?: string | Buffer, options: object = { rejectUnauthorized: false }) =>
    new Promise<{ status: number; text: string; key: Buffer }>((answered, failed) => {
      const request = httpsRequest({ host: "127.0.0.1", port: at, method, path, agent: false, ...options }, async (response) => {
        const key = (response.socket as TLSSocket).getPeerX509Certificate()?.publicKey.export({ type: "spki", format: "der" });
        let text = "";
        for await (const chunk of response) text += chunk;
        answered({ status: response.statusCode ?? 0, text, key: key ?? Buffer.alloc(0) });
      });
      request.on("error", failed).end(body);
    });
  const signed = (payload: object): string => {
    const text = JSON.stringify(payload);
    return JSON.stringify({ payload: text, signature: sign(null, Buffer.from(text), root.privateKey).toString("base64") });
  };
  const deliver = async (path: string, document: object): Promise<void> => {
    const { status, text } = await ask(port, "PUT", path, signed({ boot, ...document }));
    assert.equal(status, 200, text);
  };

  before(async () => {
    const config: HostConfig = {
      component: sha256Of(component),
      rootKey: root.publicKey.export({ type: "spki", format: "der" }).toString("base64"),
      podUid,
      listen: { address: "127.0.0.1", port: 0 },
      serve: { address: "127.0.0.1", port: 0 },
      transport: "tls",
      allowedHosts: [],
      resolver: "table",
      hostOverrides: {},
      environment: {},
      mounts: [],
      limits: { ...defaultHostLimits, timeoutMs: 10_000 },
      callsPerInstance: 1,
      cacheFolder: temporaryFolder(),
    };
    child = spawn(process.execPath, [...hostArguments(config), hostEntry, "-"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: hostEnvironment(config),
    });
    child.stdin?.write(`${JSON.stringify(config)}\n`);
    const [line] = (await once(createInterface({ input: child.stdout ?? process.stdin }), "line")) as [string];
    const places = JSON.parse(line) as Record<"listening" | "serving", { port: number }>;
    [port, servingPort] = [places.listening.port, places.serving.port];
    const met = await ask(port, "GET", "/v1/boot");
    boot = JSON.parse(met.text).boot;
    const key = createPublicKey({ key: met.key, format: "der", type: "spki" });
    await deliver("/v1/certificate", { kind: "certificate", certificate: certifyHost(hosts, { podUid, boot }, key, Date.now()) });
    const signer = generateKeyPairSync("ed25519").publicKey.export({ type: "spki", format: "der" }).toString("base64");
    await deliver("/v1/keys", {
      kind: "keys",
      time: Date.now(),
      keys: [{ kid: "k", publicKey: signer, notAfter: Date.now() + 3_600_000 }],
    });
    await deliver("/v1/addresses", { kind: "addresses", version: 1, table: {} });
    await deliver("/v1/hop", { kind: "hop", version: 1, accept: [credential] });
    const path = "/v1/component";
    const announced = signed({ kind: "announcement", boot, path, bytes: component.length });
    const headers = { "ambit-announcement": Buffer.from(announced).toString("base64url"), "content-length": component.length };
    const { status, text } = await ask(port, "PUT", path, component, { rejectUnauthorized: false, headers });
    assert.equal(status, 200, text);
  });
  after(async () => {
    for (const bridge of bridges) await bridge.stop();
    child?.kill("SIGKILL");
  });

  /** Why a bridge that was told of these servers has no list; null where it has one. */
  const faultWith = async (servers: Servers): Promise<string | null> => {
    const bridge = await startHost({
      component: bridgeComponent,
      config: { hop: { authority }, environment: { MCP_URL: `http://${authority}/mcp` }, callsPerInstance: 1000 },
    });
    bridges.push(bridge);
    const reach: HopReach = { authority, credential, ca: hosts.certificate, servers };
    const document = bridge.signedByRoot({ kind: "hop", boot: bridge.boot, version: 1, reach });
    assert.equal((await bridge.request("PUT", "/v1/hop", document)).status, 200);
    const listing = bridge.signedByRoot({ kind: "listing", boot: bridge.boot, known: null, waitMs: 20_000 });
    let why: string | null = null;
    // The component may have asked before its host was told.
    await until(async () => {
      const { digest, fault } = (await bridge.request("POST", "/v1/listing", listing)).body;
      why = digest === null ? fault.message : null;
      return why === null || !why.includes("refused the connection");
    });
    return why;
  };
  const place = () => ({ address: "127.0.0.1", port: servingPort, serverName: hostServerName({ podUid, boot }) });

  /** Somebody at an address of the server's who has a certificate of the same authority, for another pod; counts what it is told. */
  const impostor = async (): Promise<{ port: number; heard: () => number; [Symbol.asyncDispose](): Promise<void> }> => {
    const key = newCertificateKey();
    const cert = certifyHost(hosts, { podUid: randomUUID(), boot: randomUUID() }, createPublicKey(key), Date.now());
    let requests = 0;
    const server = createServer({ key: key.export({ type: "pkcs8", format: "pem" }), cert }, (_, response) => {
      requests++;
      response.end();
    }).listen(0, "127.0.0.1");
    server.on("tlsClientError", () => undefined);
    await once(server, "listening");
    return {
      port: (server.address() as AddressInfo).port,
      heard: () => requests,
      [Symbol.asyncDispose]: async () => {
        server.close();
        server.closeAllConnections();
      },
    };
  };

  test("leads to the pod that was certified", async () => {
    assert.equal(await faultWith([place()]), null);
  });

  test("gives an impostor at the server's address nothing, and goes on to the next", async () => {
    await using other = await impostor();
    assert.equal(await faultWith([{ ...place(), port: other.port }, place()]), null);
    assert.equal(other.heard(), 0);
  });

  test("leads nowhere where there are impostors alone, or the pod has started anew", async () => {
    await using other = await impostor();
    assert.match((await faultWith([{ ...place(), port: other.port }])) ?? "", /certificate|secure/i);
    const started = hostServerName({ podUid, boot: randomUUID() });
    assert.match((await faultWith([{ ...place(), serverName: started }])) ?? "", /certificate|secure/i);
    assert.equal(other.heard(), 0);
  });

  test("lets in nobody without the credential, and speaks nothing but TLS", async () => {
    const { status } = await ask(servingPort, "POST", "/mcp", "{}", hostTls({ podUid, boot }, hosts.certificate));
    assert.equal(status, 401);
    const socket = connect(servingPort, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(`POST /mcp HTTP/1.1\r\nhost: a\r\nambit-hop: ${credential}\r\ncontent-length: 0\r\n\r\n`);
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    await once(socket, "close");
    assert.doesNotMatch(text, /HTTP\/1\.1 [12]/);
  });
});
