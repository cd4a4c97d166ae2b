import { testImage } from "../cluster/test-image.ts";
import { ambitNamespace, apply, type Kubectl } from "./installed.ts";

export interface Answer {
  /** 0 where none came; `answer` then says why. */
  readonly status: number;
  readonly answer: unknown;
}

/** A pod that knows nothing of Ambit but the catalogue's name and its authority, and has nothing but its ServiceAccount's token. */
export interface Agent {
  request(method: string, path: string, body?: object): Promise<Answer>;
  /** Sends this call again and again, `together` at a time, until `work` has ended. Gives what each answer was that was not as in `wanted`, and how many were. */
  callingWhile(call: object, wanted: string, together: number, work: () => Promise<void>): Promise<{ good: number; bad: string[] }>;
  /** Prints what a script of Node's prints in the pod, trimmed. */
  run(script: string): Promise<string>;
}

const catalogue = `https://ambit-catalogue.${ambitNamespace}.svc`;

/** Starts one in a namespace, as the account of that name, which it makes. */
export const startAgent = async (kubectl: Kubectl, namespace: string, account: string): Promise<Agent> => {
  await apply(kubectl, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: account, namespace } });
  const { data } = JSON.parse(await kubectl(["--namespace", ambitNamespace, "get", "configmap", "ambit-ca", "-o", "json"]));
  await apply(kubectl, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "ambit-ca", namespace }, data });
  await apply(kubectl, agentPod(namespace, account));
  await kubectl(["--namespace", namespace, "wait", "pod/agent", "--for=condition=Ready", "--timeout=90s"]);
  const run = async (script: string): Promise<string> =>
    (await kubectl(["--namespace", namespace, "exec", "agent", "--", "node", "-e", `${prelude}\n${script}`])).trim();
  return {
    run,
    request: async (method, path, body) => {
      const said = `request(${JSON.stringify(method)}, ${JSON.stringify(path)}, ${JSON.stringify(body)})`;
      return JSON.parse(await run(`${said}.then((said) => console.log(JSON.stringify(said)))`));
    },
    callingWhile: async (call, wanted, together, work) => {
      // Ends by itself should nobody end it; `stop` is a file, since a command of exec gets no signal.
      const script = `
        const bad = []; let good = 0;
        const ends = Date.now() + 120_000;
        const more = () => Date.now() < ends && !require("node:fs").existsSync("/tmp/stop");
        const loop = async () => { while (more()) {
          const said = JSON.stringify(await request("POST", "/v1/calls", ${JSON.stringify(call)}));
          if (said.includes(${JSON.stringify(wanted)})) good++; else bad.push(new Date().toISOString() + " " + said);
        } };
        Promise.all(Array.from({ length: ${together} }, loop)).then(() => console.log(JSON.stringify({ good, bad })));`;
      await run(`require("node:fs").rmSync("/tmp/stop", { force: true })`);
      const calling = run(script);
      try {
        await work();
      } finally {
        await run(`require("node:fs").writeFileSync("/tmp/stop", "")`);
      }
      return JSON.parse(await calling);
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
