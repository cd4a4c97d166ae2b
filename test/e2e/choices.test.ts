import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { storeProgram, whyNoStore } from "../support/counter-store.ts";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, fixture, Ground, type Pod, whyNoGround } from "./ground.ts";
import { ambitNamespace, apply, installAmbit, operatorArguments } from "./installed.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";
import { registryNames } from "./tools-registry.ts";
import { serveInWorld } from "./world-server.ts";

/**
 * What an installation may choose besides: a store in which replicas count together, a call policy, a collector of traces, who may scrape, and that no component is delivered where no policy holds. All at
 * one time, and then none of it.
 */

const reason = (await whyNoGround()) ?? whyNoStore();

const store = { name: "store.example.net", address: "20.10.0.11", port: 6379 };
const collector = { name: "collector.example.net", address: "20.10.0.12", port: 4318 };

/** Prints `service span` for each span that it is sent. */
const collecting = `
  require("node:http").createServer(async (request, response) => {
    const chunks = []; for await (const chunk of request) chunks.push(chunk);
    for (const { resource, scopeSpans } of JSON.parse(Buffer.concat(chunks)).resourceSpans) {
      const service = resource.attributes.find(({ key }) => key === "service.name").value.stringValue;
      for (const { spans } of scopeSpans) for (const { name } of spans) console.log(service, name);
    }
    response.setHeader("content-type", "application/json").end("{}");
  }).listen(${collector.port}, "${collector.address}", () => console.log("listening"));`;

const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };

/** Of one caller, in a window that no test outlasts. */
const allowed = 5;

