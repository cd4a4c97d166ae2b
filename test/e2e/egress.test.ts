import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { testImage } from "../cluster/test-image.ts";
import { type Agent, startAgent } from "./agent.ts";
import { eventually, example, Ground, type Pod, whyNoGround } from "./ground.ts";
import { apply } from "./installed.ts";
import { countPackets } from "./passed-packets.ts";
import { reachedFromPod } from "./reached.ts";
import { letsRead, type Person, personWith } from "./reviewer.ts";
import { registryAddress, registryNames, toolsRegistryPort } from "./tools-registry.ts";

/**
 * What a tool's sandbox reaches on a real node, measured by a process in the pod's network that heeds nothing of Ambit's host: there the NetworkPolicy is alone. And by a guest, with a policy that
 * lets everything out: there the host is alone.
 */

const reason = await whyNoGround();

const registry = `${registryAddress}:${toolsRegistryPort}`;
const first = "20.10.0.7";
const second = "20.10.0.8";
const name = "api.example.net";

/** Answers on every address of the world, and says which it was asked at. */
const webServer = `
  const { createServer } = require("node:http");
  for (const port of [80, 81]) createServer((request, response) => {
    response.setHeader("content-type", "text/plain");
    response.end("served at " + request.socket.localAddress);
  }).listen(port, "0.0.0.0", () => console.log("listening"));`;

/** A web server that a Service can lead to. */
const webPod = (namespace: string): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace, labels: { app: "web" } },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
    containers: [
      {
        name: "web",
        image: testImage,
        imagePullPolicy: "Never",
        command: [
          "node",
          "-e",
          `require("node:http").createServer((_, response) => response.setHeader("content-type", "text/plain").end("served by a pod")).listen(8080)`,
        ],
        ports: [{ name: "http", containerPort: 8080 }],
        readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
      },
    ],
  },
});

