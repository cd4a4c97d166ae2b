import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { isSha256Digest } from "../../src/api/digest.ts";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import type { Workload } from "../../src/api/generated/workload.ts";
import { approve } from "../../src/grants/approve.ts";
import { functionOfDefinition } from "../../src/grants/definition-function.ts";
import { becomes } from "../cluster/becomes.ts";
import { startNode, type TestCluster, whyNoCluster } from "../cluster/start-node.ts";
import { pushArtifact, wasmArtifact } from "../registry/push.ts";
import { ambitNamespace, installAmbit, kubectlOf, restrictedPod, waitingContainer } from "./installed.ts";

/**
 * What a user does first, on a real node: installs the chart, applies a Workload, has a reviewer approve what was drafted, and calls the tool from a pod with nothing but its own
 * ServiceAccount.
 */

const given = process.env.AMBIT_TEST_KUBECONFIG ? "the cluster of AMBIT_TEST_KUBECONFIG has no world in which a registry could be" : null;

const reason = given ?? (await whyNoCluster());

const registryName = "registry.example.com";
const registryAddress = "20.10.0.5";
const registryPort = 5000;
const registry = `${registryName}:${registryPort}`;

const component = readFileSync(new URL("../fixtures/components/mission.wasm", import.meta.url));

const withinMs = 90_000;

