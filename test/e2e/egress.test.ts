import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { Workload } from "../../src/api/generated/workload.ts";
import type { ClusterObject } from "../../src/kube/object.ts";
import { becomes } from "../cluster/becomes.ts";
import { type BuiltInNode, startNode, whyNoCluster } from "../cluster/start-node.ts";
import { testImage } from "../cluster/test-image.ts";
import { type Agent, startAgent } from "./agent.ts";
import { apply, installAmbit, type Kubectl, kubectlOf, restrictedNamespace } from "./installed.ts";
import { approveAsReviewer, draftOf, readAll, readOne } from "./reviewer.ts";
import { serveTools, type ToolsRegistry, toolsRegistry } from "./tools-registry.ts";

/**
 * What a tool's sandbox reaches on a real node, measured by a process in the pod's network that heeds nothing of Ambit's host: there the NetworkPolicy is alone. And by a guest, with a policy that
 * lets everything out: there the host is alone.
 */

const given = process.env.AMBIT_TEST_KUBECONFIG ? "on the cluster of AMBIT_TEST_KUBECONFIG nothing can run in a pod's network" : null;

const reason = given ?? (await whyNoCluster());

const component = readFileSync(new URL("../../examples/fetch/fetch.wasm", import.meta.url));
const registryAddress = toolsRegistry.replace(/.*:/, "20.10.0.5:");
const first = "20.10.0.7";
const second = "20.10.0.8";
const name = "api.example.net";
const withinMs = 60_000;

