import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { clusterAddresses } from "./control-plane.ts";

const run = promisify(execFile);

/** The two network namespaces of a node: its own, and the world outside of it. */
export interface NodeNetwork {
  readonly node: string;
  readonly world: string;
}

export const networkOf = (name: string): NodeNetwork => ({ node: name, world: `${name}-world` });

/** The start of a command line that runs in a network namespace. Not `ip netns exec`, which hides `/sys/fs/cgroup`. */
export const inNamespace = (namespace: string): [string, ...string[]] => ["nsenter", `--net=/run/netns/${namespace}`, "--"];

const exists = (namespace: string): boolean => existsSync(`/run/netns/${namespace}`);

/**
 * Makes them, joined by one cable and by nothing to the machine: the node's default route leads into the world, where tests put the servers that a
 * sandbox may or may not reach. So no packet leaves the machine, no address clashes with its own, and what reaches the world was forwarded by the node, past its policies.
 */
export const makeNetwork = async ({ node, world }: NodeNetwork): Promise<void> => {
  if (exists(node) && exists(world)) return;
  await removeNetwork({ node, world });
  const { node: nodeAddress, world: worldAddress, pods } = clusterAddresses;
  const ip = (...args: string[]) => run("ip", args);
  await ip("netns", "add", world);
  // Last, since its presence says that all is there.
  await ip("netns", "add", node);
  await ip("-n", node, "link", "add", "node0", "type", "veth", "peer", "name", "world0", "netns", world);
  for (const [namespace, device, address] of [
    [node, "node0", nodeAddress],
    [world, "world0", worldAddress],
  ] as const) {
    await ip("-n", namespace, "link", "set", "lo", "up");
    await ip("-n", namespace, "addr", "add", `${address}/24`, "dev", device);
    await ip("-n", namespace, "link", "set", device, "up");
  }
  await ip("-n", node, "route", "add", "default", "via", worldAddress);
  await ip("-n", world, "route", "add", pods, "via", nodeAddress);
  await setKernel(node, "net/ipv4/ip_forward");
  // Where bridges can hand their packets to the packet filter they must, or pods of one node reach each other past every policy.
  if (existsSync("/proc/sys/net/bridge")) await setKernel(node, "net/bridge/bridge-nf-call-iptables");
};

/** `/proc/sys/net` is that of the namespace of who opens it. */
const setKernel = (namespace: string, key: string): Promise<unknown> => {
  const [file, ...args] = inNamespace(namespace);
  return run(file, [...args, "sh", "-c", `echo 1 > /proc/sys/${key}`]);
};

/** Removes both, and with them every interface in them. */
export const removeNetwork = async ({ node, world }: NodeNetwork): Promise<void> => {
  for (const namespace of [node, world].filter(exists)) await run("ip", ["netns", "delete", namespace]);
};
