import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { testImage } from "../cluster/test-image.ts";
import type { Called, Calling } from "./calling.ts";
import type { Ground } from "./ground.ts";
import { ambitNamespace, apply } from "./installed.ts";

export interface Answer {
  /** 0 where none came; `answer` then says why. */
  readonly status: number;
  readonly answer: unknown;
}

/** A pod that knows nothing of Ambit but the catalogue's name and its authority, and has nothing but its ServiceAccount's token. */
export interface Agent {
  request(method: string, path: string, body?: object): Promise<Answer>;
  /** The outcome of a call, as the catalogue says it; where it says none, all that came instead. */
  outcome(call: object): Promise<string>;
  /** Whether a tool of that name is declared to it. */
  isOffered(tool: string): Promise<boolean>;
  /**
   * Sends this call again and again from the pod's network, `together` at a time; an answer that holds `wanted` is a good one. It asks nothing of the API server on its way, so it goes on where that
   * is gone.
   */
  startCalling(call: object, wanted: string, together: number): Promise<Calls>;
  /** The same until `work` has ended. */
  callingWhile(call: object, wanted: string, together: number, work: () => Promise<void>): Promise<Called>;
  /** Prints what a script of Node's prints in the pod, trimmed. */
  run(script: string): Promise<string>;
}

export interface Calls {
  soFar(): Promise<Called>;
  end(): Promise<Called>;
}

const catalogue = `https://ambit-catalogue.${ambitNamespace}.svc`;

/** Starts one as the account of that name, which it makes, in the ground's namespace or another one. */
export const startAgent = async (ground: Ground, account: string, namespace = ground.namespace): Promise<Agent> => {
  const { kubectl } = ground;
  await apply(kubectl, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace } });
  // The operator keeps the catalogue's authority where agents are.
  await kubectl(["label", "--overwrite", "namespace", namespace, "ambit.dev/agents=true"]);
  await kubectl(["--namespace", namespace, "wait", "--for=create", "configmap/ambit-ca", "--timeout=180s"]);
  await apply(kubectl, agentPod(namespace, account));
  await kubectl(["--namespace", namespace, "wait", "pod/agent", "--for=condition=Ready", "--timeout=180s"]);
  const run = async (script: string): Promise<string> =>
    (await kubectl(["--namespace", namespace, "exec", "agent", "--", "node", "-e", `${prelude}\n${script}`])).trim();
  const request: Agent["request"] = async (method, path, body) => {
    const said = `request(${JSON.stringify(method)}, ${JSON.stringify(path)}, ${JSON.stringify(body)})`;
    return JSON.parse(await run(`${said}.then((said) => console.log(JSON.stringify(said)))`));
  };
  const startCalling: Agent["startCalling"] = async (call, wanted, together) => {
    const read = (path: string): Promise<string> => run(`console.log(require("node:fs").readFileSync("${path}", "utf8"))`);
    const service = await kubectl(["--namespace", ambitNamespace, "get", "service", "ambit-catalogue", "-o", "jsonpath={.spec.clusterIP}"]);
    const calling: Calling = {
      url: catalogue,
      address: service.trim(),
      ca: await read("/etc/ambit/catalogue-ca.crt"),
      token: await read("/var/run/ambit/token"),
      call,
      wanted,
      together,
    };
    const [file, ...args] = await ground.node.commandInPod(namespace, "agent");
    const child = spawn(file, [...args, process.execPath, resolve(import.meta.dirname, "calling.ts")], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const next = async (): Promise<Called> =>
      JSON.parse((await lines.next()).value ?? "null") ?? Promise.reject(new Error("who calls has ended"));
    child.stdin.write(`${JSON.stringify(calling)}\n`);
    return {
      soFar: () => {
        child.stdin.write("\n");
        return next();
      },
      end: () => {
        child.stdin.end();
        return next();
      },
    };
  };
  return {
    run,
    request,
    outcome: async (call) => {
      const { status, answer } = await request("POST", "/v1/calls", call);
      return typeof answer === "object" && answer !== null && "outcome" in answer
        ? String(answer.outcome)
        : `${status}: ${JSON.stringify(answer)}`;
    },
    isOffered: async (tool) => JSON.stringify(await request("GET", "/v1/declarations")).includes(`"name":"${tool}"`),
    startCalling,
    callingWhile: async (call, wanted, together, work) => {
      const calls = await startCalling(call, wanted, together);
      await work().catch(async (thrown: unknown) => {
        await calls.end();
        throw thrown;
      });
      return calls.end();
    },
  };
};

const prelude = `
  const token = require("node:fs").readFileSync("/var/run/ambit/token", "utf8");
  const request = (method, path, body) => fetch("${catalogue}" + path, {
    method,
    headers: { authorization: "Bearer " + token, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).then(async (r) => ({ status: r.status, answer: await r.json() }), (e) => ({ status: 0, answer: String(e.cause ?? e) }));`;

const agentPod = (namespace: string, account: string): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "agent", namespace },
  spec: {
    serviceAccountName: account,
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
    containers: [
      {
        name: "agent",
        image: testImage,
        imagePullPolicy: "Never",
        command: ["node", "-e", "setInterval(() => {}, 1e6)"],
        env: [{ name: "NODE_EXTRA_CA_CERTS", value: "/etc/ambit/catalogue-ca.crt" }],
        securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
        volumeMounts: [
          { name: "token", mountPath: "/var/run/ambit" },
          { name: "ca", mountPath: "/etc/ambit" },
          { name: "tmp", mountPath: "/tmp" },
        ],
      },
    ],
    volumes: [
      { name: "token", projected: { sources: [{ serviceAccountToken: { audience: "ambit", path: "token", expirationSeconds: 600 } }] } },
      { name: "ca", configMap: { name: "ambit-ca" } },
      { name: "tmp", emptyDir: {} },
    ],
  },
});