describe("Ambit installed from its chart", { skip: reason ?? false }, () => {
  const namespace = `agents-${randomBytes(4).toString("hex")}`;
  let cluster: TestCluster;
  let kubectl: ReturnType<typeof kubectlOf>;
  let image: string;
  const ends: (() => Promise<void>)[] = [];

  const apply = (object: object): Promise<string> => kubectl(["apply", "--server-side", "--filename", "-"], object);
  const read = async <T>(...args: string[]): Promise<T> =>
    JSON.parse(await kubectl(["--namespace", namespace, "get", ...args, "-o", "json"]));
  const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    assert.ok(await becomes(holds, withinMs), `${what} within ${withinMs / 1000} s`);
  };

  /** Starts a registry in the node's world, where pods reach it as any registry of the internet, and puts the component there. */
  const serveComponent = async (): Promise<string> => {
    assert.ok(cluster.node);
    const { world, program } = cluster.node;
    await world.addAddress(registryAddress);
    await world.setNames({ [registryName]: [registryAddress] });
    const serve = ["registry", "serve", "--address", `${registryAddress}:${registryPort}`];
    const [file = "", ...args] = [...world.command, program("go-containerregistry", "crane"), ...serve];
    const child = spawn(file, args, { stdio: ["ignore", "ignore", "pipe"] });
    const exited = once(child, "exit");
    await once(child.stderr, "data");
    child.stderr.resume();
    ends.push(async () => {
      child.kill();
      await exited;
      await world.removeAddress(registryAddress);
    });
    await using tunnel = await cluster.node.tunnelTo(`${registryAddress}:${registryPort}`);
    const digest = await pushArtifact({ registry: `localhost:${tunnel.port}`, repository: "tools/mission" }, "v1", wasmArtifact(component));
    return `${registry}/tools/mission@${digest}`;
  };

  /** What a request from the agent's pod gives: the status and the JSON of the answer. */
  const asAgent = async (method: string, path: string, body?: object): Promise<{ status: number; answer: Record<string, unknown> }> => {
    const script = `
      const token = require("node:fs").readFileSync("/var/run/ambit/token", "utf8");
      fetch("https://ambit-catalogue.${ambitNamespace}.svc${path}", {
        method: ${JSON.stringify(method)},
        headers: { authorization: "Bearer " + token, "content-type": "application/json" },
        ${body === undefined ? "" : `body: ${JSON.stringify(JSON.stringify(body))},`}
      }).then(async (r) => console.log(JSON.stringify({ status: r.status, answer: await r.json() })),
        (e) => console.log(JSON.stringify({ status: 0, answer: { error: String(e.cause ?? e) } })));`;
    return JSON.parse(await kubectl(["--namespace", namespace, "exec", "agent", "--", "node", "-e", script]));
  };

  const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };

  before(async () => {
    cluster = await startNode();
    kubectl = kubectlOf(cluster);
    image = await serveComponent();
    await installAmbit(cluster, {
      operator: { arguments: [`--plain-http-registry=${registry}`] },
      networkPolicy: { registryPorts: [443, registryPort] },
    });
    await apply({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    });
    await apply({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "triage", namespace } });
    const { data } = JSON.parse(await kubectl(["--namespace", ambitNamespace, "get", "configmap", "ambit-ca", "-o", "json"]));
    await apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "ambit-ca", namespace }, data });
    await apply({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "agent", namespace },
      spec: {
        ...restrictedPod,
        serviceAccountName: "triage",
        containers: [
          {
            ...waitingContainer,
            env: [{ name: "NODE_EXTRA_CA_CERTS", value: "/etc/ambit/catalogue-ca.crt" }],
            volumeMounts: [
              { name: "token", mountPath: "/var/run/ambit" },
              { name: "ca", mountPath: "/etc/ambit" },
            ],
          },
        ],
        volumes: [
          {
            name: "token",
            projected: { sources: [{ serviceAccountToken: { audience: "ambit", path: "token", expirationSeconds: 600 } }] },
          },
          { name: "ca", configMap: { name: "ambit-ca" } },
        ],
      },
    });
    await kubectl(["--namespace", namespace, "wait", "pod/agent", "--for=condition=Ready", `--timeout=${withinMs}ms`]);
  });

  after(async () => {
    if (kubectl !== undefined) await kubectl(["delete", "namespace", namespace, "--wait=false", "--ignore-not-found"]);
    for (const end of ends) await end();
  });

  test("an agent with a token of its own is known and offered nothing", async () => {
    const { status, answer } = await asAgent("GET", "/v1/declarations");
    assert.equal(status, 200, JSON.stringify(answer));
    assert.deepEqual(answer, []);
  });

  test("a Workload becomes a draft that nobody can call, and a call that is answered once a reviewer approved it", async (t) => {
    const started = performance.now();
    const stage = (name: string): void => t.diagnostic(`${name}: ${Math.round(performance.now() - started)} ms after apply`);
    await apply({
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: "github", namespace },
      spec: { components: [{ name: "github", image }] },
    });
    let draft: ToolGrant | undefined;
    await eventually("a draft", async () => {
      [draft] = (await read<{ items: ToolGrant[] }>("toolgrants")).items;
      return draft?.status?.phase === "Draft" && draft.status.observed?.text !== undefined;
    });
    stage("drafted");
    const refused = await asAgent("POST", "/v1/calls", call);
    assert.equal(refused.answer.outcome, "refused", JSON.stringify(refused));

    await approveAsReviewer(draft);
    stage("approved");
    await eventually("the tool is offered", async () => JSON.stringify(await asAgent("GET", "/v1/declarations")).includes("list_issues"));
    stage("offered");
    let last = "";
    await eventually("the call is answered", async () => {
      const { answer } = await asAgent("POST", "/v1/calls", call);
      last = JSON.stringify(answer);
      return answer.outcome === "ok";
    }).catch((error: Error) => assert.fail(`${error.message}: ${last}`));
    stage("answered");
    assert.match(last, /Spoon bends/);
  });

  /** Fills in subjects and the review, as the account of somebody who has the role of a reviewer in this namespace and no other right. */
  const approveAsReviewer = async (draft: ToolGrant | undefined): Promise<void> => {
    assert.ok(draft?.status?.observed?.text !== undefined);
    await apply({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "reviewer", namespace } });
    await apply({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: "reviewer", namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "ambit-reviewer" },
      subjects: [{ kind: "ServiceAccount", name: "reviewer", namespace }],
    });
    const workload = await read<Workload>("workloads", "github");
    const digest = workload.status?.components?.[0]?.digest ?? "";
    assert.ok(isSha256Digest(digest), `the Workload's status has a digest: ${digest}`);
    const imports = workload.status?.components?.[0]?.imports ?? [];
    const { status: _, ...bare } = draft;
    const grant: ToolGrant = {
      ...bare,
      spec: { ...draft.spec, subjects: [{ kind: "ServiceAccount", name: "triage", namespace }], mutates: false },
    };
    const reviewed = approve({
      grant,
      fn: functionOfDefinition(draft.status.observed.text),
      reach: { hosts: [], volumes: [], secrets: [], imports },
      component: [digest],
      reviewer: "reviewer",
      now: new Date(),
    });
    await kubectl([`--as=system:serviceaccount:${namespace}:reviewer`, "replace", "--filename", "-"], reviewed);
  };

  test("who is no reviewer can't approve, the operator's own account least of all", async () => {
    const [grant] = (await read<{ items: ToolGrant[] }>("toolgrants")).items;
    assert.ok(grant);
    const changed = { ...grant, spec: { ...grant.spec, declaration: { ...grant.spec.declaration, description: "Something else." } } };
    await assert.rejects(
      kubectl([`--as=system:serviceaccount:${ambitNamespace}:ambit-operator`, "replace", "--filename", "-"], changed),
      /may not approve toolgrants/,
    );
  });

  test("a token for another audience is nobody's", async () => {
    const token = (await kubectl(["--namespace", namespace, "create", "token", "triage"])).trim();
    const script = `fetch("https://ambit-catalogue.${ambitNamespace}.svc/v1/declarations", { headers: { authorization: "Bearer ${token}" } }).then((r) => console.log(r.status))`;
    assert.equal((await kubectl(["--namespace", namespace, "exec", "agent", "--", "node", "-e", script])).trim(), "401");
  });

  test("what Ambit runs for itself satisfies the restricted profile", async () => {
    const warnings = await kubectl([
      "label",
      "--dry-run=server",
      "--overwrite",
      "namespace",
      ambitNamespace,
      "pod-security.kubernetes.io/enforce=restricted",
    ]);
    assert.doesNotMatch(warnings, /violate/);
  });
});
