import { execFile } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync, readlinkSync, rmdirSync } from "node:fs";
import { mkdir, readFile, rm, statfs, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Stalled } from "../../src/api/errors.ts";
import { becomes } from "./becomes.ts";
import { clusterDns, corednsImage } from "./cluster-dns.ts";
import { ctr, endPods, importImage, succeeds } from "./containerd.ts";
import { apiServerArguments, auditPolicy, certificateNames, clusterAddresses, etcdArguments } from "./control-plane.ts";
import { makeCredentials, writeKubeconfig } from "./credentials.ts";
import { type Daemons, daemonNames, isRunning, lastLines, startDaemon, stopDaemons } from "./daemon.ts";
import { exclusively } from "./exclusive.ts";
import { freePorts } from "./free-ports.ts";
import { inNamespace, makeNetwork, networkOf, removeNetwork } from "./network.ts";
import { cniConfig, containerdConfig, kubeletConfig, kubernetesArguments, nodeName, pauseImage, worldCorefile } from "./node-config.ts";
import type { NodePlaces } from "./places.ts";
import { isReady, type Request, requestsOf } from "./request.ts";
import { cgroupHierarchies, cniFolder, installPackages, missingPackages, whyNoNode } from "./requirements.ts";
import { buildTools, nodeTools, program, type ToolName, toolFolder } from "./tools.ts";

const run = promisify(execFile);

type Say = (line: string) => void;

/** Where each program of the node comes from. */
const toolOf: Readonly<Record<string, ToolName>> = {
  etcd: "etcd",
  containerd: "containerd",
  "kube-router": "kube-router",
  coredns: "coredns",
};

const binary = (name: string): string => program(toolOf[name] ?? "kubernetes", name);

export const daemonsOf = ({ run, state }: NodePlaces): Daemons => ({ pids: join(run, "pid"), logs: join(state, "log") });

/** Kubeconfig for programs of this machine; it leads through the machine's loopback. */
export const kubeconfigOf = ({ state }: NodePlaces): string => join(state, "kubeconfig");

/** Kubeconfig for programs in the node's network namespace. */
const innerKubeconfig = ({ state }: NodePlaces): string => join(state, "inner-kubeconfig");

/** Names and addresses of the world, in the form of /etc/hosts; read anew within a second of a change. */
export const worldHosts = ({ state }: NodePlaces): string => join(state, "world-hosts");

/** What ServiceAccounts asked of the API server, a JSON line each (`audit.k8s.io/v1` Event). */
export const auditLog = ({ state }: NodePlaces): string => join(state, "audit.log");

/** How long each part may take until it is there, on a machine that builds something else meanwhile. */
const readyWithinMs = 180_000;

const withLock = <T>(places: NodePlaces, say: Say, work: () => Promise<T>): Promise<T> =>
  exclusively(`${places.state}.lock`, () => say(`another process starts or ends ${places.name}: waiting for it`), work);

/** Brings up what of the node is not up yet and waits until pods can run on it. Says each step. Throws `Stalled`, and then `down` cleans up. */
export const up = (places: NodePlaces, say: Say): Promise<void> =>
  withLock(places, say, async () => {
    const reasons = whyNoNode();
    if (reasons.length > 0) throw new Stalled("NoNode", reasons.join("; "));
    const packages = missingPackages();
    if (packages.length > 0) installPackages(packages, say);
    await buildTools(nodeTools, say);
    await endOlderNode(places, say);
    await mkdir(places.state, { recursive: true, mode: 0o700 });
    await mkdir(places.run, { recursive: true, mode: 0o700 });
    await writeFile(versionsFile(places), versions());
    say(`making the network of ${places.name}`);
    await makeNetwork(networkOf(places.name));
    const request = await startControlPlane(places, say);
    await startRuntime(places, say);
    await startNodeDaemons(places, request, say);
    await startClusterDns(places, request, say);
    say(`ready: ${kubeconfigOf(places)}`);
  });

const versionsFile = ({ state }: NodePlaces): string => join(state, "versions");

/** What a node is made of: as long as this is the same, what is missing of it can be started again. */
const versions = (): string => `${(Object.keys(nodeTools) as ToolName[]).map(toolFolder).join("\n")}\n`;

const endOlderNode = async (places: NodePlaces, say: Say): Promise<void> => {
  const file = versionsFile(places);
  if (!existsSync(file) || (await readFile(file, "utf8")) === versions()) return;
  say(`${places.name} is made of other versions`);
  await endNode(places, say);
};

