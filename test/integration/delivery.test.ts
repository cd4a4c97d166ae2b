import assert from "node:assert/strict";
import { createPublicKey, randomUUID, X509Certificate } from "node:crypto";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { Client } from "undici";
import { sha256Of } from "../../src/api/digest.ts";
import { newCertificateKey } from "../../src/identity/certificate.ts";
import { certifyHost, hostTls, provisionalCertificate, verifyHostCertificate } from "../../src/identity/host-identity.ts";
import { newRootKeys, type RootKeys, rootPublicKey, signedByRoot } from "../../src/operator/delivery/keyring.ts";
import { podAnnotations } from "../../src/operator/names.ts";
import { publicTicketKeys } from "../../src/tickets/ticket-keys.ts";
import { DeliveryWorld, type RunningHost } from "./delivery-world.ts";
import { fixture, temporaryFolder } from "./host-under-test.ts";

const args = JSON.stringify({ repo: "octo/spoon", state: "open" });
const hour = 3_600_000;

/** Somebody who listens with TLS, under any certificate, and writes down what comes. */
const impostor = async (key: ReturnType<typeof newCertificateKey>, certificate: string, says: object, port = 0) => {
  const heard: { asked: string; bytes: number }[] = [];
  const server = createServer({ key: key.export({ type: "pkcs8", format: "pem" }), cert: certificate }, (request, response) => {
    const one = { asked: `${request.method} ${request.url}`, bytes: 0 };
    heard.push(one);
    request.on("data", (chunk: Buffer) => {
      one.bytes += chunk.length;
    });
    request.on("end", () => response.end(JSON.stringify(says)));
  });
  await new Promise<void>((listening) => server.listen(port, "127.0.0.1", listening));
  return {
    heard,
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
};

/** What a host answers to somebody who trusts any certificate. */
const ask = async (port: number, method: "GET" | "PUT" | "POST", path: string, body?: string, headers: Record<string, string> = {}) => {
  const client = new Client(`https://127.0.0.1:${port}`, { connect: { rejectUnauthorized: false } });
  try {
    const response = await client.request({ method, path, headers, body: body ?? null });
    return { status: response.statusCode, body: (await response.body.json()) as Record<string, unknown> };
  } finally {
    await client.destroy();
  }
};

describe("delivery to a pod", () => {
  const world = new DeliveryWorld(fixture("mission.wasm"));
  const pod = { name: "github-main-1-a", uid: randomUUID() };
  const cacheFolder = temporaryFolder();
  let host: RunningHost;
  let boot: string;
  before(async () => {
    host = await world.startHost(pod.uid, { cacheFolder });
    assert.deepEqual((await ask(host.port, "GET", "/readyz")).body.missing, ["certificate", "keys", "addresses", "component"]);
    world.podRuns(pod.name, pod.uid, host.port);
    boot = await world.delivered(pod.name);
  });
  after(async () => {
    await world.close();
    await host.stop();
  });

  it("makes its host ready and says so on the pod, with a certificate for this pod and this start of it", async () => {
    assert.deepEqual((await ask(host.port, "GET", "/readyz")).body, { ready: true, missing: [] });
    const annotations = world.annotations(pod.name);
    assert.equal(annotations[podAnnotations.delivered], world.digest);
    const pem = annotations[podAnnotations.hostCertificate] ?? "";
    const ends = verifyHostCertificate(pem, world.root.hosts.certificate, { podUid: pod.uid, boot }, Date.now());
    assert.ok(ends > Date.now() + 6 * 24 * hour);
  });

  it("lets the catalogue call it over TLS under that certificate", async () => {
    const answer = await world.call(host.port, pod.uid, boot, args);
    assert.equal(answer.kind === "replied" && answer.reply.outcome, "ok");
  });

  it("gives a neighbour nothing without a ticket, and nothing for one that was used", async () => {
    assert.deepEqual((await ask(host.port, "POST", "/v1/call", args)).body.code, "TicketMissing");
    const ticket = world.ticket(pod.uid, boot, args);
    assert.equal((await world.call(host.port, pod.uid, boot, args, ticket)).kind, "replied");
    const replayed = await ask(host.port, "POST", "/v1/call", args, { "ambit-ticket": ticket });
    assert.deepEqual([replayed.status, replayed.body.code], [401, "TicketUsed"]);
  });

  it("brings a new table without anything else", async () => {
    const { fetched, signed } = world;
    const version = Date.now();
    world.changeTable({ "api.example.com:443": ["192.0.2.8"] });
    await world.until(() => world.signed === signed + 1);
    // One delivery to a pod at a time: once this one is signed, the one before has come to its end.
    world.changeTable({ "api.example.com:443": ["192.0.2.9"] });
    await world.until(() => world.signed === signed + 2);
    const stale = signedByRoot(world.root, { kind: "addresses", boot, version, table: {} });
    assert.equal((await ask(host.port, "PUT", "/v1/addresses", JSON.stringify(stale))).body.code, "DeliveryOutdated");
    assert.equal(world.fetched, fetched);
    assert.equal(await world.delivered(pod.name), boot);
  });

  it("rotates ticket keys: two are good at once, and the one before them no more", async () => {
    const [first] = world.ticketKeys;
    assert.ok(first);
    world.rotateTicketKeys(Date.now() + 13 * hour);
    const [, second] = world.ticketKeys;
    assert.ok(second);
    const outcome = async (key: typeof first) => {
      const answer = await world.call(host.port, pod.uid, boot, args, world.ticket(pod.uid, boot, args, key));
      return answer.kind === "refused" ? answer.refusal.code : answer.kind;
    };
    await world.until(async () => (await outcome(second)) === "replied");
    assert.equal(await outcome(first), "replied");
    world.rotateTicketKeys(Date.now() + 27 * hour);
    const third = world.ticketKeys.at(-1);
    assert.ok(third && third.kid !== second.kid);
    await world.until(async () => (await outcome(third)) === "replied");
    assert.equal(await outcome(second), "replied");
    assert.equal(await outcome(first), "TicketKeyUnknown");
    world.ticketKeys = [third];
  });

  it("after a restart of the operator finds its host by the notes, without another meeting", async () => {
    const { signed, fetched } = world;
    const before = world.annotations(pod.name);
    // Whoever meets a host asks the API server, which knows no such pod here.
    world.truth.set(`agents/${pod.name}`, undefined);
    await world.operatorRestarts();
    await world.until(() => world.signed === signed + 2);
    world.changeTable({ "api.example.com:443": ["192.0.2.10"] });
    await world.until(() => world.signed === signed + 3);
    world.truth.delete(`agents/${pod.name}`);
    assert.deepEqual(world.annotations(pod.name), before);
    assert.equal(world.fetched, fetched);
  });

  it("does not believe notes that somebody else wrote", async () => {
    const before = world.annotations(pod.name);
    const certificate = certifyHost(
      newRootKeys(Date.now()).hosts,
      { podUid: pod.uid, boot },
      createPublicKey(newCertificateKey()),
      Date.now(),
    );
    world.annotate(pod.name, { ...before, [podAnnotations.hostCertificate]: certificate });
    await world.operatorRestarts();
    await world.until(() => world.annotations(pod.name)[podAnnotations.hostCertificate] !== certificate);
    const pem = world.annotations(pod.name)[podAnnotations.hostCertificate] ?? "";
    verifyHostCertificate(pem, world.root.hosts.certificate, { podUid: pod.uid, boot }, Date.now());
    assert.equal((await world.call(host.port, pod.uid, boot, args)).kind, "replied");
  });

  it("delivers anew after a restart of the container, without the component, and nothing from before is good", async () => {
    const fetched = world.fetched;
    const ticket = world.ticket(pod.uid, boot, args);
    const keys = JSON.stringify(
      signedByRoot(world.root, { kind: "keys", boot, time: Date.now() + hour, keys: publicTicketKeys(world.ticketKeys) }),
    );
    await host.stop();
    host = await world.startHost(pod.uid, { cacheFolder }, host.port);
    await world.until(async () => (await ask(host.port, "GET", "/v1/boot")).body.hasComponent === true);
    assert.equal((await world.call(host.port, pod.uid, boot, args)).kind, "unreachable");
    world.podRuns(pod.name, pod.uid, host.port);
    const again = await world.delivered(pod.name, boot);
    assert.equal(world.fetched, fetched);
    assert.equal((await world.call(host.port, pod.uid, again, args)).kind, "replied");
    assert.deepEqual((await ask(host.port, "POST", "/v1/call", args, { "ambit-ticket": ticket })).body.code, "TicketMisdirected");
    assert.deepEqual((await ask(host.port, "PUT", "/v1/keys", keys)).body.code, "DeliveryMisdirected");
    boot = again;
  });

  it("sends no argument to the host of another pod at its address, though that one has a certificate too", async () => {
    const other = { name: "github-main-1-b", uid: randomUUID() };
    const neighbour = await world.startHost(other.uid);
    try {
      world.podRuns(other.name, other.uid, neighbour.port);
      const itsBoot = await world.delivered(other.name);
      assert.equal((await world.call(neighbour.port, other.uid, itsBoot, args)).kind, "replied");
      assert.equal((await world.call(neighbour.port, pod.uid, boot, args)).kind, "unreachable");
      assert.equal((await world.call(neighbour.port, other.uid, boot, args)).kind, "unreachable");
      const elsewhere = await ask(neighbour.port, "POST", "/v1/call", args, { "ambit-ticket": world.ticket(pod.uid, boot, args) });
      assert.equal(elsewhere.body.code, "TicketMisdirected");
    } finally {
      await neighbour.stop();
    }
  });

  it("sends no argument to whoever has the pod's address after it", async () => {
    const { port } = host;
    await host.stop();
    const key = newCertificateKey();
    // The true certificate is no secret; the key is.
    const stranger = await impostor(key, provisionalCertificate(key, Date.now()), { outcome: "ok", text: "forged" }, port);
    try {
      assert.equal((await world.call(port, pod.uid, boot, args)).kind, "unreachable");
      assert.deepEqual(stranger.heard, []);
    } finally {
      await stranger.close();
    }
  });
});

describe("a host's certificate", () => {
  const world = new DeliveryWorld(fixture("mission.wasm"));
  const podUid = randomUUID();
  let host: RunningHost;
  let boot: string;
  before(async () => {
    host = await world.startHost(podUid);
    boot = String((await ask(host.port, "GET", "/v1/boot")).body.boot);
  });
  after(async () => {
    await world.close();
    await host.stop();
  });

  const put = async (document: object) => {
    const { status, body } = await ask(host.port, "PUT", "/v1/certificate", JSON.stringify(document));
    return [status, body.code];
  };

  it("is refused for another key than the host's", async () => {
    const certificate = certifyHost(world.root.hosts, { podUid, boot }, createPublicKey(newCertificateKey()), Date.now());
    assert.deepEqual(await put(signedByRoot(world.root, { kind: "certificate", boot, certificate })), [409, "CertificateMisdirected"]);
  });

  it("is refused where it is none, or is not signed by the root key, or is for another start", async () => {
    assert.deepEqual(await put(signedByRoot(world.root, { kind: "certificate", boot, certificate: "none" })), [
      422,
      "CertificateMalformed",
    ]);
    assert.deepEqual(await put(signedByRoot(newRootKeys(0), { kind: "certificate", boot, certificate: "none" })), [401, "SignatureWrong"]);
    assert.deepEqual(await put(signedByRoot(world.root, { kind: "certificate", boot: "b", certificate: "none" })), [
      409,
      "DeliveryMisdirected",
    ]);
  });

  it("is nobody's that the catalogue believes before one was delivered", async () => {
    assert.equal((await world.call(host.port, podUid, boot, args)).kind, "unreachable");
  });
});

describe("a host that somebody floods", () => {
  const world = new DeliveryWorld(fixture("mission.wasm"));
  const podUid = randomUUID();
  let host: RunningHost;
  let boot: string;
  before(async () => {
    host = await world.startHost(podUid);
    world.podRuns("flooded", podUid, host.port);
    boot = await world.delivered("flooded");
  });
  after(async () => {
    await world.close();
    await host.stop();
  });

  /** A body of which there is always more to come. */
  const endless = (): Readable =>
    Readable.from(
      (async function* () {
        for (;;) yield Buffer.alloc(1024);
      })(),
    );
  const flood = async (method: "PUT" | "POST", path: string, headers: Record<string, string>, sent: Readable | Buffer = endless()) => {
    const client = new Client(`https://127.0.0.1:${host.port}`, { connect: { rejectUnauthorized: false } });
    try {
      const { body } = await client.request({ method, path, headers, body: sent });
      return ((await body.json()) as { code: string }).code;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code;
    } finally {
      await client.destroy();
    }
  };
  const announced = (root: RootKeys, change: object = {}): Record<string, string> => {
    const document = signedByRoot(root, { kind: "announcement", boot, path: "/v1/component", bytes: 1e9, ...change });
    return { "ambit-announcement": Buffer.from(JSON.stringify(document)).toString("base64url") };
  };

  it("reads nothing from who has no ticket", async () => {
    assert.equal(await flood("POST", "/v1/call", {}), "TicketMissing");
    assert.equal(await flood("POST", "/v1/call", { "ambit-ticket": world.ticket("another", boot, args) }), "TicketMisdirected");
  });

  it("reads nothing from who has no announcement of this root key, for this start and this request", async () => {
    assert.equal(await flood("PUT", "/v1/component", { "ambit-announcement": "nonsense" }), "DeliveryMalformed");
    assert.equal(await flood("PUT", "/v1/component", announced(newRootKeys(0))), "SignatureWrong");
    assert.equal(await flood("PUT", "/v1/component", announced(world.root, { boot: "another" })), "DeliveryMisdirected");
    assert.equal(await flood("PUT", "/v1/addresses", announced(world.root)), "DeliveryMisdirected");
  });

  it("reads a little without an announcement, and cuts the connection at more", async () => {
    for (const path of ["/v1/component", "/v1/keys", "/v1/addresses", "/v1/certificate"]) {
      assert.match(String(await flood("PUT", path, {}, Buffer.alloc(20 * 1024))), /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, path);
    }
    const short = await ask(host.port, "PUT", "/v1/component", "short");
    assert.equal(short.body.code, "DigestMismatch");
  });

  it("goes on to answer calls", async () => {
    assert.equal((await world.call(host.port, podUid, boot, args)).kind, "replied");
  });
});

describe("delivery gives nothing to", () => {
  let world: DeliveryWorld;
  before(() => {
    world = new DeliveryWorld(fixture("mission.wasm"));
  });
  after(() => world.close());

  const key = newCertificateKey();
  const certificate = provisionalCertificate(key, Date.now());

  const nothingGivenTo = async (name: string, stranger: Awaited<ReturnType<typeof impostor>>, seen: () => boolean) => {
    try {
      await world.until(seen);
      assert.deepEqual(world.annotations(name), {});
      assert.deepEqual([...new Set(stranger.heard.map(({ asked }) => asked))], ["GET /v1/boot"]);
      assert.equal(world.fetched, 0);
    } finally {
      await stranger.close();
    }
  };
  const told = (code: string) => () => world.events.some(({ reason }) => reason === code);

  it("a host of another pod at the pod's address", async () => {
    const stranger = await impostor(key, certificate, {
      boot: randomUUID(),
      component: world.digest,
      pod: randomUUID(),
      hasComponent: false,
    });
    world.podRuns("mistaken", randomUUID(), stranger.port);
    await nothingGivenTo("mistaken", stranger, told("HostMistaken"));
  });

  it("a host of other code than the pod's label says", async () => {
    const uid = randomUUID();
    world.events.length = 0;
    const stranger = await impostor(key, certificate, { boot: randomUUID(), component: sha256Of("other"), pod: uid, hasComponent: false });
    world.podRuns("other-code", uid, stranger.port);
    await nothingGivenTo("other-code", stranger, told("HostMistaken"));
  });

  it("whoever answers at the address of a pod that is gone, whatever the watch has told so far", async () => {
    const uid = randomUUID();
    const stranger = await impostor(key, certificate, { boot: randomUUID(), component: world.digest, pod: uid, hasComponent: false });
    world.truth.set("agents/gone", undefined);
    world.podRuns("gone", uid, stranger.port);
    await nothingGivenTo("gone", stranger, () => world.failures.some((text) => text.includes("gone")));
  });

  it("a pod that somebody else made and gave our labels", async () => {
    const uid = randomUUID();
    const stranger = await impostor(key, certificate, { boot: randomUUID(), component: world.digest, pod: uid, hasComponent: false });
    world.podRuns("foreign", uid, stranger.port, { owned: false });
    await nothingGivenTo("foreign", stranger, told("PodForeign"));
  });

  const answers: Record<string, (uid: string) => object> = {
    "a boot id that would be another name in a certificate": (pod) => ({ boot: "*", component: world.digest, pod, hasComponent: false }),
    "a boot id with a second name in it": (pod) => ({ boot: "a.b", component: world.digest, pod, hasComponent: false }),
    "more than a host ever says": (pod) => ({ boot: "b", component: world.digest, pod, hasComponent: false, more: "x".repeat(1e6) }),
    "nothing of what a host says": () => ({}),
    "that it has the component, under no digest": (pod) => ({ boot: "b", component: "sha256:", pod, hasComponent: true }),
  };
  for (const [what, says] of Object.entries(answers)) {
    it(`who answers with ${what}`, async () => {
      const uid = randomUUID();
      const stranger = await impostor(key, certificate, says(uid));
      const before = world.failures.length;
      world.podRuns(`odd-${what.length}`, uid, stranger.port);
      await nothingGivenTo(`odd-${what.length}`, stranger, () => stranger.heard.length > 0 && world.failures.length > before);
    });
  }

  it("whoever shows a certificate for a key that is not his", async () => {
    const uid = randomUUID();
    const boot = randomUUID();
    const stranger = await impostor(key, certificate, { boot, component: world.digest, pod: uid, hasComponent: false });
    const tls = hostTls({ podUid: uid, boot }, world.root.hosts.certificate);
    const client = new Client(`https://127.0.0.1:${stranger.port}`, { connect: { ...tls } });
    await assert.rejects(client.request({ method: "GET", path: "/" }), /self-signed|certificate/);
    await client.destroy();
    await stranger.close();
    assert.deepEqual(stranger.heard, []);
  });

  it("a host that knows another root key", async () => {
    const uid = randomUUID();
    const host = await world.startHost(uid, { rootKey: rootPublicKey(newRootKeys(0)) });
    try {
      world.podRuns("other-root", uid, host.port);
      await world.until(told("SignatureWrong"));
      assert.match(world.annotations("other-root")[podAnnotations.refused] ?? "", /^SignatureWrong: /);
      assert.equal(world.annotations("other-root")[podAnnotations.boot], undefined);
    } finally {
      await host.stop();
    }
  });
});

describe("a host that was started for a hop which its Workload does not name", () => {
  const world = new DeliveryWorld(fixture("mission.wasm"));
  const pod = { name: "github-main-1-a", uid: randomUUID() };
  let host: RunningHost;
  after(async () => {
    await world.close();
    await host.stop();
  });

  it("gets everything but its component, until it does", async () => {
    host = await world.startHost(pod.uid);
    world.podRuns(pod.name, pod.uid, host.port, { annotations: { [podAnnotations.hop]: "bridge" } });
    const missing = async () => (await ask(host.port, "GET", "/readyz")).body.missing;
    await world.until(async () => JSON.stringify(await missing()) === '["component"]');
    // The delivery that brought this has ended when another has begun.
    const { signed } = world;
    world.changeTable({});
    await world.until(() => world.signed > signed);
    assert.equal(world.fetched, 0);
    assert.deepEqual([world.annotations(pod.name)[podAnnotations.boot], world.failures], [undefined, []]);
  });
});

describe("a host whose allowed hosts are still looked up", () => {
  it("has its certificate and keys, is met no second time, and gets the rest when they are known", async () => {
    const world = new DeliveryWorld(fixture("mission.wasm"));
    const uid = randomUUID();
    world.table = undefined;
    const host = await world.startHost(uid);
    try {
      world.podRuns("early", uid, host.port);
      const missing = async () => JSON.stringify((await ask(host.port, "GET", "/readyz")).body.missing);
      await world.until(async () => (await missing()) === '["addresses","component"]');
      assert.deepEqual(world.annotations("early"), {});
      world.truth.set("agents/early", undefined);
      world.changeTable({});
      await world.delivered("early");
      assert.equal(await missing(), "[]");
      assert.deepEqual(world.failures, []);
    } finally {
      await world.close();
      await host.stop();
    }
  });
});

describe("a certificate that is half through its life", () => {
  it("is replaced for the same start of the host, and calls go on", async () => {
    const world = new DeliveryWorld(fixture("mission.wasm"));
    const uid = randomUUID();
    world.skewMs = -4 * 24 * hour;
    const host = await world.startHost(uid);
    try {
      world.podRuns("aged", uid, host.port);
      const boot = await world.delivered("aged");
      const { [podAnnotations.hostCertificate]: aged = "" } = world.annotations("aged");
      world.skewMs = 0;
      world.changeTable({});
      await world.until(() => world.annotations("aged")[podAnnotations.hostCertificate] !== aged);
      const { [podAnnotations.hostCertificate]: renewed = "" } = world.annotations("aged");
      assert.ok(new X509Certificate(renewed).publicKey.equals(new X509Certificate(aged).publicKey));
      assert.ok(new X509Certificate(renewed).validToDate.getTime() > Date.now() + 6 * 24 * hour);
      assert.equal((await world.call(host.port, uid, boot, args)).kind, "replied");
      assert.equal(world.fetched, 1);
    } finally {
      await world.close();
      await host.stop();
    }
  });
});

describe("a component that its host won't run", () => {
  it("is told on the pod and in an event, with the host's words", async () => {
    const world = new DeliveryWorld(fixture("wat/missing-import.wasm"));
    const uid = randomUUID();
    const host = await world.startHost(uid);
    try {
      world.podRuns("unrunnable", uid, host.port);
      await world.until(() => world.annotations("unrunnable")[podAnnotations.refused] !== undefined);
      assert.match(world.annotations("unrunnable")[podAnnotations.refused] ?? "", /^ImportNotGranted: .*example:nowhere\/door/);
      assert.equal(world.annotations("unrunnable")[podAnnotations.delivered], undefined);
      assert.equal(world.events[0]?.reason, "ImportNotGranted");
    } finally {
      await world.close();
      await host.stop();
    }
  });
});

describe("certificates of one authority", () => {
  it("are told apart by OpenSSL by pod and by start", () => {
    const { hosts } = newRootKeys(Date.now());
    const identity = { podUid: randomUUID(), boot: randomUUID() };
    const pem = certifyHost(hosts, identity, createPublicKey(newCertificateKey()), Date.now());
    assert.equal(new X509Certificate(pem).checkHost(hostTls(identity, "").servername), hostTls(identity, "").servername);
    assert.equal(new X509Certificate(pem).checkHost(hostTls({ ...identity, boot: randomUUID() }, "").servername), undefined);
  });
});
