import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { isSha256Digest, type Sha256Digest, sha256Of } from "../../src/api/digest.ts";
import { canonicalJson } from "../../src/api/json.ts";
import type { TicketClaims } from "../../src/api/ticket.ts";
import { podAnnotations } from "../../src/operator/names.ts";
import { freshNonce, signTicket, ticketHeader } from "../../src/tickets/ticket.ts";
import { readTicketKeys, ticketKeysEntry, ticketSigner } from "../../src/tickets/ticket-keys.ts";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, fixture, Ground, type Pod, whyNoGround } from "./ground.ts";
import { takeOver } from "./impostor.ts";
import { ambitNamespace, apply } from "./installed.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";

/**
 * Who goes past the catalogue gets nothing: a neighbour, who is held back by the NetworkPolicy and, without one, by the host; whoever has a ticket that is not for exactly this; and somebody who answers
 * in a host's place.
 */

const reason = await whyNoGround();

const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };
const body = canonicalJson(call.arguments);

describe("past the catalogue", { skip: reason ?? false }, () => {
  let ground: Ground;
  let reviewer: Person;
  let agent: Agent;
  let signer: { readonly kid: string; readonly key: KeyObject };
  let claimsFor: (pod: Pod) => TicketClaims;

  const bootOf = ({ metadata }: Pod): string => metadata.annotations?.[podAnnotations.boot] ?? "";

  /** What a tool's host answers to a neighbour that sends this body with this ticket: `200 ok`, or `401 TicketUsed`. */
  const send = (pod: Pod, ticket?: string, sent = body): Promise<string> =>
    agent.run(`
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
      process.removeAllListeners("warning");
      fetch("https://${pod.status.podIP}:8443/v1/call", {
        method: "POST", body: ${JSON.stringify(sent)}, headers: ${JSON.stringify(ticket === undefined ? {} : { [ticketHeader]: ticket })}, signal: AbortSignal.timeout(5000),
      }).then(async (r) => { const said = await r.json(); console.log(r.status, said.outcome ?? said.code); }, (e) => console.log("no connection", e.cause?.code ?? e.name));`);

  const ready = async (replicas: number): Promise<readonly Pod[]> => {
    const isReady = ({ status, metadata }: Pod): boolean =>
      status.containerStatuses?.[0]?.ready === true && metadata.annotations?.[podAnnotations.delivered] !== undefined;
    await eventually(
      `${replicas} pods are ready`,
      async () => {
        const pods = await ground.podsOf("github");
        return pods.length === replicas && pods.every(isReady);
      },
      () => ground.podsOf("github"),
    );
    return ground.podsOf("github");
  };

  before(async () => {
    ground = await Ground.lay("tickets");
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
    const image = await ground.registry.push("tools/mission", fixture("mission"));
    await ground.applyWorkload("github", [{ name: "github", image }], { replicas: 2 });
    const name = await ground.drafted("github");
    await reviewer.ambit("approve", name, "--yes", ...letsRead(ground.namespace));
    await eventually("the call is answered", async () => (await agent.outcome(call)) === "ok");

    const { data } = JSON.parse(await ground.kubectl(["--namespace", ambitNamespace, "get", "secret", "ambit-tickets", "-o", "json"]));
    const key = ticketSigner(readTicketKeys(Buffer.from(data[ticketKeysEntry], "base64").toString()), Date.now());
    assert.ok(key);
    signer = key;
    const { spec, status } = await ground.grant(name);
    const component = status?.observed?.component ?? "";
    assert.ok(isSha256Digest(component) && spec.review && spec.tool.function !== undefined);
    const { review, tool } = spec;
    claimsFor = (pod) => ({
      v: 1,
      kid: signer.kid,
      body: sha256Of(Buffer.from(body)),
      interface: tool.interface ?? null,
      function: tool.function ?? "",
      definition: review.definition as TicketClaims["definition"],
      component,
      grant: review.grant as Sha256Digest,
      pod: pod.metadata.uid,
      boot: bootOf(pod),
      iat: Date.now(),
      exp: Date.now() + 60_000,
      nonce: freshNonce(),
    });
  });

  after(() => ground?.[Symbol.asyncDispose]());

  const ticketFor = (pod: Pod, changed: Partial<TicketClaims> = {}, key = signer.key): string =>
    signTicket(key, { ...claimsFor(pod), ...changed });

  test("a neighbour does not reach a tool's host: its NetworkPolicy lets nobody in but Ambit", async () => {
    const [pod] = await ready(2);
    assert.ok(pod);
    assert.match(await send(pod, ticketFor(pod)), /^no connection (ECONNREFUSED|TimeoutError)$/);
  });

  test("a neighbour that reaches it, where no policy holds, has nothing run for it", async () => {
    await apply(ground.kubectl, {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "everybody", namespace: ground.namespace },
      spec: { podSelector: {}, policyTypes: ["Ingress"], ingress: [{}] },
    });
    const [pod] = await ready(2);
    assert.ok(pod);
    await eventually(
      "the policies are off",
      async () => (await send(pod)) === "401 TicketMissing",
      () => send(pod),
    );
  });

  test("a ticket works once, there, and nowhere else", async () => {
    const [pod, other] = await ready(2);
    assert.ok(pod && other);
    const ticket = ticketFor(pod);
    assert.equal(await send(other, ticket), "401 TicketMisdirected", "at another replica");
    assert.equal(await send(pod, ticket), "200 ok");
    assert.equal(await send(pod, ticket), "401 TicketUsed", "replayed");
  });

  const altered: Readonly<Record<string, { readonly send: (pod: Pod) => Promise<string>; readonly answer: string }>> = {
    "for other arguments": { send: (pod) => send(pod, ticketFor(pod), body.replace("spoon", "fork")), answer: "401 TicketBodyMismatch" },
    "that has expired": {
      send: (pod) => send(pod, ticketFor(pod, { iat: Date.now() - 300_000, exp: Date.now() - 240_000 })),
      answer: "401 TicketExpired",
    },
    "for another component": {
      send: (pod) => send(pod, ticketFor(pod, { component: sha256Of(Buffer.from("another")) })),
      answer: "401 TicketMisdirected",
    },
    "whose claims were altered": {
      send: (pod) => {
        const [, signature] = ticketFor(pod).split(".");
        const claims = Buffer.from(JSON.stringify({ ...claimsFor(pod), exp: Date.now() + 90_000 })).toString("base64url");
        return send(pod, `${claims}.${signature}`);
      },
      answer: "401 TicketSignatureWrong",
    },
    "that somebody else signed": {
      send: (pod) => send(pod, ticketFor(pod, {}, generateKeyPairSync("ed25519").privateKey)),
      answer: "401 TicketSignatureWrong",
    },
    "under a key that no host was told": { send: (pod) => send(pod, ticketFor(pod, { kid: "mine" })), answer: "401 TicketKeyUnknown" },
  };

  for (const [what, { send, answer }] of Object.entries(altered)) {
    test(`a ticket ${what} runs nothing`, async () => {
      const [pod] = await ready(2);
      assert.ok(pod);
      assert.equal(await send(pod), answer);
    });
  }

  test("a ticket of before a restart, used or not, runs nothing after it", async () => {
    const [pod] = await ready(2);
    assert.ok(pod);
    const [used, unused] = [ticketFor(pod), ticketFor(pod, { exp: Date.now() + 110_000 })];
    assert.equal(await send(pod, used), "200 ok");
    await ground.kubectlHere(["exec", pod.metadata.name, "--", "node", "-e", "process.kill(1, 'SIGTERM')"]);
    await eventually("its host is another one", async () => bootOf(await ground.read<Pod>("pods", pod.metadata.name)) !== bootOf(pod));
    const [restarted] = (await ready(2)).filter(({ metadata }) => metadata.name === pod.metadata.name);
    assert.ok(restarted);
    for (const ticket of [used, unused]) assert.equal(await send(restarted, ticket), "401 TicketMisdirected");
    assert.equal(await send(restarted, ticketFor(restarted)), "200 ok");
  });

  test("an impostor at a pod's address gets no arguments, and the pod is back when it has its address again", async () => {
    await ground.patchWorkload("github", "/replicas", 1);
    const [pod] = await ready(1);
    assert.ok(pod);
    await eventually("the call is answered", async () => (await agent.outcome(call)) === "ok");
    {
      await using impostor = await takeOver(ground, pod, bootOf(pod));
      await eventually(
        "he answers in its place",
        async () => (await agent.outcome(call)) !== "ok" && impostor.heard.includes("handshake failed"),
        async () => impostor.heard,
      );
      for (let attempt = 0; attempt < 3; attempt++) assert.notEqual(await agent.outcome(call), "ok");
      assert.deepEqual(
        impostor.heard.filter((line) => line !== "handshake failed" && line !== "GET /readyz" && line !== "GET /healthz"),
        [],
        "all that he could read are the kubelet's questions",
      );
    }
    await eventually(
      "the call is answered",
      async () => (await agent.outcome(call)) === "ok",
      () => agent.outcome(call),
    );
  });
});
