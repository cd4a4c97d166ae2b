import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { sha256Of } from "../../src/api/digest.ts";
import { verifyHostCertificate } from "../../src/identity/host-identity.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import { controlledBy } from "../../src/kube/owned.ts";
import { configMaps, deployments, namespaces, pods, secrets, workloads } from "../../src/kube/resource-types.ts";
import type { ComponentStore } from "../../src/operator/component-store.ts";
import { replicaSets } from "../../src/operator/delivery/confirm.ts";
import { type Keyring, openKeyring } from "../../src/operator/delivery/own-keys.ts";
import { createDelivery } from "../../src/operator/delivery/reconciler.ts";
import type { Pod } from "../../src/operator/kinds.ts";
import { componentLabels, labels, ownObjects, podAnnotations, shortDigest } from "../../src/operator/names.ts";
import { readTicketKeys, rotatedTicketKeys, ticketKeysEntry, writeTicketKeys } from "../../src/tickets/ticket-keys.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { startTlsHost } from "../integration/delivery-world.ts";
import { fixture, temporaryFolder } from "../integration/host-under-test.ts";
import { clientAs } from "./client-as.ts";
import { runControllers } from "./operator-under-test.ts";

type Secret = ClusterObject & { readonly type?: string; readonly data: Readonly<Record<string, string>> };
type Spec = ClusterObject & { readonly spec: object };

type Event = ClusterObject & { readonly reason: string; readonly regarding: { readonly name: string } };
const eventsType: ResourceType = { group: "events.k8s.io", version: "v1", kind: "Event", plural: "events", namespaced: true };

const withinMs = 30_000;
const reason = whyNoApiServer();