describe("what a sandbox reaches", { skip: reason ?? false }, () => {
  let ground: Ground;
  let reviewer: Person;
  let agent: Agent;
  let image: string;

  const serveWeb = async (): Promise<void> => {
    const { world } = ground.node;
    for (const address of [first, second]) await world.addAddress(address);
    const [file = "", ...args] = [...world.command, process.execPath, "-e", webServer];
    const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    ground.atTheEnd(async () => {
      child.kill();
      await exited;
      for (const address of [first, second]) await world.removeAddress(address);
    });
    await once(child.stdout, "data");
    child.stdout.resume();
  };

  const namesOf = (address: string): Promise<void> => ground.node.world.setNames({ [name]: [address], ...registryNames });

  before(async () => {
    ground = await Ground.lay("egress");
    await serveWeb();
    await namesOf(first);
    image = await ground.registry.push("tools/fetch", example("fetch"));
    reviewer = await personWith(ground, "reviewer");
    agent = await startAgent(ground, "triage");
  });

  after(() => ground?.[Symbol.asyncDispose]());

  const applyWorkload = (workload: string, allowedHosts: readonly string[]): Promise<void> =>
    ground.applyWorkload(workload, [{ name: "web", image, localResources: { allowedHosts } }]);

  const statusOf = async (workload: string) => (await ground.workload(workload)).status;

  const condition = async (workload: string, type: string) => (await statusOf(workload))?.conditions?.find((one) => one.type === type);

  const becomesReady = (workload: string): Promise<string> => ground.workloadIs(workload, "Ready", "True");

  const podOf = async (workload: string): Promise<string> => (await ground.onlyPodOf(workload)).metadata.name;

  /** Every address that the pod's network has, but those of its loopback. */
  const addressesIn = async (pod: string): Promise<string[]> => {
    const [file, ...args] = await ground.node.commandInPod(ground.namespace, pod);
    const { stdout } = await promisify(execFile)(file, [...args, "ip", "--json", "addr"]);
    const links: readonly { ifname: string; addr_info: readonly { local: string }[] }[] = JSON.parse(stdout);
    return links.flatMap(({ ifname, addr_info }) => (ifname === "lo" ? [] : addr_info.map(({ local }) => local)));
  };

  const reachedFrom = (pod: string, targets: readonly string[]): Promise<Record<string, boolean>> => reachedFromPod(ground, pod, targets);

  const all = (targets: readonly string[], reached: boolean) => Object.fromEntries(targets.map((target) => [target, reached]));

  /** Everything that a pod without a policy reaches: the API server, DNS, the registry, another pod, and the web. */
  const everything = async (): Promise<readonly string[]> => {
    const service = (await ground.kubectl(["get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"])).trim();
    const dns = (
      await ground.kubectl(["--namespace=kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIP}"])
    ).trim();
    const select = ["--selector=k8s-app=kube-dns", "-o", "jsonpath={.items[0].status.podIP}"];
    const pod = (await ground.kubectl(["--namespace=kube-system", "get", "pods", ...select])).trim();
    return [
      `${service}:443`,
      `${dns}:53`,
      `udp:${dns}:53`,
      `${pod}:53`,
      `udp:${pod}:53`,
      registry,
      `${first}:80`,
      `${first}:81`,
      `${second}:80`,
    ];
  };

  const addressOf = async (pod: string): Promise<string> => (await ground.read<Pod>("pods", pod)).status.podIP;

  test("nothing at all without allowed hosts: no packet gets past the node, while an ordinary pod beside it reaches everything", async () => {
    await applyWorkload("closed", []);
    await becomesReady("closed");
    const targets = await everything();
    const pod = await podOf("closed");
    await using packets = await countPackets(ground.node);
    assert.deepEqual(await reachedFrom("agent", targets), all(targets, true));
    assert.deepEqual(await reachedFrom(pod, targets), all(targets, false));
    const passed = await packets.from(await addressOf("agent"));
    for (const to of [`tcp ${first} 80`, `tcp ${first} 81`, `tcp ${second} 80`, `tcp ${registry.replace(":", " ")}`])
      assert.ok(passed.includes(to), `packets that pass are counted: ${to} in ${passed.join(", ")}`);
    assert.deepEqual(await packets.from(await addressOf(pod)), []);
    assert.deepEqual(await addressesIn(pod), [await addressOf(pod)], "nor has it another address, of IPv6 say, to send from");
  });

  test("with one allowed host exactly its address and port", async () => {
    await applyWorkload("open", [`http://${name}`]);
    await becomesReady("open");
    const targets = await everything();
    const pod = await podOf("open");
    await using packets = await countPackets(ground.node);
    assert.deepEqual(await reachedFrom(pod, targets), { ...all(targets, false), [`${first}:80`]: true });
    assert.deepEqual(await packets.from(await addressOf(pod)), [`tcp ${first} 80`]);
  });

  test("the status tells that it is enforced, and where the host may be dialled", async () => {
    const enforced = await condition("open", "EgressEnforced");
    assert.deepEqual([enforced?.status, enforced?.reason], ["True", "PolicyInForce"], enforced?.message ?? "no condition");
    const [entry] = (await statusOf("open"))?.components?.[0]?.egress ?? [];
    assert.deepEqual([entry?.host, entry?.addresses, entry?.enforcedBy], [`http://${name}`, [first], "networkpolicy"]);
  });

  /** A call of the tool, once a reviewer has approved it. */
  let callOf: (url: string) => object = () => ({});

  test("when its address changes no call fails, and the old one is closed once it has drained", async (t) => {
    const draft = await ground.drafted("open");
    await reviewer.ambit("approve", draft, "--yes", ...letsRead(ground.namespace));
    const tool = (await ground.grant(draft)).spec.declaration.name;
    callOf = (url) => ({ name: tool, arguments: { url } });
    const call = callOf(`http://${name}/`);
    await eventually(
      "the tool is called",
      async () => JSON.stringify(await agent.request("POST", "/v1/calls", call)).includes(`served at ${first}`),
      () => agent.request("POST", "/v1/calls", call),
    );
    const pod = await podOf("open");
    const started = performance.now();
    const stage = (what: string): void => t.diagnostic(`${what}: ${Math.round(performance.now() - started)} ms after the name's change`);
    const { good, bad } = await agent.callingWhile(call, "served at", 2, async () => {
      await namesOf(second);
      await eventually(
        "the new address is dialled",
        async () => JSON.stringify(await agent.request("POST", "/v1/calls", call)).includes(`served at ${second}`),
        () => statusOf("open"),
      );
      stage("the new address is dialled");
      assert.deepEqual(await reachedFrom(pod, [`${first}:80`, `${second}:80`]), { [`${first}:80`]: true, [`${second}:80`]: true });
      await eventually(
        "the old address is closed",
        async () => !(await reachedFrom(pod, [`${first}:80`]))[`${first}:80`],
        () => statusOf("open"),
      );
      stage("the old address is closed");
    });
    assert.deepEqual(bad, []);
    assert.ok(good > 10, `${good} calls`);
    t.diagnostic(`${good} calls, none failed`);
    assert.deepEqual(await reachedFrom(pod, [`${first}:80`, `${second}:80`]), { [`${first}:80`]: false, [`${second}:80`]: true });
  });

  test("a Service is reached at its address, which leads to its pods alone", async () => {
    await apply(ground.kubectl, webPod(ground.namespace));
    await apply(ground.kubectl, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace: ground.namespace },
      spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: "http" }] },
    });
    await ground.kubectlHere(["wait", "pod/web", "--for=condition=Ready", "--timeout=180s"]);
    const host = `web.${ground.namespace}.svc`;
    await applyWorkload("inner", [`http://${host}`]);
    await becomesReady("inner");
    const address = (await ground.kubectlHere(["get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"])).trim();
    const [entry] = (await statusOf("inner"))?.components?.[0]?.egress ?? [];
    assert.deepEqual(entry?.addresses, [address]);
    const targets = await everything();
    assert.deepEqual(await reachedFrom(await podOf("inner"), [...targets, `${address}:80`]), {
      ...all(targets, false),
      [`${address}:80`]: true,
    });

    // One caller can't have two tools of one name.
    const draft = await ground.drafted("inner");
    const patch = JSON.stringify([{ op: "replace", path: "/spec/declaration/name", value: "fetch_inner" }]);
    await ground.kubectlHere(["patch", "toolgrant", draft, "--type=json", `--patch=${patch}`]);
    await ground.grantIs(draft, "Draft");
    await reviewer.ambit("approve", draft, "--yes", ...letsRead(ground.namespace));
    const call = { name: "fetch_inner", arguments: { url: `http://${host}/` } };
    const answer = () => agent.request("POST", "/v1/calls", call);
    await eventually("the tool is answered by the Service", async () => JSON.stringify(await answer()).includes("served by a pod"), answer);
  });

  test("with a policy that lets everything out, a guest still reaches its host alone, and the status tells that nothing enforces", async () => {
    await apply(ground.kubectl, {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "everything", namespace: ground.namespace },
      spec: { podSelector: {}, policyTypes: ["Egress"], egress: [{}] },
    });
    const pod = await podOf("open");
    await eventually(
      "the policies are off",
      async () => (await reachedFrom(pod, [registry]))[registry] === true,
      () => statusOf("open"),
    );
    for (const url of [
      `http://${registry}/v2/`,
      `http://${name}:81/`,
      `http://${first}/`,
      `http://${second}/`,
      "http://kubernetes.default.svc/",
    ]) {
      const said = JSON.stringify(await agent.request("POST", "/v1/calls", callOf(url)));
      assert.match(said, /not granted/, url);
    }
    assert.match(JSON.stringify(await agent.request("POST", "/v1/calls", callOf(`http://${name}/`))), /served at/);
    await ground.kubectlHere(["delete", "pod", pod]);
    await eventually(
      "the next host tells",
      async () => (await condition("open", "EgressEnforced"))?.reason === "CanaryReached",
      () => statusOf("open"),
    );
  });
});
