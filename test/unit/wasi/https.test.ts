import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { setDefaultCACertificates, type TLSSocket } from "node:tls";
import { probeOf, reaching } from "./probe.ts";

const fixture = (name: string): string => readFileSync(new URL(`../../fixtures/tls/${name}`, import.meta.url), "utf8");

describe("a component's requests over TLS", async () => {
  const make = await probeOf("probe.wasm");
  const seen: { servername: string | false | null; host: string | undefined; protocol: string | null }[] = [];
  let server: Server;

  before(async () => {
    server = createServer({ key: fixture("api.test.key"), cert: fixture("api.test.pem") }, (message, response) => {
      const socket = message.socket as TLSSocket & { servername?: string | false };
      seen.push({ servername: socket.servername ?? null, host: message.headers.host, protocol: socket.getProtocol() });
      response.end("sealed");
    });
    server.on("tlsClientError", () => undefined);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });

  after(() => server.close());

  const fetched = async (authority: string): Promise<string> => {
    const { port } = server.address() as AddressInfo;
    const run = make({
      ...reaching(["https://api.test", "https://other.test", "https://127.0.0.1"]),
      dial: async () => [{ address: "127.0.0.1", port }],
    });
    try {
      const request = { method: "GET", scheme: "https", authority, path: "/", headers: [], body: undefined, firstByteTimeout: undefined };
      return Buffer.from(((await run.call("fetch", request)) as { body: Uint8Array }).body).toString();
    } finally {
      run.dispose();
    }
  };

  it("are refused where the authority is not known", () => assert.rejects(fetched("api.test"), { payload: /TlsCertificateError/ }));

  describe("with a known authority", () => {
    before(() => setDefaultCACertificates([fixture("ca.pem")]));

    it("name the host that was granted, whatever address was dialled", async () => {
      assert.equal(await fetched("api.test"), "sealed");
      assert.deepEqual(seen.at(-1), { servername: "api.test", host: "api.test", protocol: "TLSv1.3" });
    });

    it("are refused where the certificate is another host's", async () => {
      const before = seen.length;
      await assert.rejects(fetched("other.test"), { payload: /TlsCertificateError/ });
      assert.equal(seen.length, before);
    });

    it("take a certificate that names the address, and send no name", async () => {
      assert.equal(await fetched("127.0.0.1"), "sealed");
      assert.equal(seen.at(-1)?.servername, false);
    });
  });
});