const startControlPlane = async (places: NodePlaces, say: Say): Promise<Request> => {
  say("starting etcd and the API server");
  const credentials = await makeCredentials(join(places.state, "pki"), certificateNames);
  const port = 6443;
  const etcd = { client: 2379, peer: 2380 };
  await writeKubeconfig(innerKubeconfig(places), `https://127.0.0.1:${port}`, credentials);
  await daemon(places, "etcd", etcdArguments(join(places.state, "etcd"), etcd));
  const policy = join(places.state, "audit-policy.json");
  await writeFile(policy, auditPolicy);
  await daemon(
    places,
    "kube-apiserver",
    apiServerArguments({
      credentials,
      folder: join(places.state, "api-server"),
      etcdPort: etcd.client,
      port,
      listen: "0.0.0.0",
      advertise: clusterAddresses.node,
      audit: { policy, log: auditLog(places) },
    }),
  );
  if (!(await isRunning(daemonsOf(places), "forward-here"))) {
    const [outer = 0] = await freePorts(1);
    const socket = join(places.run, "api.sock");
    const forward = join(import.meta.dirname, "forward.ts");
    await daemon(places, "forward-there", [forward, "--listen", socket, "--to", `127.0.0.1:${port}`], process.execPath);
    const here = [process.execPath, forward, "--listen", String(outer), "--to", socket] as const;
    await startDaemon(daemonsOf(places), { name: "forward-here", argv: [...here] });
    await writeKubeconfig(kubeconfigOf(places), `https://127.0.0.1:${outer}`, credentials);
  }
  const request = requestsOf(kubeconfigOf(places));
  await waitFor(places, "kube-apiserver", () => isReady(request));
  const args = kubernetesArguments(places, innerKubeconfig(places), credentials.serviceAccountKey, credentials.certificate);
  for (const name of ["kube-controller-manager", "kube-scheduler"] as const) await daemon(places, name, args[name]);
  return request;
};

const startRuntime = async (places: NodePlaces, say: Say): Promise<void> => {
  say("starting containerd");
  const plugins = cniFolder();
  if (plugins === null) throw new Stalled("NoNode", "no CNI plugins: install containernetworking-plugins");
  const snapshotter = (await isOverlay(places.state)) ? "native" : "overlayfs";
  await mkdir(join(places.state, "cni"), { recursive: true });
  await writeFile(join(places.state, "cni", "10-pods.conflist"), cniConfig(places));
  const config = join(places.state, "containerd.toml");
  await writeFile(config, containerdConfig(places, { cniFolder: plugins, snapshotter }));
  await daemon(places, "containerd", ["--config", config]);
  await waitFor(places, "containerd", () => succeeds(ctr(places, "version")));
  await importImage(places, pauseImage, "/pause", program("pause", "pause"));
};

/** `OVERLAYFS_SUPER_MAGIC` of statfs(2): one overlay can't hold the upper folder of another. */
const overlayMagic = 0x794c7630;

const isOverlay = async (folder: string): Promise<boolean> => (await statfs(folder)).type === overlayMagic;

const startNodeDaemons = async (places: NodePlaces, request: Request, say: Say): Promise<void> => {
  say("starting the kubelet, kube-proxy and kube-router");
  for (const hierarchy of cgroupHierarchies()) await makeCgroup(hierarchy, places.name);
  await writeFile(join(places.state, "resolv.conf"), `nameserver ${clusterAddresses.world}\n`);
  await writeFile(join(places.state, "kubelet.yaml"), kubeletConfig(places));
  const pki = join(places.state, "pki");
  const args = kubernetesArguments(places, innerKubeconfig(places), join(pki, "service-account.key"), join(pki, "api.crt"));
  await daemon(places, "kubelet", args.kubelet);
  await daemon(places, "kube-proxy", args["kube-proxy"]);
  await waitFor(places, "kubelet", () => nodeIsReady(request));
  await daemon(places, "kube-router", args["kube-router"]);
  await waitFor(places, "kube-controller-manager", () => exists(request, "/api/v1/namespaces/default/serviceaccounts/default"));
};

/** A group for the node's pods in one hierarchy. */
const makeCgroup = async (hierarchy: string, name: string): Promise<void> => {
  const folder = join(hierarchy, name);
  await mkdir(folder, { recursive: true });
  // A cpuset starts empty under cgroup v1, and no process can enter an empty one.
  for (const file of ["cpuset.cpus", "cpuset.mems"]) {
    const parent = join(hierarchy, file);
    if (existsSync(parent)) await writeFile(join(folder, file), await readFile(parent));
  }
};

const nodeIsReady = async (request: Request): Promise<boolean> => {
  const { status, body } = await request("GET", `/api/v1/nodes/${nodeName}`);
  if (status !== 200) return false;
  const node: { status?: { conditions?: { type: string; status: string }[] } } = JSON.parse(body);
  return node.status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false;
};

const exists = async (request: Request, path: string): Promise<boolean> => (await request("GET", path)).status === 200;