/** Prints which of the targets a TCP connection can be made to, and whether a name server answers by UDP. */
const probe = `
  const { connect } = require("node:net");
  const reach = (target) => new Promise((resolve) => {
    if (target.startsWith("udp:")) {
      const socket = require("node:dgram").createSocket("udp4");
      const end = (reached) => { clearTimeout(timer); socket.close(); resolve(reached); };
      const timer = setTimeout(end, 2000, false);
      socket.on("message", () => end(true)).on("error", () => end(false));
      // The root's name servers.
      const query = Buffer.from([7, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]);
      const [, host, port] = target.split(":");
      socket.send(query, Number(port), host);
      return;
    }
    const [host, port] = target.split(":");
    const socket = connect({ host, port: Number(port), timeout: 2000 });
    const end = (reached) => { resolve(reached); socket.destroy(); };
    socket.on("connect", () => end(true)).on("timeout", () => end(false)).on("error", () => end(false));
  });
  Promise.all(process.argv.slice(1).map(async (target) => [target, await reach(target)]))
    .then((all) => console.log(JSON.stringify(Object.fromEntries(all))));`;

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
  const namespace = `egress-${randomBytes(4).toString("hex")}`;
  let node: BuiltInNode;
  let kubectl: Kubectl;
  let registry: ToolsRegistry;
  let agent: Agent;
  let image: string;
  const ends: (() => Promise<void>)[] = [];

  const serveWeb = async (): Promise<void> => {
    const { world } = node;
    for (const address of [first, second]) await world.addAddress(address);
    const [file = "", ...args] = [...world.command, process.execPath, "-e", webServer];
    const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    await once(child.stdout, "data");
    child.stdout.resume();
    ends.push(async () => {
      child.kill();
      await exited;
      for (const address of [first, second]) await world.removeAddress(address);
    });
  };

  const namesOf = (address: string): Promise<void> =>
    node.world.setNames({ [name]: [address], [toolsRegistry.replace(/:.*/, "")]: [registryAddress.replace(/:.*/, "")] });

  before(async () => {
    const cluster = await startNode();
    assert.ok(cluster.node);
    node = cluster.node;
    kubectl = kubectlOf(cluster);
    registry = await serveTools(node);
    await serveWeb();
    await namesOf(first);
    await installAmbit(cluster);
    image = await registry.push("tools/fetch", component);
    await apply(kubectl, restrictedNamespace(namespace));
    agent = await startAgent(kubectl, namespace, "triage");
  });

  after(async () => {
    await kubectl?.(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
    for (const end of ends) await end();
    await registry?.[Symbol.asyncDispose]();
  });

  const applyWorkload = (workload: string, allowedHosts: readonly string[]): Promise<void> =>
    apply(kubectl, {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: workload, namespace },
      spec: { components: [{ name: "web", image, localResources: { allowedHosts } }] },
    });

  const statusOf = async (workload: string) => (await readOne<Workload>(kubectl, namespace, "workloads", workload)).status;

  const condition = async (workload: string, type: string) => (await statusOf(workload))?.conditions?.find((one) => one.type === type);

  const eventually = async (what: string, holds: () => Promise<boolean>, seen: () => Promise<unknown>): Promise<void> => {
    if (!(await becomes(holds, withinMs))) assert.fail(`${what} within ${withinMs / 1000} s: ${JSON.stringify(await seen())}`);
  };

  const becomesReady = (workload: string): Promise<void> =>
    eventually(
      `${workload} is ready`,
      async () => (await condition(workload, "Ready"))?.status === "True",
      () => statusOf(workload),
    );

  const podOf = async (workload: string): Promise<string> => {
    const pods = await readAll<ClusterObject>(kubectl, namespace, "pods", `--selector=ambit.dev/workload=${workload}`);
    const running = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    assert.equal(running.length, 1);
    return running[0]?.metadata.name ?? "";
  };

  /** Which of the targets a hostile process in the network of that pod reaches. */
  const reachedFrom = async (pod: string, targets: readonly string[]): Promise<Record<string, boolean>> => {
    const [file, ...args] = await node.commandInPod(namespace, pod);
    const { stdout } = await promisify(execFile)(file, [...args, process.execPath, "-e", probe, "--", ...targets]);
    return JSON.parse(stdout);
  };

  const all = (targets: readonly string[], reached: boolean) => Object.fromEntries(targets.map((target) => [target, reached]));

  /** Everything that a pod without a policy reaches: the API server, DNS, the registry, another pod, and the web. */
  const everything = async (): Promise<readonly string[]> => {
    const service = (await kubectl(["get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"])).trim();
    const dns = (await kubectl(["--namespace=kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIP}"])).trim();
    const select = ["--selector=k8s-app=kube-dns", "-o", "jsonpath={.items[0].status.podIP}"];
    const pod = (await kubectl(["--namespace=kube-system", "get", "pods", ...select])).trim();
    return [
      `${service}:443`,
      `${dns}:53`,
      `udp:${dns}:53`,
      `${pod}:53`,
      `udp:${pod}:53`,
      registryAddress,
      `${first}:80`,
      `${first}:81`,
      `${second}:80`,
    ];
  };

  test("nothing at all without allowed hosts, while an ordinary pod beside it reaches everything", async () => {
    await applyWorkload("closed", []);
    await becomesReady("closed");
    const targets = await everything();
    assert.deepEqual(await reachedFrom("agent", targets), all(targets, true));
    assert.deepEqual(await reachedFrom(await podOf("closed"), targets), all(targets, false));
  });

  test("with one allowed host exactly its address and port", async () => {
    await applyWorkload("open", [`http://${name}`]);
    await becomesReady("open");
    const targets = await everything();
    assert.deepEqual(await reachedFrom(await podOf("open"), targets), { ...all(targets, false), [`${first}:80`]: true });
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
    const found = () => draftOf(kubectl, namespace, "open");
    await eventually(
      "there is a draft",
      async () => (await found()) !== undefined,
      () => statusOf("open"),
    );
    const draft = await found();
    assert.ok(draft);
    await approveAsReviewer(kubectl, draft, [{ kind: "ServiceAccount", name: "triage", namespace }]);
    const tool = draft.spec.declaration.name;
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
    await apply(kubectl, webPod(namespace));
    await apply(kubectl, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace },
      spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: "http" }] },
    });
    await kubectl(["--namespace", namespace, "wait", "pod/web", "--for=condition=Ready", "--timeout=60s"]);
    const host = `web.${namespace}.svc`;
    await applyWorkload("inner", [`http://${host}`]);
    await becomesReady("inner");
    const address = (await kubectl(["--namespace", namespace, "get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"])).trim();
    const [entry] = (await statusOf("inner"))?.components?.[0]?.egress ?? [];
    assert.deepEqual(entry?.addresses, [address]);
    const targets = await everything();
    assert.deepEqual(await reachedFrom(await podOf("inner"), [...targets, `${address}:80`]), {
      ...all(targets, false),
      [`${address}:80`]: true,
    });

    const draft = await draftOf(kubectl, namespace, "inner");
    assert.ok(draft);
    // One caller can't have two tools of one name.
    const renamed = { ...draft, spec: { ...draft.spec, declaration: { ...draft.spec.declaration, name: "fetch_inner" } } };
    await approveAsReviewer(kubectl, renamed, [{ kind: "ServiceAccount", name: "triage", namespace }]);
    const call = { name: "fetch_inner", arguments: { url: `http://${host}/` } };
    const answer = () => agent.request("POST", "/v1/calls", call);
    await eventually("the tool is answered by the Service", async () => JSON.stringify(await answer()).includes("served by a pod"), answer);
  });

  test("with a policy that lets everything out, a guest still reaches its host alone, and the status tells that nothing enforces", async () => {
    await apply(kubectl, {
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "everything", namespace },
      spec: { podSelector: {}, policyTypes: ["Egress"], egress: [{}] },
    });
    const pod = await podOf("open");
    await eventually(
      "the policies are off",
      async () => (await reachedFrom(pod, [registryAddress]))[registryAddress] === true,
      () => statusOf("open"),
    );
    for (const url of [
      `http://${registryAddress}/v2/`,
      `http://${name}:81/`,
      `http://${first}/`,
      `http://${second}/`,
      "http://kubernetes.default.svc/",
    ]) {
      const said = JSON.stringify(await agent.request("POST", "/v1/calls", callOf(url)));
      assert.match(said, /not granted/, url);
    }
    assert.match(JSON.stringify(await agent.request("POST", "/v1/calls", callOf(`http://${name}/`))), /served at/);
    await kubectl(["--namespace", namespace, "delete", "pod", pod]);
    await eventually(
      "the next host tells",
      async () => (await condition("open", "EgressEnforced"))?.reason === "CanaryReached",
      () => statusOf("open"),
    );
  });
});
