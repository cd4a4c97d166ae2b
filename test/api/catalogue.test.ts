import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { get } from "node:https";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { sha256Of } from "../../src/api/digest.ts";
import { type ClusterCatalogueEvent, runClusterCatalogue } from "../../src/catalogue/cluster-catalogue.ts";
import { definitionText, digestOfDefinitionText } from "../../src/grants/definition.ts";
import { grantDigest } from "../../src/grants/grant-digest.ts";
import { newCertificateKey } from "../../src/identity/certificate.ts";
import { certifyServer, newAuthority } from "../../src/identity/host-identity.ts";
import { loadAccess } from "../../src/kube/access.ts";
import { ClusterClient } from "../../src/kube/client.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { scrapedMetrics } from "../../src/telemetry/prometheus.ts";
import { rotatedTicketKeys, writeTicketKeys } from "../../src/tickets/ticket-keys.ts";
import { type OwnApiServer, startOwnApiServer, whyNoOwnApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { scrape } from "../support/scraped.ts";
import { grantSpec, listIssues } from "../unit/catalogue/world.ts";

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const signedToken = (claims: object, key: KeyObject): string => {
  const signed = `${encoded({ alg: "RS256" })}.${encoded(claims)}`;
  return `${signed}.${sign("RSA-SHA256", Buffer.from(signed), key).toString("base64url")}`;
};

/** The catalogue on a real API server, which judges its tokens, tells it of grants and keys, and goes away. */
describe("a catalogue on a real API server", { skip: whyNoOwnApiServer() ?? false }, () => {
  const authority = newAuthority("catalogue", Date.now());
  const ending = new AbortController();
  const events: ClusterCatalogueEvent[] = [];
  let server: OwnApiServer;
  let client: ClusterClient;
  let running: Promise<void>;

  const make = async (path: string, body: object): Promise<{ readonly status?: { readonly token?: string } }> => {
    const answer = await server.request("POST", path, body);
    assert.ok(answer.status < 300, answer.body);
    return JSON.parse(answer.body);
  };
  const patch = async (path: string, body: object): Promise<void> => {
    const answer = await server.request("PATCH", path, body, "application/merge-patch+json");
    assert.ok(answer.status < 300, answer.body);
  };
  const token = async (account: string, audience: string): Promise<string> => {
    const spec = { audiences: [audience], expirationSeconds: 600 };
    const path = `/api/v1/namespaces/agents/serviceaccounts/${account}/token`;
    return (await make(path, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec })).status?.token ?? "";
  };
  const certificate = (): { "tls.crt": string; "tls.key": string } => {
    const key = newCertificateKey();
    const crt = certifyServer(authority, ["localhost"], createPublicKey(key), Date.now(), 3_600_000);
    return { "tls.crt": crt, "tls.key": key.export({ type: "pkcs8", format: "pem" }).toString() };
  };

  const portOf = (wanted: "listening" | "telemetry"): number =>
    events.flatMap((event) => (event.kind === wanted ? [event.address.port] : []))[0] ?? 0;
  const port = (): number => portOf("listening");
  const probe = async (path: string): Promise<number> => (await fetch(`http://localhost:${portOf("telemetry")}${path}`)).status;
  const ask = (bearer: string | null, path = "/v1/declarations"): Promise<{ status: number; body: string; shown: string }> =>
    new Promise((resolve, reject) => {
      const headers = bearer === null ? {} : { authorization: `Bearer ${bearer}` };
      get({ host: "localhost", port: port(), path, ca: authority.certificate, agent: false, headers }, (response) => {
        const shown = (response.socket as TLSSocket).getPeerX509Certificate()?.fingerprint256 ?? "";
        text(response).then((body) => resolve({ status: response.statusCode ?? 0, body, shown }), reject);
      }).on("error", reject);
    });
  const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    assert.ok(await becomes(holds, 60_000), what);
  };

  before(async () => {
    server = await startOwnApiServer();
    await installCrds(server.request);
    for (const name of ["agents", "ambit-system"]) await make("/api/v1/namespaces", { metadata: { name } });
    for (const name of ["triage", "other"]) await make("/api/v1/namespaces/agents/serviceaccounts", { metadata: { name } });
    const access = await loadAccess({ file: server.kubeconfig });
    const metrics = scrapedMetrics();
    client = new ClusterClient({ access, clock: systemClock, random: Math.random, userAgent: "ambit-catalogue", metrics });
    running = runClusterCatalogue(
      {
        address: "localhost",
        port: 0,
        namespace: "ambit-system",
        hosts: ["localhost"],
        audience: "ambit",
        instance: "ambit-catalogue-1",
        plainHttp: false,
      },
      {
        client,
        clock: systemClock,
        random: Math.random,
        journal: () => {},
        tell: (event) => events.push(event),
        telemetry: { metrics, place: { address: "localhost", port: 0 } },
      },
      ending.signal,
    );
  });

  after(async () => {
    ending.abort();
    await running;
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  test("listens once it has a certificate, and is ready once there is a key to sign with", async () => {
    await eventually("it tells how it does", async () => portOf("telemetry") !== 0);
    assert.deepEqual([await probe("/healthz"), await probe("/readyz")], [200, 503]);
    await make("/api/v1/namespaces/ambit-system/secrets", { metadata: { name: "ambit-catalogue-tls" }, stringData: certificate() });
    await eventually("it listens", async () => port() !== 0);
    assert.equal((await ask(null, "/readyz")).status, 503);
    const keys = writeTicketKeys(rotatedTicketKeys([], Date.now()));
    await make("/api/v1/namespaces/ambit-system/secrets", { metadata: { name: "ambit-tickets" }, stringData: { "keys.json": keys } });
    await eventually("it is ready", async () => (await ask(null, "/readyz")).status === 200);
    assert.equal(await probe("/readyz"), 200);
  });

  test("knows a token of its audience, and no other", async () => {
    assert.equal((await ask(await token("triage", "ambit"))).status, 200);
    assert.equal((await ask(await token("triage", "vault"))).status, 401);
    assert.equal((await ask("a.b.c")).status, 401);
    assert.equal((await ask(null)).status, 401);
  });

  test("knows no token that is expired, forged, or of an account that is gone", async () => {
    const [, payload = "", signature = ""] = (await token("triage", "ambit")).split(".");
    const claims = JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as { exp: number; iat: number; nbf: number };
    const key = createPrivateKey(await readFile(server.serviceAccountKey));
    assert.equal((await ask(signedToken(claims, key))).status, 200, "the API server takes what is signed here");
    const now = Math.floor(Date.now() / 1000);
    assert.equal((await ask(signedToken({ ...claims, exp: now - 60, iat: now - 3600, nbf: now - 3600 }, key))).status, 401, "expired");
    assert.equal((await ask(signedToken({ ...claims, nbf: now + 3600 }, key))).status, 401, "not valid yet");
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    assert.equal((await ask(signedToken(claims, privateKey))).status, 401, "of another issuer's key");
    const forged = encoded({ ...claims, sub: "system:serviceaccount:agents:other" });
    assert.equal((await ask(`${encoded({ alg: "RS256" })}.${forged}.${signature}`)).status, 401, "altered");
    assert.equal((await ask(`${encoded({ alg: "none" })}.${payload}.`)).status, 401, "unsigned");
    await make("/api/v1/namespaces/agents/serviceaccounts", { metadata: { name: "leaver" } });
    const leavers = await token("leaver", "ambit");
    assert.equal((await server.request("DELETE", "/api/v1/namespaces/agents/serviceaccounts/leaver")).status, 200);
    assert.equal((await ask(leavers)).status, 401, "of an account that is gone");
  });

  test("offers a grant that is live to whom it names, until it drifts", async () => {
    const spec = grantSpec();
    const definition = definitionText(listIssues);
    const digest = digestOfDefinitionText(definition);
    const code = sha256Of("code");
    const reach = { hosts: [], volumes: [], secrets: [], imports: [] };
    const review = { definition: digest, grant: grantDigest(spec), reach, component: [code] };
    const grants = "/apis/ambit.dev/v1alpha1/namespaces/agents/toolgrants";
    const metadata = { name: "list-issues" };
    await make(grants, { apiVersion: "ambit.dev/v1alpha1", kind: "ToolGrant", metadata, spec: { ...spec, review } });
    const status = { phase: "Active", observedGeneration: 1, observed: { digest, text: definition }, components: [code] };
    await patch(`${grants}/list-issues/status`, { status });
    const mine = await token("triage", "ambit");
    await eventually("it is offered", async () => (await ask(mine)).body.includes('"list_issues"'));
    assert.equal((await ask(await token("other", "ambit"))).body, "[]");
    await patch(`${grants}/list-issues/status`, { status: { phase: "Drifted" } });
    await eventually("it is withdrawn", async () => (await ask(mine)).body === "[]");
  });

  test("tells what it was asked and what it knows", async () => {
    const { scraped } = await scrape(portOf("telemetry"));
    assert.ok((scraped.value("ambit_http_requests_total", { route: "/v1/declarations", method: "GET", code: "401" }) ?? 0) >= 3);
    assert.ok(scraped.sum("rest_client_requests_total", { method: "POST", code: "201" }) > 0);
    assert.ok((scraped.value("reflector_events_total", { name: "toolgrants.ambit.dev" }) ?? 0) > 0);
    assert.equal(scraped.value("ambit_live_grants"), 0);
  });

  test("shows a new certificate when there is one, to who connects then", async () => {
    const renewed = certificate();
    await patch("/api/v1/namespaces/ambit-system/secrets/ambit-catalogue-tls", { stringData: renewed });
    const wanted = new X509Certificate(renewed["tls.crt"]).fingerprint256;
    await eventually("it is shown", async () => (await ask(null, "/healthz")).shown === wanted);
  });

  test("serves whom it knows while the API server is away, lets nobody new in, and goes on after that", async () => {
    const known = await token("triage", "ambit");
    const unknown = await token("other", "ambit");
    assert.equal((await ask(known)).status, 200);
    await server.stop("SIGKILL");
    assert.equal((await ask(known)).status, 200);
    assert.equal((await ask(unknown)).status, 503);
    await server.start();
    await eventually("it lets in whom the API server knows", async () => (await ask(unknown)).status === 200);
    await patch("/apis/ambit.dev/v1alpha1/namespaces/agents/toolgrants/list-issues/status", { status: { phase: "Active" } });
    await eventually("it hears of what changes", async () => (await ask(known)).body.includes('"list_issues"'));
  });
});