describe("keys and deliveries", { skip: reason ?? false }, () => {
  const suffix = randomBytes(4).toString("hex");
  const own = `ambit-keys-${suffix}`;
  const namespace = `ambit-delivery-${suffix}`;
  let server: ApiServer;
  let client: ClusterClient;

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    client = await clientAs(server.kubeconfig);
    for (const name of [own, namespace]) await client.create(namespaces, { metadata: { name } });
  });

  after(async () => {
    for (const name of [own, namespace]) await client?.delete(namespaces, { name });
    await client?.close();
    await server?.[Symbol.asyncDispose]();
  });

  const open = (): Promise<Keyring> =>
    openKeyring({ client, clock: systemClock, namespace: own, log: () => undefined }, new AbortController().signal);
  const secret = (name: string): Promise<Secret> => client.get<Secret>(secrets, { namespace: own, name });
  const text = ({ data }: Secret, entry: string): string => Buffer.from(data[entry] ?? "", "base64").toString("utf8");

  test("two operators that start at once have the same keys, and so has the next", async () => {
    const keyrings = await Promise.all([open(), open()]);
    keyrings.push(await open());
    assert.equal(new Set(keyrings.map(({ rootPublicKey }) => rootPublicKey)).size, 1);
    assert.equal(new Set(keyrings.map((keyring) => keyring.ticketKeys()[0]?.kid)).size, 1);
    const { data } = await client.get<ClusterObject & { data: Record<string, string> }>(configMaps, {
      namespace: own,
      name: ownObjects.ca,
    });
    assert.equal(data["hosts-ca.crt"], keyrings[0]?.root.hosts.certificate);
    const tls = await secret(ownObjects.catalogueTls);
    assert.deepEqual([tls.type, text(tls, "ca.crt")], ["kubernetes.io/tls", keyrings[0]?.root.catalogue.certificate]);
  });

  test("ticket keys that are due are rotated in their Secret, the one in use kept", async () => {
    const live = await secret(ownObjects.tickets);
    const aged = rotatedTicketKeys([], Date.now() - 14 * 3_600_000);
    const data = { [ticketKeysEntry]: Buffer.from(writeTicketKeys(aged)).toString("base64") };
    await client.replace<Secret>(secrets, { ...live, data });
    const kids = (await open()).ticketKeys().map(({ kid }) => kid);
    assert.deepEqual([kids.length, kids[0]], [2, aged[0]?.kid]);
    assert.deepEqual(
      readTicketKeys(text(await secret(ownObjects.tickets), ticketKeysEntry)).map(({ kid }) => kid),
      kids,
    );
  });

  test("a certificate of the catalogue that somebody else put there stays", async () => {
    const live = await secret(ownObjects.catalogueTls);
    const data = { ...live.data, "tls.crt": Buffer.from("somebody's").toString("base64") };
    await client.replace<Secret>(secrets, { ...live, data });
    await open();
    assert.equal(text(await secret(ownObjects.catalogueTls), "tls.crt"), "somebody's");
  });

  test("root keys that can't be read are never replaced", async () => {
    const live = await secret(ownObjects.root);
    await client.replace<Secret>(secrets, { ...live, data: { ...live.data, "root.key": "AAAA" } });
    await assert.rejects(open(), { code: "RootKeysUnusable" });
    assert.equal((await secret(ownObjects.root)).data["root.key"], "AAAA");
    await client.replace<Secret>(secrets, { ...(await secret(ownObjects.root)), data: live.data });
  });

  test("a pod that runs gets what it needs, and notes of it; one that only looks like it gets nothing", async () => {
    const keyring = await open();
    const component = fixture("mission.wasm");
    const digest = sha256Of(component);
    const components = {
      fetch: async () => ({ digest, resolved: "", bytes: async () => component }),
    } as unknown as ComponentStore;
    const podLabels = { ...componentLabels("github", "main"), [labels.digest]: shortDigest(digest) };
    const template = { metadata: { labels: podLabels }, spec: { containers: [{ name: "host", image: "ambit" }] } };
    const make = (type: ResourceType, name: string, owner: ClusterObject | undefined, spec: object): Promise<Spec> => {
      const ownerReferences = owner === undefined ? [] : [controlledBy(owner)];
      return client.create<Spec>(type, { metadata: { name, namespace, labels: podLabels, ownerReferences }, spec });
    };
    const workload = await make(workloads, "github", undefined, {
      components: [{ name: "main", image: `registry.test/github@sha256:${"0".repeat(64)}` }],
    });
    const selector = { matchLabels: podLabels };
    const deployment = await make(deployments, "github-main", workload, { selector, template });
    const replicaSet = await make(replicaSets, "github-main-1", deployment, { selector, template });

    const ports = new Map<string, number>();
    const run = async (name: string, owner: ClusterObject | undefined) => {
      const pod = await make(pods, name, owner, template.spec);
      const podUid = pod.metadata.uid ?? "";
      const host = await startTlsHost({ component: digest, rootKey: keyring.rootPublicKey, podUid, cacheFolder: temporaryFolder() });
      ports.set(name, host.port);
      const running = { name: "host", image: "ambit", imageID: "", ready: false, restartCount: 0, containerID: `containerd://${name}` };
      const status = {
        phase: "Running",
        podIP: "127.0.0.1",
        podIPs: [{ ip: "127.0.0.1" }],
        containerStatuses: [{ ...running, state: { running: { startedAt: new Date().toISOString().replace(/\.\d+/, "") } } }],
      };
      await client.request({
        method: "PATCH",
        path: objectPath(pods, { name, namespace }, "status"),
        contentType: "application/merge-patch+json",
        body: { status },
      });
      return { podUid, host };
    };
    const foreign = await run("look-alike", undefined);
    const pod = await run("github-main-1-a", replicaSet);
    const operator = await runControllers(client, components, (context) => [
      createDelivery(
        { ...context, namespace: own },
        {
          keyring,
          egress: { tableFor: () => ({ version: 1, table: {} }), subscribe: () => () => undefined },
          placeOf: ({ key }) => ({ address: "127.0.0.1", port: ports.get(key.name) ?? 1 }),
        },
      ),
    ]);
    try {
      const annotationsOf = async (name: string) => (await client.get<Pod>(pods, { namespace, name })).metadata.annotations ?? {};
      assert.ok(await becomes(async () => (await annotationsOf("github-main-1-a"))[podAnnotations.delivered] === digest, withinMs));
      const { [podAnnotations.boot]: boot = "", [podAnnotations.hostCertificate]: pem = "" } = await annotationsOf("github-main-1-a");
      verifyHostCertificate(pem, keyring.root.hosts.certificate, { podUid: pod.podUid, boot }, Date.now());
      const isTold = async () =>
        (await client.listPage<Event>(eventsType, { namespace })).items.some(
          ({ reason, regarding }) => reason === "PodForeign" && regarding.name === "look-alike",
        );
      assert.ok(await becomes(isTold, withinMs));
      assert.deepEqual(await annotationsOf("look-alike"), {});
    } finally {
      await operator[Symbol.asyncDispose]();
      await Promise.all([pod.host.stop(), foreign.host.stop()]);
      for (const name of ["look-alike", "github-main-1-a"]) {
        await client.request({ method: "DELETE", path: objectPath(pods, { name, namespace }), body: { gracePeriodSeconds: 0 } });
      }
    }
  });
});
