import { join } from "node:path";
import { imageDigest, load, podPid } from "./containerd.ts";
import { stopDaemons } from "./daemon.ts";
import { inNamespace, networkOf } from "./network.ts";
import { auditLog, daemonsOf, kubeconfigOf, up, worldHosts } from "./node.ts";
import { defaultNodeName, nodePlaces } from "./places.ts";
import { type Request, requestsOf } from "./request.ts";
import { whyNoNode } from "./requirements.ts";
import { nodeTools, program, whyNotBuildable } from "./tools.ts";
import { openTunnel, type Tunnel } from "./tunnel.ts";
import { type World, worldIn } from "./world.ts";

/** A whole cluster to test against. */
export interface TestCluster {
  /** Path of a kubeconfig whose user may do everything. */
  readonly kubeconfig: string;
  readonly request: Request;
  readonly kubectl: string;
  readonly helm: string;
  /** What can only be done where the node is ours; null on the cluster of `AMBIT_TEST_KUBECONFIG`. */
  readonly node: BuiltInNode | null;
}

/** The node of `npm run cluster -- up`. */
export interface BuiltInNode {
  readonly world: World;
  /** Start of a command line that runs in the node's network. */
  readonly command: readonly [string, ...string[]];
  /** Start of a command line that runs in a pod's network, past its container: what a hostile process in there could do. */
  commandInPod(namespace: string, pod: string): Promise<readonly [string, ...string[]]>;
  /** A port of this machine that leads to `HOST:PORT` in the node's network. */
  tunnelTo(target: string): Promise<Tunnel>;
  /** Puts the images of an archive onto the node. */
  load(archive: string): Promise<void>;
  /** Digest of an image that was put there, by its name. */
  digestOf(image: string): Promise<string>;
  /** Ends the API server, as a machine that goes down would; all else goes on. */
  stopApiServer(): Promise<void>;
  /** Starts it again and waits until it is ready. */
  startApiServer(): Promise<void>;
  /** Path of a daemon's log. */
  logOf(daemon: string): string;
  /** Path of the API server's log of what ServiceAccounts asked, a JSON line each. */
  readonly auditLog: string;
  /** Path of a program of the node's tools. */
  readonly program: typeof program;
}

const givenKubeconfig = (): string | undefined => process.env.AMBIT_TEST_KUBECONFIG || undefined;

/** The reason why there is no cluster to test against, or null. */
export const whyNoCluster = async (): Promise<string | null> => {
  if (givenKubeconfig() !== undefined) return null;
  const reasons = whyNoNode();
  const unbuildable = await whyNotBuildable(nodeTools);
  const all = unbuildable === null ? reasons : [...reasons, unbuildable];
  return all.length > 0 ? all.join("; ") : null;
};

/**
 * The cluster to test against: the one of `AMBIT_TEST_KUBECONFIG`, or else the built-in node, started where it does not run. It is shared and goes on running;
 * `npm test` ends it, unless it was up before. On a given cluster kubectl and helm are the machine's.
 */
export const startNode = async (say: (line: string) => void = () => {}): Promise<TestCluster> => {
  const given = givenKubeconfig();
  if (given !== undefined) return { kubeconfig: given, request: requestsOf(given), kubectl: "kubectl", helm: "helm", node: null };
  const places = nodePlaces(defaultNodeName());
  const { node, world } = networkOf(places.name);
  await up(places, say);
  return {
    kubeconfig: kubeconfigOf(places),
    request: requestsOf(kubeconfigOf(places)),
    kubectl: program("kubernetes", "kubectl"),
    helm: program("helm", "helm"),
    node: {
      world: worldIn(world, worldHosts(places)),
      command: inNamespace(node),
      commandInPod: async (namespace, pod) => ["nsenter", `--net=/proc/${await podPid(places, namespace, pod)}/ns/net`, "--"],
      tunnelTo: (target) => openTunnel(node, places.run, target),
      load: async (archive) => {
        await load(places, archive);
      },
      digestOf: (image) => imageDigest(places, image),
      stopApiServer: () => stopDaemons(daemonsOf(places), ["kube-apiserver"], 0),
      startApiServer: () => up(places, say),
      auditLog: auditLog(places),
      logOf: (daemon) => join(daemonsOf(places).logs, `${daemon}.log`),
      program,
    },
  };
};
