import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import type { ToolGrant } from "../../src/api/generated/toolgrant.ts";
import { becomes } from "../cluster/becomes.ts";
import { type BuiltInNode, startNode, whyNoCluster } from "../cluster/start-node.ts";
import { type Agent, type Answer, startAgent } from "./agent.ts";
import { ambitNamespace, apply, installAmbit, type Kubectl, kubectlOf, restrictedNamespace } from "./installed.ts";
import { approveAsReviewer, draftOf, readAll } from "./reviewer.ts";
import { serveTools, type ToolsRegistry } from "./tools-registry.ts";

/** What goes on being true of a tool that is offered while everything around it changes: replicas, pods, namespaces, what it may reach, and at last the Workload itself. */

const given = process.env.AMBIT_TEST_KUBECONFIG ? "the cluster of AMBIT_TEST_KUBECONFIG has no world in which a registry could be" : null;

const reason = given ?? (await whyNoCluster());

const component = readFileSync(new URL("../fixtures/components/mission.wasm", import.meta.url));

const call = { name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } };

const withinMs = 60_000;

interface Pod {
  readonly metadata: { readonly name: string };
  readonly status: { readonly podIP: string };
}

describe("a tool that is offered", { skip: reason ?? false }, () => {
  const random = randomBytes(4).toString("hex");
  const namespace = `tools-${random}`;
  const elsewhere = `elsewhere-${random}`;
  let kubectl: Kubectl;
  let node: BuiltInNode;
  let registry: ToolsRegistry;
  let agent: Agent;
  let stranger: Agent;
  let workload: object;

  const eventually = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    assert.ok(await becomes(holds, withinMs), `${what} within ${withinMs / 1000} s`);
  };
  const isOffered = async (to: Agent): Promise<boolean> =>
    JSON.stringify(await to.request("GET", "/v1/declarations")).includes('"list_issues"');
  const answers = async (to: Agent): Promise<boolean> => outcomeOf(await to.request("POST", "/v1/calls", call)) === "ok";

  before(async () => {
    const cluster = await startNode();
    assert.ok(cluster.node);
    node = cluster.node;
    kubectl = kubectlOf(cluster);
    registry = await serveTools(cluster.node);
    await installAmbit(cluster);
    await apply(kubectl, restrictedNamespace(namespace));
    await apply(kubectl, restrictedNamespace(elsewhere));
    agent = await startAgent(kubectl, namespace, "triage");
    stranger = await startAgent(kubectl, elsewhere, "triage");
    workload = {
      apiVersion: "ambit.dev/v1alpha1",
      kind: "Workload",
      metadata: { name: "github", namespace },
      spec: { replicas: 2, components: [{ name: "github", image: await registry.push("tools/mission", component) }] },
    };
    await apply(kubectl, workload);
    let draft: ToolGrant | undefined;
    await eventually("there is a draft", async () => {
      draft = await draftOf(kubectl, namespace, "github");
      return draft !== undefined;
    });
    assert.ok(draft);
    await approveAsReviewer(kubectl, draft, [
      { kind: "ServiceAccount", name: "triage", namespace },
      { kind: "ServiceAccount", name: "triage", namespace: elsewhere },
    ]);
    await eventually("the call is answered", () => answers(agent));
  });

  after(async () => {
    await kubectl?.(["delete", "namespace", namespace, elsewhere, "--wait=false", "--ignore-not-found"]);
    await registry?.[Symbol.asyncDispose]();
  });

  test("is declared by every replica of the catalogue in the same bytes", async () => {
    const replicas = await readAll<Pod>(kubectl, ambitNamespace, "pods", "--selector=app.kubernetes.io/component=catalogue");
    assert.equal(replicas.length, 2);
    const script = `
      const host = "ambit-catalogue.${ambitNamespace}.svc";
      const ask = (address) => new Promise((done, failed) => require("node:https").get({ host: address, port: 8443, servername: host,
        path: "/v1/declarations?format=anthropic", headers: { host, authorization: "Bearer " + token } }, async (r) => {
          const chunks = []; for await (const chunk of r) chunks.push(chunk);
          done([r.statusCode, r.headers.etag, Buffer.concat(chunks).toString("base64")]);
        }).on("error", failed));
      Promise.all(${JSON.stringify(replicas.map(({ status }) => status.podIP))}.map(ask)).then((all) => console.log(JSON.stringify(all)));`;
    const [one, other] = JSON.parse(await agent.run(script));
    assert.equal(one[0], 200);
    assert.match(Buffer.from(one[2], "base64").toString(), /list_issues/);
    assert.deepEqual(one, other);
  });

  /** What comes of a call that goes past the catalogue, from wherever `run` runs a script. */
  const pastTheCatalogue = async (run: (script: string) => Promise<string>): Promise<string> => {
    const [pod] = await readAll<Pod>(kubectl, namespace, "pods", "--selector=ambit.dev/component=github");
    assert.ok(pod);
    const script = `
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
      process.removeAllListeners("warning");
      fetch("https://${pod.status.podIP}:8443/v1/call", { method: "POST", body: "{}", signal: AbortSignal.timeout(3000) })
        .then(async (r) => console.log(r.status, (await r.json()).code), (e) => console.log("no connection", e.cause?.code ?? e.name));`;
    return run(script);
  };

  test("can't be reached by a neighbour: its NetworkPolicy lets nobody in but Ambit", async () => {
    assert.match(await pastTheCatalogue(agent.run), /^no connection (ECONNREFUSED|TimeoutError)$/);
  });

  test("runs nothing for who reaches it in spite of that", async () => {
    const [file, ...args] = node.command;
    const onTheNode = async (script: string): Promise<string> =>
      (await promisify(execFile)(file, [...args, process.execPath, "-e", script])).stdout.trim();
    assert.equal(await pastTheCatalogue(onTheNode), "401 TicketMissing");
  });

  test("loses no call while every replica of the catalogue is replaced", async (t) => {
    const { good, bad } = await agent.callingWhile(call, '"outcome":"ok"', 4, async () => {
      await kubectl(["--namespace", ambitNamespace, "rollout", "restart", "deployment/ambit-catalogue"]);
      await kubectl(["--namespace", ambitNamespace, "rollout", "status", "deployment/ambit-catalogue", "--timeout=90s"]);
    });
    t.diagnostic(`${good} calls answered`);
    assert.deepEqual(bad, []);
    assert.ok(good > 10);
  });

  test("loses no call while its pods are replaced", async (t) => {
    const before = await readAll<Pod>(kubectl, namespace, "pods", "--selector=ambit.dev/component=github");
    const { good, bad } = await agent.callingWhile(call, '"outcome":"ok"', 4, async () => {
      await kubectl([
        "--namespace",
        namespace,
        "patch",
        "workload",
        "github",
        "--type=json",
        `--patch=${JSON.stringify([{ op: "add", path: "/spec/components/0/limits", value: { timeout: "20s" } }])}`,
      ]);
      await eventually("other pods are there", async () => {
        const now = await readAll<Pod>(kubectl, namespace, "pods", "--selector=ambit.dev/component=github");
        return now.length === 2 && now.every(({ metadata }) => before.every((old) => old.metadata.name !== metadata.name));
      });
    });
    t.diagnostic(`${good} calls answered`);
    assert.deepEqual(bad, []);
    assert.ok(good > 10);
  });

  test("is not offered in another namespace until that accepts it, though the grant names its account", async () => {
    assert.equal(await isOffered(stranger), false);
    await kubectl(["annotate", "namespace", elsewhere, `ambit.dev/accepts-grants-from=${namespace}`]);
    await eventually("it is offered", () => isOffered(stranger));
    assert.ok(await answers(stranger));
    await kubectl(["annotate", "namespace", elsewhere, "ambit.dev/accepts-grants-from-"]);
    await eventually("it is withdrawn", async () => !(await isOffered(stranger)));
  });

  test("is withheld while it may reach what nobody reviewed, and comes back when it may not", async () => {
    const allow = (hosts: string[]) =>
      kubectl([
        "--namespace",
        namespace,
        "patch",
        "workload",
        "github",
        "--type=json",
        `--patch=${JSON.stringify([{ op: "add", path: "/spec/components/0/localResources", value: { allowedHosts: hosts } }])}`,
      ]);
    await allow(["evil.example.com"]);
    await eventually("it is withheld", async () => !(await isOffered(agent)));
    assert.equal(outcomeOf(await agent.request("POST", "/v1/calls", call)), "refused");
    await allow([]);
    await eventually("it is offered", () => isOffered(agent));
    await eventually("it answers", () => answers(agent));
  });

  test("goes with its Workload, pods and policies and all, and the review of it stays", async () => {
    await kubectl(["--namespace", namespace, "delete", "workload", "github", "--timeout=60s"]);
    await eventually("it is withdrawn", async () => !(await isOffered(agent)));
    await eventually("all is gone", async () => {
      const left = await kubectl([
        "--namespace",
        namespace,
        "get",
        "pods,services,deployments,networkpolicies",
        "--selector=app.kubernetes.io/managed-by=ambit",
        "-o",
        "name",
      ]);
      return left.trim() === "";
    });
    const grants = await readAll<ToolGrant>(kubectl, namespace, "toolgrants");
    assert.equal(grants.filter(({ spec }) => spec.review !== undefined).length, 1);
  });
});

const outcomeOf = ({ answer }: Answer): unknown =>
  typeof answer === "object" && answer !== null && "outcome" in answer ? answer.outcome : null;
