import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, it } from "node:test";
import type { SignedDocument } from "../../../src/api/host.ts";
import { tryCanary } from "../../../src/host/canary.ts";
import { Deliveries } from "../../../src/host/delivery.ts";

describe("what a host tells of a canary", () => {
  it("that it reached it, and sent nothing", async () => {
    let received = 0;
    const server = createServer((socket) => {
      socket.on("data", (chunk) => {
        received += chunk.length;
      });
      socket.on("error", () => {});
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    assert.deepEqual(await tryCanary({ address: "127.0.0.1", port }), { reached: true, how: "connected" });
    server.close();
    await once(server, "close");
    assert.equal(received, 0);
    assert.deepEqual(await tryCanary({ address: "127.0.0.1", port }), { reached: false, how: "ECONNREFUSED" });
  });
});

describe("a canary that a host takes", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const deliveries = new Deliveries(publicKey, "boot-1");
  const signed = (document: object): SignedDocument => {
    const payload = JSON.stringify(document);
    return { payload, signature: sign(null, Buffer.from(payload), privateKey).toString("base64") };
  };
  const canary = { kind: "canary", boot: "boot-1", address: "10.96.0.1", port: 443 };

  it("is signed, for this start, and names an address", () => {
    assert.deepEqual(deliveries.takeCanary(signed(canary)), { address: "10.96.0.1", port: 443 });
  });

  const refused: Record<string, { document: unknown; code: string }> = {
    "unsigned ones": { document: { ...signed(canary), signature: "" }, code: "SignatureWrong" },
    "those for another start": { document: signed({ ...canary, boot: "boot-2" }), code: "DeliveryMisdirected" },
    "other documents": { document: signed({ ...canary, kind: "addresses" }), code: "DeliveryMalformed" },
    "names, which would be looked up": { document: signed({ ...canary, address: "example.com" }), code: "DeliveryMalformed" },
    "ports that are none": { document: signed({ ...canary, port: 65_536 }), code: "DeliveryMalformed" },
  };
  for (const [what, { document, code }] of Object.entries(refused)) {
    it(`is not: ${what}`, () => assert.throws(() => deliveries.takeCanary(document), { code }));
  }
});