const startClusterDns = async (places: NodePlaces, request: Request, say: Say): Promise<void> => {
  say("starting the cluster's and the world's DNS");
  const hosts = worldHosts(places);
  if (!existsSync(hosts)) await writeFile(hosts, "");
  const corefile = join(places.state, "world.Corefile");
  await writeFile(corefile, worldCorefile(hosts));
  await startDaemon(daemonsOf(places), {
    name: "world-dns",
    argv: [...inNamespace(networkOf(places.name).world), binary("coredns"), "-conf", corefile],
  });
  await importImage(places, corednsImage, "/coredns", binary("coredns"));
  for (const { path, object } of clusterDns) {
    const { status, body } = await request(
      "PATCH",
      `${path}?fieldManager=ambit-cluster&force=true`,
      object,
      "application/apply-patch+yaml",
    );
    if (status >= 300) throw new Stalled("NoClusterDns", `the API server answers ${status} to ${path}: ${body}`);
  }
  await waitFor(places, "kubelet", async () => {
    const { body } = await request("GET", "/apis/apps/v1/namespaces/kube-system/deployments/coredns");
    const deployment: { status?: { readyReplicas?: number } } = JSON.parse(body);
    return deployment.status?.readyReplicas === 1;
  });
};

/** Starts a program of the node in its network namespace. */
const daemon = (places: NodePlaces, name: string, args: readonly string[], file = binary(name)): Promise<void> =>
  startDaemon(daemonsOf(places), {
    name,
    argv: [...inNamespace(networkOf(places.name).node), file, ...args],
    // containerd finds its shim by the PATH, the others what packages put into sbin.
    env: { PATH: `${toolFolder("containerd")}:${process.env.PATH ?? ""}:/usr/sbin:/sbin` },
  });

const waitFor = async (places: NodePlaces, name: string, holds: () => Promise<boolean>): Promise<void> => {
  const daemons = daemonsOf(places);
  const ended = async (): Promise<boolean> => !(await isRunning(daemons, name));
  let hasEnded = false;
  const settled = await becomes(async () => {
    if (await holds()) return true;
    hasEnded = await ended();
    return hasEnded;
  }, readyWithinMs);
  if (settled && !hasEnded) return;
  const what = hasEnded ? "has ended" : `is not ready after ${readyWithinMs / 1000} s`;
  throw new Stalled("NoNode", `${name} ${what}; the end of ${daemons.logs}/${name}.log:\n${await lastLines(daemons, name)}`);
};

/** Whether each part runs, and whether the node is ready. */
export const status = async (places: NodePlaces): Promise<{ daemons: Record<string, boolean>; ready: boolean }> => {
  const daemons = daemonsOf(places);
  const entries = await Promise.all(
    daemonNames(daemons).map(async (name): Promise<[string, boolean]> => [name, await isRunning(daemons, name)]),
  );
  const reachable = existsSync(kubeconfigOf(places)) && entries.some(([name, running]) => name === "forward-here" && running);
  const request = reachable ? requestsOf(kubeconfigOf(places)) : null;
  const ready = request !== null && (await isReady(request)) && (await nodeIsReady(request));
  return { daemons: Object.fromEntries(entries), ready };
};

/** Ends everything that `up` started, by its pid, and removes what it left: pods, mounts, namespaces, control groups, files. */
export const down = (places: NodePlaces, say: Say): Promise<void> => withLock(places, say, () => endNode(places, say));

const endNode = async (places: NodePlaces, say: Say): Promise<void> => {
  const daemons = daemonsOf(places);
  say(`ending ${places.name}`);
  // Those that would start anew what is ended next.
  await stopDaemons(daemons, ["kubelet", "kube-router", "kube-proxy", "kube-scheduler", "kube-controller-manager"]);
  const podNetworks = (await isRunning(daemons, "containerd")) ? await endPods(places) : [];
  // The API server waits long for its clients, and what it and etcd would still write goes anyway.
  await stopDaemons(daemons, daemonNames(daemons), 1000);
  await unmountBelow([places.state, places.run]);
  for (const network of podNetworks) await run("ip", ["netns", "delete", network]);
  await removeNetwork(networkOf(places.name));
  for (const hierarchy of cgroupHierarchies()) removeCgroup(join(hierarchy, places.name));
  await removeLogLinks(places);
  await rm(places.state, { recursive: true, force: true });
  await rm(places.run, { recursive: true, force: true });
  say(`${places.name} is down`);
};

const unmountBelow = async (folders: readonly string[]): Promise<void> => {
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .flatMap((line) => line.split(" ")[1] ?? [])
    .filter((path) => folders.some((folder) => path.startsWith(`${folder}/`)));
  // Inner ones first.
  for (const path of mounts.sort().reverse()) await run("umount", ["--lazy", path]);
};

/** A control group goes once its inner ones are gone. */
const removeCgroup = (folder: string): void => {
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) removeCgroup(join(folder, entry.name));
  rmdirSync(folder);
};

/** The kubelet links pods' logs from a folder that can't be configured. */
const removeLogLinks = async ({ state }: NodePlaces): Promise<void> => {
  for (const link of globSync("/var/log/containers/*.log")) if (readlinkSync(link).startsWith(`${state}/`)) await unlink(link);
};