describe("an installation that chooses a counter store, a call policy, traces, a scraper, and policies that hold", {
  skip: reason ?? false,
}, () => {
  const monitoring = `monitoring-${randomBytes(4).toString("hex")}`;
  const spans = new Set<string>();
  let ground: Ground;
  let reviewer: Person;
  let agent: Agent;
  let scraper: Agent;
  let image: string;

  const podsOf = async (part: string): Promise<readonly Pod[]> => {
    const select = [`--selector=app.kubernetes.io/component=${part}`, "-o", "json"];
    const { items }: { items: readonly Pod[] } = JSON.parse(
      await ground.kubectl(["--namespace", ambitNamespace, "get", "pods", ...select]),
    );
    return items.filter(({ metadata }) => !("deletionTimestamp" in metadata));
  };

  /** What comes of reading the metrics of every pod of Ambit's: `200 metrics`, or that there is no connection. */
  const scraped = async (by: Agent): Promise<string[]> => {
    const urls = [...(await podsOf("operator")), ...(await podsOf("catalogue"))].map(({ status }) => `http://${status.podIP}:8080/metrics`);
    const script = `
      const get = (url) => fetch(url, { signal: AbortSignal.timeout(5000) })
        .then(async (r) => r.status + ((await r.text()).includes("ambit_build_info") ? " metrics" : ""), () => "no connection");
      Promise.all(${JSON.stringify(urls)}.map(get)).then((all) => console.log(JSON.stringify(all)));`;
    return JSON.parse(await by.run(script));
  };

  /** Sends the call to one replica of the catalogue, past its Service, so often; gives the outcomes, and why not, where it says. */
  const callAt = async (replica: Pod, times: number): Promise<string[]> => {
    const script = `
      const host = "ambit-catalogue.${ambitNamespace}.svc";
      const once = () => new Promise((done, failed) => require("node:https").request({ method: "POST", host: "${replica.status.podIP}", port: 8443,
        servername: host, path: "/v1/calls", headers: { host, authorization: "Bearer " + token, "content-type": "application/json" } }, async (r) => {
          const chunks = []; for await (const chunk of r) chunks.push(chunk);
          const { outcome, reason } = JSON.parse(Buffer.concat(chunks));
          done(reason ? outcome + " " + reason.gate : outcome);
        }).on("error", failed).end(${JSON.stringify(JSON.stringify(call))}));
      (async () => { const all = []; for (let i = 0; i < ${times}; i++) all.push(await once()); console.log(JSON.stringify(all)); })();`;
    return JSON.parse(await agent.run(script));
  };

  const serve = async (): Promise<void> => {
    const program = storeProgram() ?? "";
    const listening = [
      "--bind",
      store.address,
      "--port",
      String(store.port),
      "--requirepass",
      "open sesame",
      "--save",
      "",
      "--dir",
      "/tmp",
    ];
    (await serveInWorld(ground, store.address, [program, ...listening])).stdout.resume();
    const collected = await serveInWorld(ground, collector.address, [process.execPath, "-e", collecting]);
    createInterface(collected.stdout).on("line", (line) => spans.add(line));
    await ground.node.world.setNames({ ...registryNames, [store.name]: [store.address], [collector.name]: [collector.address] });
    await apply(ground.kubectl, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "counter-store", namespace: ambitNamespace },
      stringData: { password: "open sesame" },
    });
    ground.atTheEnd(async () => {
      await ground.kubectl(["--namespace", ambitNamespace, "delete", "secret", "counter-store", "--ignore-not-found"]);
      await ground.node.world.setNames(registryNames);
    });
  };

  before(async () => {
    ground = await Ground.lay("choices");
    await ground.addNamespace(monitoring);
    await serve();
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
    scraper = await startAgent(ground, "prometheus", monitoring);
    image = await ground.registry.push("tools/mission", fixture("mission"));
    await ground.applyWorkload("github", [{ name: "github", image }]);
    const draft = await ground.drafted("github");
    const limit = JSON.stringify({ spec: { rateLimit: { count: allowed, window: "1h" } } });
    await ground.kubectlHere(["patch", "toolgrant", draft, "--type=merge", `--patch=${limit}`]);
    await ground.grantIs(draft, "Draft");
    await reviewer.ambit("approve", draft, "--yes", ...letsRead(ground.namespace));
    await ground.grantIs(draft, "Active");
  });

  after(async () => {
    // Whatever went wrong, no other suite is to find these choices.
    if (ground) await installAmbit(ground.cluster);
    await ground?.[Symbol.asyncDispose]();
  });

  test("has nobody read its metrics before", async () => {
    assert.deepEqual(await scraped(scraper), Array(3).fill("no connection"));
  });

  test("comes up with all of it", async (t) => {
    const started = performance.now();
    await installAmbit(ground.cluster, {
      "operator.arguments": [...operatorArguments, "--require-network-policy"],
      "catalogue.counterStore": { url: `redis://${store.name}:${store.port}`, secret: { name: "counter-store" } },
      "catalogue.policy": { explainsTo: [{ kind: "ServiceAccount", name: "triage", namespace: ground.namespace }] },
      "telemetry.traces": { endpoint: `http://${collector.name}:${collector.port}` },
      "telemetry.scrapers": [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": monitoring } } }],
    });
    t.diagnostic(`${Math.round(performance.now() - started)} ms`);
    await eventually("two replicas of the catalogue stay", async () => (await podsOf("catalogue")).length === 2);
  });

  test("has the chosen scraper read the metrics of every pod, and an agent of none", async () => {
    await eventually(
      "the scraper reads them",
      async () => (await scraped(scraper)).every((said) => said === "200 metrics"),
      () => scraped(scraper),
    );
    assert.deepEqual(await scraped(agent), Array(3).fill("no connection"));
  });

  test("counts a limit once for all replicas, and tells whom its policy names why a call is refused", async () => {
    const [one, other] = await podsOf("catalogue");
    assert.ok(one && other);
    assert.deepEqual(await callAt(one, allowed), Array(allowed).fill("ok"), "one replica has the whole of it, not a share");
    assert.deepEqual(await callAt(other, 1), ["refused rate"]);
    assert.deepEqual(await callAt(one, 1), ["refused rate"]);
  });

  test("sends its spans to the collector: of the catalogue and of the host", async () => {
    const seen = async (): Promise<string[]> => [...spans];
    const wanted = ["ambit-catalogue POST /v1/calls", "ambit-catalogue execute_tool list_issues", "ambit-host run"];
    await eventually("they come", async () => wanted.every((span) => spans.has(span)), seen);
  });

  test("has no component delivered to a sandbox that no policy holds, until one does, and leaves those that serve", async () => {
    await apply(ground.kubectl, {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "everything", namespace: ground.namespace },
      spec: { podSelector: {}, policyTypes: ["Egress"], egress: [{}] },
    });
    await ground.applyWorkload("late", [{ name: "tool", image }]);
    await ground.workloadIs("late", "EgressEnforced", "False", "CanaryReached");
    const delivered = ({ metadata }: Pod) => metadata.annotations?.["ambit.dev/delivered"] !== undefined;
    assert.equal(delivered(await ground.onlyPodOf("late")), false);
    await ground.workloadIs("github", "Ready", "True", "Serving");
    await ground.kubectlHere(["delete", "networkpolicy", "everything"]);
    await ground.workloadIs("late", "Ready", "True", "Serving");
    assert.equal(delivered(await ground.onlyPodOf("late")), true);
  });

  test("goes back to none of it: calls are counted by each replica, nobody is told why, no span is sent, nobody scrapes", async () => {
    await installAmbit(ground.cluster);
    await eventually("replicas without the store answer", async () => {
      const replicas = await podsOf("catalogue");
      return replicas.length === 2 && (await callAt(replicas[0] as Pod, 1))[0] === "ok";
    });
    spans.clear();
    const replicas = await podsOf("catalogue");
    const outcomes = [];
    for (const replica of replicas) outcomes.push(...(await callAt(replica, allowed)));
    assert.ok(outcomes.filter((outcome) => outcome === "ok").length <= allowed, outcomes.join(", "));
    assert.ok(outcomes.includes("refused"), `and without a reason: ${outcomes.join(", ")}`);
    await eventually("the scraper is shut out", async () => (await scraped(scraper)).every((said) => said === "no connection"));
    assert.deepEqual([...spans], []);
  });
});
