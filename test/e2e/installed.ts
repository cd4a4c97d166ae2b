import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import type { TestCluster } from "../cluster/start-node.ts";
import { testImage } from "../cluster/test-image.ts";

const run = promisify(execFile);

export const ambitNamespace = "ambit-system";

const chart = resolve(import.meta.dirname, "../../charts/ambit");

/** kubectl with these arguments, and with an object for its standard input where one is given. Rejects with what it said where it fails. */
export const kubectlOf =
  ({ kubectl, kubeconfig }: TestCluster) =>
  async (args: readonly string[], input?: object): Promise<string> => {
    const child = spawn(kubectl, ["--kubeconfig", kubeconfig, ...args], { stdio: ["pipe", "pipe", "pipe"] });
    child.stdin.end(input === undefined ? "" : JSON.stringify(input));
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: ${err}`);
    return out;
  };

/** Installs Ambit from the chart, or brings what is installed to these values, and waits until all of it is ready. */
export const installAmbit = async ({ helm, kubeconfig }: TestCluster, values: object = {}): Promise<void> => {
  const [repository = "", tag = ""] = testImage.split(/:(?=[^/]+$)/);
  const all = { image: { repository, tag, pullPolicy: "Never" }, ...values };
  const args = ["upgrade", "--install", "ambit", chart, "--namespace", ambitNamespace, "--create-namespace", "--wait", "--timeout", "4m"];
  const sets = Object.entries(all).flatMap(([name, value]) => ["--set-json", `${name}=${JSON.stringify(value)}`]);
  await run(helm, ["--kubeconfig", kubeconfig, ...args, ...sets], { maxBuffer: 16 * 1024 * 1024 });
};

/** The container of a pod under the restricted profile that waits to be told what to do with `kubectl exec`. */
export const waitingContainer = {
  name: "agent",
  image: testImage,
  imagePullPolicy: "Never",
  command: ["node", "-e", "setInterval(() => {}, 1e6)"],
  securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
};

export const restrictedPod = {
  automountServiceAccountToken: false,
  terminationGracePeriodSeconds: 1,
  securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
};
