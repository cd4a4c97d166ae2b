import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import type { TestCluster } from "../cluster/start-node.ts";
import { testImage } from "../cluster/test-image.ts";
import { lyingRegistry, toolsRegistry, toolsRegistryPort } from "./tools-registry.ts";

const run = promisify(execFile);

export const ambitNamespace = "ambit-system";

const chart = resolve(import.meta.dirname, "../../charts/ambit");

/** kubectl with these arguments, and with an object for its standard input where one is given. Rejects with what it said where it fails. */
export type Kubectl = (args: readonly string[], input?: object) => Promise<string>;

export const kubectlOf =
  ({ kubectl, kubeconfig }: TestCluster): Kubectl =>
  async (args, input) => {
    const child = spawn(kubectl, ["--kubeconfig", kubeconfig, ...args], { stdio: ["pipe", "pipe", "pipe"] });
    // What ends before it has read all has its reason in its output.
    child.stdin.on("error", () => {}).end(input === undefined ? "" : JSON.stringify(input));
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: ${err}`);
    return out;
  };

/** What the operator is told in any case: for a suite that chooses further arguments. */
export const operatorArguments: readonly string[] = [toolsRegistry, lyingRegistry].map((registry) => `--plain-http-registry=${registry}`);

/**
 * Installs Ambit from the chart as these suites want it, or brings what is installed to that, and waits until all of it is ready. `further` are values besides, by their dotted names: what an earlier call chose
 * is gone where this one does not choose it.
 */
export const installAmbit = async (
  { helm, kubeconfig, node }: TestCluster,
  further: Readonly<Record<string, unknown>> = {},
): Promise<void> => {
  const [repository = "", tag = ""] = testImage.split(/:(?=[^/]+$)/);
  const values = {
    image: { repository, tag, pullPolicy: "Never" },
    operator: { arguments: operatorArguments },
    networkPolicy: { registryPorts: [443, toolsRegistryPort] },
    // The name stays when a node that was kept gets another image.
    podAnnotations: node ? { "ambit.dev/test-image": await node.digestOf(testImage) } : {},
    // Short, so that a test sees a name change its address.
    egress: { ttlFloor: "1s", ttlCeiling: "2s", drain: "10s", narrowAfter: "3s" },
  };
  const args = ["upgrade", "--install", "ambit", chart, "--namespace", ambitNamespace, "--create-namespace", "--wait", "--timeout", "5m"];
  const sets = Object.entries({ ...values, ...further }).flatMap(([name, value]) => ["--set-json", `${name}=${JSON.stringify(value)}`]);
  await run(helm, ["--kubeconfig", kubeconfig, ...args, ...sets], { maxBuffer: 16 * 1024 * 1024 });
};

/** Makes or changes an object. */
export const apply = async (kubectl: Kubectl, object: object): Promise<void> => {
  await kubectl(["apply", "--server-side", "--force-conflicts", "--filename", "-"], object);
};

/** A namespace that takes only pods of the restricted profile. */
export const restrictedNamespace = (name: string, annotations: Readonly<Record<string, string>> = {}): object => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, annotations, labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
});
