import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, fixture, Ground, type Pod, whyNoGround } from "./ground.ts";
import { ambitNamespace, apply } from "./installed.ts";
import { countPackets } from "./passed-packets.ts";
import { reachedFromPod, reachedFromWorld } from "./reached.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";
import { registryNames } from "./tools-registry.ts";
import { serveInWorld } from "./world-server.ts";

/**
 * Agent → tool → server → what it fronts, each hop with a grant of its own: the bridge reaches the server and nothing else, the server its own host and nothing else, the agent neither. Every other
 * connection is tried by a process in the network of who must not make it, past Ambit's host. What they share a namespace with tries as well, and what the server fronts.
 */

const reason = await whyNoGround();

const upstream = { name: "api.example.net", address: "20.10.0.13" };

/** What the server fronts: an issue tracker that wants a credential, and on another port something of the same machine. */
const tracker = `
  const { createServer } = require("node:http");
  const issues = [{ number: 7, title: "Spoon bends", state: "open", body: "It does." }];
  for (const port of [80, 81]) createServer((request, response) => {
    if (request.headers.authorization !== "Bearer open sesame") return response.writeHead(401).end();
    response.setHeader("content-type", "application/json").end(JSON.stringify(issues));
  }).listen(port, "${upstream.address}", () => console.log("listening"));`;

const call = { name: "list_issues", arguments: { repo: "octo/spoon" } };

