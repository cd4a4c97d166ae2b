import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { Client } from "undici";
import { bridgeDigest } from "../../src/api/bridge-component.ts";
import { sha256Of } from "../../src/api/digest.ts";
import { hopHeader } from "../../src/api/host.ts";
import { untypedInterface } from "../../src/api/untyped.ts";
import { type Dispatched, dispatchToHost } from "../../src/catalogue/dispatch.ts";
import type { Endpoint } from "../../src/catalogue/state.ts";
import { grantDigest } from "../../src/grants/grant-digest.ts";
import { hostTls } from "../../src/identity/host-identity.ts";
import { systemClock } from "../../src/kube/clock.ts";
import type { ClusterObject } from "../../src/kube/object.ts";
import { deployments, namespaces, pods, secrets } from "../../src/kube/resource-types.ts";
import { listingReader } from "../../src/operator/delivery/listing-reader.ts";
import { type Keyring, openKeyring } from "../../src/operator/delivery/own-keys.ts";
import { createDelivery } from "../../src/operator/delivery/reconciler.ts";
import type { Pod } from "../../src/operator/kinds.ts";
import { hopPort, hostPort, ownObjects, podAnnotations } from "../../src/operator/names.ts";
import { freshNonce, signTicket } from "../../src/tickets/ticket.ts";
import { readTicketKeys, ticketKeysEntry } from "../../src/tickets/ticket-keys.ts";
import { KnownInterfaces } from "../../src/wit/known-interfaces.ts";
import { whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { componentIn, McpWorld, plain } from "./mcp-world.ts";
import { type RunningPod, runPodOf } from "./stand-in-kubelet.ts";

const withinMs = 60_000;

/** The whole operator, and a real host for the server and for its bridge: whatever passes between them goes the way that the operator told them. */
describe("the hop to an MCP server that is a component", { skip: whyNoApiServer() ?? false }, () => {
  const [entry, component] = ["issues", "issues-mcp"];
  const image = `registry.test/issues-mcp@sha256:${"0".repeat(64)}`;
  const bytes = readFileSync(new URL("../../examples/mcp-server-component/issues-mcp.wasm", import.meta.url));
  const digest = sha256Of(bytes);
  const own = `ambit-hop-${randomBytes(4).toString("hex")}`;
  const dispatcher = dispatchToHost();
  const running: RunningPod[] = [];
  let world: McpWorld;
  let keyring: Keyring;

  const startOperator = (): Promise<void> =>
    world.startOperator(bridgeDigest, keyring.rootPublicKey, (context, egress) => {
      const inOwn = { ...context, namespace: own };
      return [
        createDelivery(inOwn, { keyring, egress }),
        listingReader(inOwn, { keyring, listings: world.listings, placeOf: ({ address }) => ({ address, port: hostPort }) }),
      ];
    });

  before(async () => {
    world = await McpWorld.start(entry);
    await world.client.create(namespaces, { metadata: { name: own } });
    const context = { client: world.client, clock: systemClock, namespace: own, log: () => undefined };
    keyring = await openKeyring(context, new AbortController().signal);
    const described = new KnownInterfaces().of(digest, bytes);
    world.store = { fetch: async () => ({ digest, resolved: image, interface: described, bytes: async () => bytes }) };
    await startOperator();
  });

  after(async () => {
    for (const pod of running) await pod.end();
    await dispatcher.close();
    await world?.client.delete(namespaces, { name: own });
    await world?.[Symbol.asyncDispose]();
  });

  const run = async (of: string, name: string): Promise<RunningPod> => {
    await world.when(deployments, `issues-${of}`);
    const pod = await runPodOf(world.client, world.namespace, `issues-${of}`, name);
    running.push(pod);
    return pod;
  };
  const ready = async (pod: RunningPod): Promise<void> => {
    assert.ok(await becomes(() => pod.isReady(), withinMs), `${pod.name} becomes ready`);
    await pod.becameReady();
  };
  const end = async (pod: RunningPod): Promise<void> => {
    running.splice(running.indexOf(pod), 1);
    await pod.end();
  };

  /** As the catalogue does. */
  const call = async (): Promise<Dispatched> => {
    const { metadata, status } = await world.client.get<Pod>(pods, { namespace: world.namespace, name: "bridge-a" });
    const { [podAnnotations.boot]: boot = "" } = metadata.annotations ?? {};
    const [podUid, address] = [metadata.uid ?? "", status?.podIP ?? ""];
    const grant = await world.grantIs("Active");
    const { data } = await world.client.get<ClusterObject & { data: Record<string, string> }>(secrets, {
      namespace: own,
      name: ownObjects.tickets,
    });
    const [key] = readTicketKeys(Buffer.from(data[ticketKeysEntry] ?? "", "base64").toString("utf8"));
    assert.ok(key);
    const body = JSON.stringify({ repo: "octo/app" });
    const ticket = signTicket(key.key, {
      v: 1,
      kid: key.kid,
      body: sha256Of(body),
      interface: untypedInterface,
      function: "list_issues",
      definition: (grant.status?.observed?.digest ?? "") as `v1:sha256:${string}`,
      component: bridgeDigest,
      grant: grantDigest(grant.spec),
      pod: podUid,
      boot,
      iat: Date.now(),
      exp: Date.now() + 30_000,
      nonce: freshNonce(),
    });
    const tls = hostTls({ podUid, boot }, keyring.root.hosts.certificate);
    const endpoint: Endpoint = {
      url: `https://${address}:${hostPort}`,
      tls,
      podUid,
      bootId: boot,
      component: bridgeDigest,
      deadlineMs: 10_000,
    };
    return dispatcher.dispatch(endpoint, ticket, Buffer.from(body));
  };
  /** The server has no host that it may ask: that it says so is its own answer. */
  const isAnswered = async (): Promise<boolean> => {
    const dispatched = await call();
    return dispatched.kind === "replied" && dispatched.reply.outcome === "tool-error";
  };

  let bridge: RunningPod;
  let server: RunningPod;

  test("a bridge is ready before there is a server, and the Workload says what it can't do", async () => {
    await world.put({ components: [{ name: component, image }], mcpServers: [{ name: entry, component }] });
    bridge = await run(entry, "bridge-a");
    await ready(bridge);
    for (const one of [entry, component]) await world.rollOut(one);
    const workload = await world.workloadIs((one) => componentIn(one, entry)?.fault !== undefined);
    assert.equal(componentIn(workload, entry)?.fault?.reason, "ListingFailed");
    assert.equal(componentIn(workload, component)?.fault, undefined);
  });

  test("what the server lists comes through both hosts as soon as it is there, and is drafted", async () => {
    server = await run(component, "server-a");
    await ready(server);
    const draft = await world.grantIs("Draft");
    assert.deepEqual(plain(draft.spec.tool), { workload: "issues", mcpServer: entry, tool: "list_issues" });
    assert.equal(draft.status?.observed?.code, digest);
    await world.workloadIs((one) => componentIn(one, entry)?.fault === undefined);
  });

  test("a call goes to the bridge, from there to the server, and its answer back", async () => {
    await world.approve();
    await world.grantIs("Active");
    const dispatched = await call();
    assert.ok(dispatched.kind === "replied" && dispatched.reply.outcome === "tool-error", JSON.stringify(dispatched));
    assert.match(dispatched.reply.text, /https:\/\/api\.github\.com:443 is not granted/);
  });

  test("nobody else is served: without its credential not even over the right TLS", async () => {
    const pod = await world.client.get<Pod>(pods, { namespace: world.namespace, name: server.name });
    const identity = { podUid: pod.metadata.uid ?? "", boot: pod.metadata.annotations?.[podAnnotations.boot] ?? "" };
    const client = new Client(`https://${server.address}:${hopPort}`, { connect: hostTls(identity, keyring.root.hosts.certificate) });
    try {
      for (const headers of [{}, { [hopHeader]: randomBytes(32).toString("base64url") }]) {
        const answer = await client.request({ method: "POST", path: "/mcp", headers, body: "{}" });
        await answer.body.dump();
        assert.equal(answer.statusCode, 401);
      }
    } finally {
      await client.destroy();
    }
  });

  test("another pod of the server takes over when the first has gone", async () => {
    const next = await run(component, "server-b");
    await ready(next);
    await end(server);
    assert.ok(await becomes(isAnswered, withinMs));
    server = next;
  });

  test("an operator that starts anew takes no server away", async () => {
    await startOperator();
    for (let count = 0; count < 20; count++) assert.ok(await isAnswered());
    // It has told both hosts all anew by now.
    await world.grantIs("Active");
    assert.ok(await isAnswered());
  });

  test("a server that gets another name takes that bridge's requests, without another pod", async () => {
    await world.put({ components: [{ name: component, image }], mcpServers: [{ name: "renamed", component }] });
    const pod = await run("renamed", "bridge-b");
    await ready(pod);
    const workload = await world.workloadIs((one) => (componentIn(one, "renamed")?.toolCount ?? 0) > 0);
    assert.deepEqual(plain(componentIn(workload, component)?.pods), [{ digest, ready: 1 }]);
  });

  test("nothing failed meanwhile", () => {
    assert.deepEqual(world.failures, []);
  });
});
