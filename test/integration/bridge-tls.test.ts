import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { authorityCertificate, type Issuer, newCertificateKey, serverCertificate } from "../../src/identity/certificate.ts";
import { type Bridged, bridgeTo, type ServerProcess, startServer } from "./bridge-under-test.ts";
import { temporaryFolder } from "./host-under-test.ts";

const securedServer = fileURLToPath(new URL("../fixtures/mcp-servers/secured.ts", import.meta.url));

const hourMs = 3_600_000;
const issuer = (commonName: string): Issuer => ({ commonName, key: newCertificateKey() });
const authority = issuer("An authority that is trusted");
const stranger = issuer("An authority that nobody knows");

/** Key and certificate of a server; valid now, for the name that was granted, from the authority that is trusted, unless said otherwise. */
const certified = ({
  by = authority,
  name = "mcp.test",
  from = -hourMs,
  to = hourMs,
} = {}): { readonly key: string; readonly cert: string } => {
  const key = newCertificateKey();
  const now = Date.now();
  const request = { commonName: name, publicKey: createPublicKey(key), dnsNames: [name], notBefore: now + from, notAfter: now + to };
  return { key: key.export({ type: "pkcs8", format: "pem" }).toString(), cert: serverCertificate(request, by) };
};

/** What can be wrong with whom a connection leads to: how the server is told to show it. */
const faults: Record<string, readonly [path: string, options?: () => object]> = {
  "a certificate of another authority": ["/certificate", () => certified({ by: stranger })],
  "a certificate for another name": ["/certificate", () => certified({ name: "other.test" })],
  "a certificate for a name below": ["/certificate", () => certified({ name: "a.mcp.test" })],
  "a certificate that has expired": ["/certificate", () => certified({ to: -60_000 })],
  "a certificate that is not valid yet": ["/certificate", () => certified({ from: 60_000 })],
  "a certificate that it signed itself": ["/certificate", () => certified({ by: issuer("mcp.test") })],
  "TLS 1.1 at most": [
    "/certificate",
    () => ({ ...certified(), minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" }),
  ],
  "no TLS at all": ["/plain"],
  "a connection that ends at once": ["/closes"],
};

describe("a bridge to a server over TLS", () => {
  let server: ServerProcess;
  let bridged: Bridged;

  const tell = async (path: string, options?: object): Promise<{ port: number; heard: string[] }> => {
    const body = options === undefined ? {} : { body: JSON.stringify(options) };
    return (await (await fetch(`http://${server.target}${path}`, { method: path === "/" ? "GET" : "PUT", ...body })).json()) as {
      port: number;
      heard: string[];
    };
  };

  before(async () => {
    server = await startServer(securedServer);
    const { port } = await tell("/certificate", certified());
    const trusted = join(temporaryFolder(), "ca.pem");
    writeFileSync(trusted, authorityCertificate(authority, Date.now() - hourMs, Date.now() + hourMs));
    bridged = await bridgeTo(server.target, {
      environment: { NODE_EXTRA_CA_CERTS: trusted },
      config: {
        allowedHosts: ["https://mcp.test"],
        hostOverrides: { "mcp.test:443": `127.0.0.1:${port}` },
        environment: { MCP_URL: "https://mcp.test/mcp" },
      },
    });
  });
  after(async () => {
    await bridged?.stop();
    await server?.stop();
  });

  const called = async () => (await bridged.call("nothing")).body;

  it("calls where the certificate holds", async () => {
    const { listing, fault } = await bridged.ask();
    assert.equal(fault, null);
    assert.deepEqual(
      listing?.tools.map(({ name }) => name),
      ["nothing"],
    );
    assert.equal((await called()).text, "Sealed.");
  });

  for (const [what, [path, options]] of Object.entries(faults)) {
    it(`sends nothing where the server shows ${what} from now on, says so, and goes on once it shows a new one that holds`, async () => {
      const { heard } = await tell(path, options?.());
      const { outcome, code, ran, text: said } = await called();
      assert.deepEqual({ outcome, code, ran }, { outcome: "failed", code: "FarSideUnavailable", ran: false });
      assert.match(said, /no secure connection to mcp\.test: its certificate or its TLS does not hold/);
      assert.deepEqual((await tell("/")).heard, heard);
      await tell("/certificate", certified());
      assert.equal((await called()).text, "Sealed.");
    });
  }

  it("does not say that nothing was sent where the server asks for a certificate only after the handshake", async () => {
    const { key, cert } = certified();
    const { heard } = await tell("/certificate", { key, cert, requestCert: true, rejectUnauthorized: true, minVersion: "TLSv1.3" });
    const { outcome, code, ran } = await called();
    assert.deepEqual({ outcome, code, ran }, { outcome: "failed", code: "FarSideLost", ran: true });
    assert.deepEqual((await tell("/")).heard, heard);
    await tell("/certificate", certified());
    assert.equal((await called()).text, "Sealed.");
  });
});
