import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { becomes } from "../cluster/becomes.ts";
import { type BuiltInNode, startNode, type TestCluster, whyNoCluster } from "../cluster/start-node.ts";
import { testImage } from "../cluster/test-image.ts";

/** The node itself does what the other suites rely on: it runs restricted pods, resolves names, and enforces NetworkPolicies on what leaves them. */

const run = promisify(execFile);

const given = process.env.AMBIT_TEST_KUBECONFIG ? "the cluster of AMBIT_TEST_KUBECONFIG has no world that a test could change" : null;

const reason = given ?? (await whyNoCluster());

/** Public as far as any rule knows, and in the node's world alone. */
const outside = "20.10.0.1";
const elsewhere = "20.10.0.2";

const withinMs = 60_000;

describe("the built-in node", { skip: reason ?? false }, () => {
  const namespace = `node-${randomBytes(4).toString("hex")}`;
  let cluster: TestCluster;
  let node: BuiltInNode;
  const servers: (() => Promise<void>)[] = [];

  const kubectl = async (...args: string[]): Promise<string> =>
    (await run(cluster.kubectl, ["--kubeconfig", cluster.kubeconfig, "--namespace", namespace, ...args])).stdout;

  const apply = async (object: object): Promise<void> => {
    const child = spawn(cluster.kubectl, ["--kubeconfig", cluster.kubeconfig, "apply", "--filename", "-"], {
      stdio: ["pipe", "ignore", "inherit"],
    });
    child.stdin.end(stringify(object));
    const [code] = await once(child, "exit");
    assert.equal(code, 0, "kubectl apply");
  };

  /** A server in the world that answers every request with its address. */
  const serveInWorld = async (address: string): Promise<void> => {
    await node.world.addAddress(address);
    const script = `require("node:http").createServer((_, r) => r.end("${address}")).listen(80, "${address}", () => console.log("listening"))`;
    const [file, ...args] = [...node.world.command, process.execPath, "-e", script];
    const child = spawn(file ?? "", args, { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    await once(child.stdout, "data");
    servers.push(async () => {
      child.kill();
      await exited;
      await node.world.removeAddress(address);
    });
  };

  /** What the pod's Node gets from a URL, or the error's code. */
  const fetched = async (url: string): Promise<string> => {
    const script = `fetch("${url}", {signal: AbortSignal.timeout(2000)}).then((r) => r.text()).catch((e) => e.cause?.code ?? e.name).then(console.log)`;
    return (await kubectl("exec", "client", "--", "node", "-e", script)).trim();
  };

  const eventually = async (expected: string, url: string): Promise<void> => {
    let last = "";
    const came = await becomes(async () => {
      last = await fetched(url);
      return last === expected;
    }, withinMs);
    assert.ok(came, `${url} gives ${last} instead of ${expected}`);
  };

  before(async () => {
    cluster = await startNode();
    assert.ok(cluster.node);
    node = cluster.node;
    await apply({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    await node.world.setNames({ "outside.example.com": [outside] });
    await serveInWorld(outside);
    await serveInWorld(elsewhere);
    await apply({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "client", namespace, labels: { app: "client" } },
      spec: {
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 1,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
        containers: [
          {
            name: "client",
            image: testImage,
            imagePullPolicy: "Never",
            command: ["node", "-e", 'require("node:http").createServer((_, r) => r.end("the pod")).listen(8080)'],
            securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
          },
        ],
      },
    });
    await kubectl("wait", "pod/client", "--for=condition=Ready", `--timeout=${withinMs}ms`);
  });

  after(async () => {
    for (const stop of servers) await stop();
    await run(cluster.kubectl, ["--kubeconfig", cluster.kubeconfig, "delete", "namespace", namespace, "--wait=false"]);
  });

  test("a pod reaches the world by name, and a name that a test changed has changed", async () => {
    await eventually(outside, "http://outside.example.com/");
    await node.world.setNames({ "outside.example.com": [elsewhere] });
    await eventually(elsewhere, "http://outside.example.com/");
    await node.world.setNames({ "outside.example.com": [outside] });
  });

  test("a pod reaches the API server by its Service", async () => {
    const script =
      'require("node:tls").connect(443, "kubernetes.default.svc", {rejectUnauthorized: false}, () => { console.log("connected"); process.exit() })';
    assert.equal((await kubectl("exec", "client", "--", "node", "-e", script)).trim(), "connected");
  });

  test("a tunnel leads from this machine to a pod", async () => {
    const address = await kubectl("get", "pod", "client", "-o", "jsonpath={.status.podIP}");
    await using tunnel = await node.tunnelTo(`${address}:8080`);
    assert.equal(await (await fetch(`http://127.0.0.1:${tunnel.port}/`)).text(), "the pod");
  });

  test("a NetworkPolicy holds back what leaves a pod, except for the address that it allows, for a process beside the container too", async () => {
    const policy = (egress: object[]) => ({
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name: "client", namespace },
      spec: { podSelector: { matchLabels: { app: "client" } }, policyTypes: ["Egress"], egress },
    });
    // kube-router rejects instead of dropping.
    const rejected = "ECONNREFUSED";
    await apply(policy([]));
    await eventually(rejected, `http://${outside}/`);
    assert.equal(await fetched(`http://${elsewhere}/`), rejected);

    const [file, ...args] = await node.commandInPod(namespace, "client");
    const beside = (address: string): Promise<string> => {
      const script = `fetch("http://${address}/", {signal: AbortSignal.timeout(2000)}).then((r) => r.text()).catch((e) => e.cause?.code ?? e.name).then(console.log)`;
      return run(file, [...args, process.execPath, "-e", script]).then(({ stdout }) => stdout.trim());
    };
    assert.equal(await beside(outside), rejected);

    await apply(policy([{ to: [{ ipBlock: { cidr: `${outside}/32` } }], ports: [{ port: 80 }] }]));
    await eventually(outside, `http://${outside}/`);
    assert.equal(await beside(outside), outside);
    assert.equal(await beside(elsewhere), rejected);
  });
});
