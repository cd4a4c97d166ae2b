import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { writeImage } from "../../scripts/image/archive.ts";
import { Stalled } from "../../src/api/errors.ts";
import { containerdSocket } from "./node-config.ts";
import type { NodePlaces } from "./places.ts";
import { program } from "./tools.ts";

const run = promisify(execFile);

/** `ctr` of the node's containerd, in the namespace that Kubernetes uses. */
export const ctr = (places: NodePlaces, ...args: string[]): [string, ...string[]] => [
  program("containerd", "ctr"),
  "--address",
  containerdSocket(places),
  "--namespace",
  "k8s.io",
  ...args,
];

const output = async ([file, ...args]: readonly [string, ...string[]]): Promise<string> =>
  (await run(file, args, { maxBuffer: 16 * 1024 * 1024 })).stdout;

export const succeeds = (argv: readonly [string, ...string[]]): Promise<boolean> =>
  output(argv).then(
    () => true,
    () => false,
  );

/** Puts the images of an archive onto the node: a docker-archive or an OCI layout. Gives their names. */
export const load = async (places: NodePlaces, archive: string): Promise<string> => output(ctr(places, "images", "import", archive));

/** An image of one static program. */
export const importImage = async (places: NodePlaces, reference: string, path: string, from: string): Promise<void> => {
  if ((await output(ctr(places, "images", "ls", "-q"))).split("\n").includes(reference)) return;
  const archive = join(places.state, "image.tar");
  await writeImage(archive, { reference, layers: [[{ path, mode: 0o755, from }]], config: { Entrypoint: [path], User: "0:0" } });
  await load(places, archive);
  await rm(archive);
};

/** Digest of an image on the node, by its name. Throws `Stalled`. */
export const imageDigest = async (places: NodePlaces, reference: string): Promise<string> => {
  const lines = (await output(ctr(places, "images", "ls", `name==${reference}`))).split("\n");
  const digest = lines.flatMap((line) => (line.startsWith(`${reference} `) ? (/sha256:[0-9a-f]{64}/.exec(line) ?? []) : []))[0];
  if (digest === undefined) throw new Stalled("NoImage", `the node has no image ${reference}`);
  return digest;
};

/** Pid of a pod's first process, whose namespaces are the pod's. */
export const podPid = async (places: NodePlaces, namespace: string, pod: string): Promise<number> => {
  const labels = { namespace, name: pod };
  const filters = Object.entries(labels).map(([key, value]) => `labels."io.kubernetes.pod.${key}"==${value}`);
  const sandbox = [...filters, 'labels."io.cri-containerd.kind"==sandbox'].join(",");
  const ids = (await output(ctr(places, "containers", "ls", "-q", sandbox))).trim().split("\n");
  const tasks = (await output(ctr(places, "tasks", "ls"))).split("\n").map((line) => line.trim().split(/\s+/));
  const pid = tasks.find(([id, , status]) => id !== undefined && ids.includes(id) && status === "RUNNING")?.[1];
  if (pid === undefined) throw new Stalled("NoPod", `no pod ${namespace}/${pod} runs on the node`);
  return Number(pid);
};

/** Ends the pods' containers and gives the names of their network namespaces. */
export const endPods = async (places: NodePlaces): Promise<string[]> => {
  const ids = (await output(ctr(places, "containers", "ls", "-q"))).split("\n").filter((id) => id !== "");
  const networks = await Promise.all(ids.map((id) => networkOfContainer(places, id)));
  const tasks = (await output(ctr(places, "tasks", "ls", "-q"))).split("\n").filter((id) => id !== "");
  // A task may end by itself in the meantime, since its pod's other one did.
  for (const id of tasks) await succeeds(ctr(places, "tasks", "delete", "--force", id));
  if (ids.length > 0) await succeeds(ctr(places, "containers", "delete", ...ids));
  return [...new Set(networks)].filter((name) => name !== null && existsSync(`/run/netns/${name}`)) as string[];
};

interface ContainerInfo {
  readonly Spec?: { readonly linux?: { readonly namespaces?: readonly { readonly type: string; readonly path?: string }[] } };
}

const networkOfContainer = async (places: NodePlaces, id: string): Promise<string | null> => {
  const info: ContainerInfo = JSON.parse(await output(ctr(places, "containers", "info", id)));
  const path = info.Spec?.linux?.namespaces?.find(({ type }) => type === "network")?.path;
  return /\/netns\/(cni-[0-9a-f-]+)$/.exec(path ?? "")?.[1] ?? null;
};
