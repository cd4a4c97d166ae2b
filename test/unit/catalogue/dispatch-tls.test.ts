import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { dispatchToHost } from "../../../src/catalogue/dispatch.ts";
import { newCertificateKey } from "../../../src/identity/certificate.ts";
import {
  type Authority,
  certifyHost,
  type HostIdentity,
  hostTls,
  newAuthority,
  provisionalCertificate,
} from "../../../src/identity/host-identity.ts";
import { endpoint } from "./world.ts";

const authority = newAuthority("hosts", Date.now());
const pod: HostIdentity = { podUid: "2f1c9a60-0000-4000-8000-000000000001", boot: "boot-1" };

interface Shown {
  readonly by?: Authority;
  readonly to?: HostIdentity;
  readonly itself?: boolean;
}

/** What becomes of a call to `pod` at an address where somebody shows this certificate, and how many bytes of it they saw. */
const calling = async ({ by = authority, to = pod, itself = false }: Shown) => {
  const key = newCertificateKey();
  const cert = itself ? provisionalCertificate(key, Date.now()) : certifyHost(by, to, createPublicKey(key), Date.now());
  let requests = 0;
  const server = createServer({ cert, key: key.export({ type: "pkcs8", format: "pem" }) }, (_, response) => {
    requests++;
    response.end('{"outcome":"ok","text":"done"}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const dispatcher = dispatchToHost();
  try {
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const target = endpoint({ url, tls: hostTls(pod, authority.certificate) });
    const first = await dispatcher.dispatch(target, "a.ticket", Buffer.from("{}"));
    const second = await dispatcher.dispatch(target, "a.ticket", Buffer.from("{}"));
    return { kinds: [first.kind, second.kind], requests };
  } finally {
    await dispatcher.close();
    server.closeAllConnections();
    server.close();
  }
};

test("a host with the certificate of its pod and start gets calls", async () => {
  assert.deepEqual(await calling({}), { kinds: ["replied", "replied"], requests: 2 });
});

const impostors: Record<string, Shown> = {
  "another pod at the address": { to: { ...pod, podUid: "2f1c9a60-0000-4000-8000-000000000002" } },
  "the same pod after its host started anew": { to: { ...pod, boot: "boot-2" } },
  "a pod certified by another authority": { by: newAuthority("hosts", Date.now()) },
  "a pod that certified itself": { itself: true },
};

for (const [who, shown] of Object.entries(impostors)) {
  test(`${who} gets nothing of a call, and it may go elsewhere`, async () => {
    assert.deepEqual(await calling(shown), { kinds: ["unreachable", "unreachable"], requests: 0 });
  });
}
