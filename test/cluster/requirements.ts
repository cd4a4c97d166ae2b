import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** What a node takes from the machine besides what is built: each program with the Debian package that has it. */
const programs: Readonly<Record<string, string>> = {
  runc: "runc",
  ip: "iproute2",
  nsenter: "util-linux",
  iptables: "iptables",
  ipset: "ipset",
  conntrack: "conntrack",
  nft: "nftables",
  ethtool: "ethtool",
  openssl: "openssl",
  mount: "mount",
};

const cniPackage = "containernetworking-plugins";
const cniPlugins = ["bridge", "host-local", "loopback", "portmap", "tuning"];

/** Where distributions and vendors put the plugins. */
const cniFolders = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];

/** The folder that has every CNI plugin we need, or null. */
export const cniFolder = (): string | null =>
  cniFolders.find((folder) => cniPlugins.every((plugin) => existsSync(join(folder, plugin)))) ?? null;

/** Debian packages whose programs are missing. */
export const missingPackages = (): string[] => [
  ...new Set([
    ...Object.entries(programs).flatMap(([program, name]) => (isOnPath(program) ? [] : [name])),
    ...(cniFolder() === null ? [cniPackage] : []),
  ]),
];

const isOnPath = (program: string): boolean =>
  [...(process.env.PATH ?? "").split(":"), "/usr/sbin", "/sbin"].some((folder) => folder !== "" && existsSync(join(folder, program)));

const isRoot = (): boolean => process.getuid?.() === 0;

/** Whether `installPackages` may do it: root on Debian or a child of it. */
export const canInstall = (): boolean => isRoot() && existsSync("/usr/bin/apt-get");

/** Installs what is missing with apt, saying each command. Throws where one fails. */
export const installPackages = (packages: readonly string[], say: (line: string) => void): void => {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  for (const args of [
    ["update", "-qq"],
    ["install", "-y", "-qq", "--no-install-recommends", ...packages],
  ]) {
    say(`$ apt-get ${args.join(" ")}`);
    const { status } = spawnSync("apt-get", args, { stdio: ["ignore", 2, 2], env });
    if (status !== 0) throw new Error(`apt-get ${args[0]} ended with ${status}`);
  }
};

/** Every reason why this machine can't run a node, each as a sentence that says what to do. */
export const whyNoNode = (): string[] => {
  if (process.platform !== "linux") return [`a node needs Linux, not ${process.platform}: set AMBIT_TEST_KUBECONFIG to a cluster instead`];
  if (!isRoot()) return ["a node needs root: run as root, or set AMBIT_TEST_KUBECONFIG to a cluster"];
  const packages = canInstall() ? [] : missingPackages();
  return [
    ...(packages.length > 0 ? [`not installed: ${packages.join(", ")} (Debian's names)`] : []),
    ...(mayMakeNamespaces() ? [] : ["network namespaces can't be made here (CAP_SYS_ADMIN is missing)"]),
    ...(writableCgroups() ? [] : ["/sys/fs/cgroup is not writable"]),
  ];
};

const mayMakeNamespaces = (): boolean => spawnSync("unshare", ["--net", "true"]).status === 0;

/** Folders in which a control group can be made: each controller's under cgroup v1, the one hierarchy under v2. */
export const cgroupHierarchies = (): string[] => {
  const root = "/sys/fs/cgroup";
  if (existsSync(join(root, "cgroup.controllers"))) return [root];
  if (!existsSync(root)) return [];
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(root, entry.name));
};

const writableCgroups = (): boolean => {
  const hierarchies = cgroupHierarchies();
  try {
    for (const folder of hierarchies) accessSync(folder, constants.W_OK);
  } catch {
    return false;
  }
  return hierarchies.length > 0;
};