describe("an MCP server that is a component", { skip: reason ?? false }, () => {
  let ground: Ground;
  let reviewer: Person;
  let agent: Agent;
  let operator: string;
  let places: Record<"agent" | "bridge" | "server" | "neighbour", { readonly pod: string; readonly address: string }>;

  const answer = () => agent.request("POST", "/v1/calls", call);
  const answers = (): Promise<void> => eventually("the call is answered", async () => (await agent.outcome(call)) === "ok", answer);

  const placeOf = async (workload: string, component: string) => {
    const pods = (await ground.podsOf<Pod & { metadata: { labels: Record<string, string> } }>(workload)).filter(
      ({ metadata }) => metadata.labels["ambit.dev/component"] === component,
    );
    const [pod] = pods;
    assert.ok(pod && pods.length === 1, `${workload}/${component} has one pod`);
    return { pod: pod.metadata.name, address: pod.status.podIP };
  };

  const findPlaces = async (): Promise<void> => {
    places = {
      agent: { pod: "agent", address: (await ground.read<Pod>("pods", "agent")).status.podIP },
      bridge: await placeOf("tracker", "issues"),
      server: await placeOf("tracker", "issues-mcp"),
      neighbour: await placeOf("beside", "tool"),
    };
  };

  /** Something in the agent's network that takes connections, so that nobody fails to reach it for want of that. */
  const listenAtAgent = async (): Promise<void> => {
    const [file, ...args] = await ground.node.commandInPod(ground.namespace, "agent");
    const script = `require("node:net").createServer((socket) => socket.end()).listen(8080, () => console.log("listening"))`;
    const child = spawn(file, [...args, process.execPath, "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    ground.atTheEnd(async () => {
      child.kill();
      await exited;
    });
    await once(child.stdout, "data");
  };

  before(async () => {
    ground = await Ground.lay("hops");
    (await serveInWorld(ground, upstream.address, [process.execPath, "-e", tracker])).stdout.resume();
    await ground.node.world.setNames({ ...registryNames, [upstream.name]: [upstream.address] });
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
    await listenAtAgent();
    const server = readFileSync(new URL("../../examples/mcp-server-component/issues-mcp.wasm", import.meta.url));
    const localResources = {
      allowedHosts: [`http://${upstream.name}`],
      environment: { config: { GITHUB_API_URL: `http://${upstream.name}` }, secretFrom: [{ name: "tracker-token" }] },
    };
    await apply(ground.kubectl, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "tracker-token", namespace: ground.namespace },
      stringData: { GITHUB_TOKEN: "open sesame" },
    });
    await ground.applyWorkload(
      "tracker",
      [{ name: "issues-mcp", image: await ground.registry.push("tools/issues-mcp", server), localResources }],
      { mcpServers: [{ name: "issues", component: "issues-mcp" }] },
    );
    await ground.applyWorkload("beside", [{ name: "tool", image: await ground.registry.push("tools/mission", fixture("mission")) }]);
    for (const workload of ["tracker", "beside"]) await ground.workloadIs(workload, "Ready", "True");
    const select = ["--selector=app.kubernetes.io/component=operator", "-o", "jsonpath={.items[0].metadata.name}"];
    operator = await ground.kubectl(["--namespace", ambitNamespace, "get", "pods", ...select]);
    await findPlaces();
  });

  after(async () => {
    await ground?.node.world.setNames(registryNames);
    await ground?.[Symbol.asyncDispose]();
  });

  test("has its tools drafted by way of its bridge, and called once a reviewer approved them: by code and reach of its own", async () => {
    const draft = await ground.drafted("tracker", "list_issues");
    assert.equal(await agent.outcome(call), "refused");
    await reviewer.ambit("approve", draft, "--yes", ...letsRead(ground.namespace));
    await answers();
    assert.match(JSON.stringify(await answer()), /Spoon bends/);
    const { spec } = await ground.grant(draft);
    assert.deepEqual(spec.tool.mcpServer, "issues");
    assert.deepEqual(spec.review?.reach.hosts, [`http://${upstream.name}`]);
    assert.deepEqual(spec.review?.reach.secrets, ["tracker-token"], "which the server has, and its bridge has not");
    const mounted = async (pod: string) =>
      JSON.stringify((await ground.read<{ spec: { volumes: object[] } }>("pods", pod)).spec.volumes).includes("tracker-token");
    assert.deepEqual([await mounted(places.server.pod), await mounted(places.bridge.pod)], [true, false]);
  });

  const at = (who: keyof typeof places, port: number): string => `${places[who].address}:${port}`;
  const fronted = `${upstream.address}:80`;
  const calls = 8443;
  const hop = 8444;

  /** Everything that somebody could be reached at, who is not somebody's own self. */
  const everythingBut = (self?: keyof typeof places): string[] =>
    [at("agent", 8080), at("bridge", calls), at("server", calls), at("server", hop), fronted, `${upstream.address}:81`].filter(
      (target) => self === undefined || !target.startsWith(`${places[self].address}:`),
    );

  const granted: Readonly<Record<string, { readonly who: keyof typeof places | "operator" | "world"; readonly reach: () => string[] }>> = {
    "the bridge reaches the server at the port of the hop, and nothing else": { who: "bridge", reach: () => [at("server", hop)] },
    "the server reaches its host at that port, and nothing else": { who: "server", reach: () => [fronted] },
    "the agent reaches neither of them": { who: "agent", reach: () => [fronted, `${upstream.address}:81`] },
    "a tool beside them reaches nothing": { who: "neighbour", reach: () => [] },
    "what the server fronts reaches neither of them": { who: "world", reach: () => [at("agent", 8080), fronted, `${upstream.address}:81`] },
    "the operator reaches both where they are delivered to": { who: "operator", reach: () => [at("bridge", calls), at("server", calls)] },
  };

  const reachedBy = (who: keyof typeof places | "operator" | "world", targets: readonly string[]): Promise<Record<string, boolean>> => {
    if (who === "world") return reachedFromWorld(ground, targets);
    return who === "operator"
      ? reachedFromPod(ground, operator, targets, ambitNamespace)
      : reachedFromPod(ground, places[who].pod, targets);
  };

  for (const [what, { who, reach }] of Object.entries(granted)) {
    test(`is behind hops that are granted one by one: ${what}`, async () => {
      const targets = everythingBut(who === "operator" || who === "world" ? undefined : who);
      const wanted = reach();
      assert.deepEqual(await reachedBy(who, targets), Object.fromEntries(targets.map((target) => [target, wanted.includes(target)])));
    });
  }

  test("has each of both send packets to that one place alone, also while it is called", async () => {
    await using packets = await countPackets(ground.node);
    await answers();
    await answers();
    const { bridge, server } = places;
    const sent = { bridge: await packets.from(bridge.address), server: await packets.from(server.address) };
    // Connections of before may still be open.
    assert.deepEqual(
      [...sent.bridge, ...sent.server].filter((to) => to !== `tcp ${server.address} ${hop}` && to !== `tcp ${upstream.address} 80`),
      [],
    );
  });

  test("loses no call while its pods are replaced, and its bridge's", async (t) => {
    const podsOf = async () => (await ground.podsOf("tracker")).map(({ metadata }) => metadata.name);
    for (const [component, path] of [
      ["the server", "/components/0/limits"],
      ["the bridge", "/mcpServers/0/limits"],
    ] as const) {
      const before = await podsOf();
      const { good, bad } = await agent.callingWhile(call, '"outcome":"ok"', 2, async () => {
        await ground.patchWorkload("tracker", path, { timeout: "20s" });
        await eventually(
          `another pod of ${component} is there`,
          async () => {
            const now = await podsOf();
            return now.length === 2 && now.some((pod) => !before.includes(pod));
          },
          podsOf,
        );
      });
      t.diagnostic(`${good} calls answered while ${component} was replaced`);
      assert.deepEqual(bad, []);
      assert.ok(good > 10);
    }
  });

  /** What a host's port answers to who has a connection and no credential: the status, with the code of the refusal. */
  const asked = async (pod: string, target: string, path: string, headers: Record<string, string> = {}): Promise<string> => {
    const [file, ...args] = await ground.node.commandInPod(ground.namespace, pod);
    const script = `
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
      process.removeAllListeners("warning");
      fetch("https://${target}${path}", { method: "POST", body: "{}", headers: ${JSON.stringify(headers)}, signal: AbortSignal.timeout(5000) })
        .then(async (r) => console.log(r.status, (await r.json().catch(() => ({}))).code ?? ""), (e) => console.log("no connection", e.cause?.code ?? e.name));`;
    const { stdout } = await promisify(execFile)(file, [...args, process.execPath, "-e", script]);
    return stdout.trim();
  };

  test("answers nothing to who is let through to it and has no credential of the hop", async () => {
    await findPlaces();
    assert.match(await asked(places.bridge.pod, at("server", hop), "/mcp"), /^401/);
    assert.match(await asked(places.bridge.pod, at("server", hop), "/mcp", { "ambit-hop": "A".repeat(43) }), /^401/);
  });

  test("nor anybody else anything, where no policy holds: neither it nor its bridge", async () => {
    await findPlaces();
    await apply(ground.kubectl, {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "everything", namespace: ground.namespace },
      spec: { podSelector: {}, policyTypes: ["Ingress", "Egress"], ingress: [{}], egress: [{}] },
    });
    const seen = () => reachedBy("neighbour", everythingBut("neighbour"));
    await eventually("the policies are off", async () => Object.values(await seen()).every((reached) => reached), seen);
    for (const { pod } of [places.agent, places.neighbour]) {
      assert.match(await asked(pod, at("server", hop), "/mcp"), /^401/);
      assert.match(await asked(pod, at("server", calls), "/v1/call"), /^4\d\d/);
      assert.match(await asked(pod, at("bridge", calls), "/v1/call"), /^401 TicketMissing$/);
    }
    await answers();
  });
});
