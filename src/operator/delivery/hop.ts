import { hkdfSync, type KeyObject } from "node:crypto";
import { sha256Of } from "../../api/digest.ts";
import { AmbitError } from "../../api/errors.ts";
import type { HopDocument, HopReach } from "../../api/host.ts";
import { hopOf, sandboxedComponents } from "../../grants/sandboxed-component.ts";
import { hostServerName, verifyHostCertificate } from "../../identity/host-identity.ts";
import { keyText } from "../../kube/object.ts";
import type { OperatorStores } from "../context.ts";
import { type HostPod, hostPodOf } from "./host-pod.ts";
import type { HostPlace } from "./host-session.ts";
import type { RootKeys } from "./keyring.ts";

/** What the host of an MCP server, or of the bridge to it, is given under its boot id: `HopDocument` without that. */
export type HopToDeliver = Pick<HopDocument, "accept" | "reach">;

/** Each credential is sent for a week, and taken for half a week before and after that: no host is ever without one that the other knows. */
const periodMs = 7 * 24 * 60 * 60 * 1000;

/** Servers that a bridge is told of. */
const mostServers = 64;

/** Which hop: the entry of `mcpServers` of a Workload that once was. */
export interface HopName {
  readonly workloadUid: string;
  readonly server: string;
}

export interface HopCredentials {
  readonly sent: string;
  readonly accepted: readonly string[];
  /** In how many milliseconds either becomes another. */
  readonly changeInMs: number;
}

/** The credentials of a hop at a time (milliseconds since the epoch): derived from the root key, so that nothing is kept and each operator comes to the same. */
export const hopCredentials = (root: KeyObject, of: HopName, now: number): HopCredentials => {
  const halves = Math.floor(now / (periodMs / 2));
  const period = Math.floor(halves / 2);
  const sent = credential(root, of, period);
  return {
    sent,
    accepted: [sent, credential(root, of, halves % 2 === 0 ? period - 1 : period + 1)],
    changeInMs: (halves + 1) * (periodMs / 2) - now,
  };
};

/** 32 bytes by HKDF (RFC 5869), base64url. */
const credential = (root: KeyObject, { workloadUid, server }: HopName, period: number): string => {
  const info = JSON.stringify(["ambit.dev/hop", workloadUid, server, period]);
  const bytes = hkdfSync("sha256", root.export({ type: "pkcs8", format: "der" }), "", info, 32);
  return Buffer.from(bytes).toString("base64url");
};

export interface HopDeps {
  readonly stores: Pick<OperatorStores, "workloads" | "pods">;
  readonly root: RootKeys;
  /** Where the host of a server takes its bridge's requests. */
  readonly hopPlaceOf: (pod: HostPod) => HostPlace;
  readonly now: () => number;
}

/**
 * What a pod's host is to be given for its hop, and when to look again. Undefined for a pod that is no end of one, or of one that its Workload does not have any more: that
 * pod is about to be replaced.
 */
export const hopToDeliver = (deps: HopDeps, pod: HostPod): { readonly hop: HopToDeliver; readonly changeInMs: number } | undefined => {
  const workload = pod.hop && deps.stores.workloads.get(keyText({ namespace: pod.of.namespace, name: pod.of.workload }));
  const component = workload && sandboxedComponents(workload.spec).find(({ name }) => name === pod.of.component);
  const hop = component && hopOf(component);
  if (!hop || hop.end !== pod.hop) return undefined;
  const server = hop.end === "server" ? hop.bridge : pod.of.component;
  const { sent, accepted, changeInMs } = hopCredentials(deps.root.root, { workloadUid: workload.metadata.uid ?? "", server }, deps.now());
  if (hop.end === "server") return { hop: { accept: accepted }, changeInMs };
  const { certificate: ca } = deps.root.hosts;
  const reach: HopReach = { authority: hop.server, credential: sent, ca, servers: serversOf(deps, pod, hop.server) };
  return { hop: { reach }, changeInMs };
};

/**
 * The server's pods that have their component, as notes on them say that hold: whoever writes others can't have a certificate for that pod. A host tries them in this order, which is another
 * for each pod of the bridge and stays where others come and go: so they share the work.
 */
const serversOf = ({ stores, root, hopPlaceOf, now }: HopDeps, { of, uid }: HostPod, component: string): HopReach["servers"] =>
  stores.pods
    .find("workload", keyText({ namespace: of.namespace, name: of.workload }))
    .flatMap((pod) => {
      const host = hostPodOf(pod);
      if (host?.of.component !== component || host.hop !== "server" || host.noted === undefined) return [];
      const identity = { podUid: host.uid, boot: host.noted.boot };
      if (!holds(() => verifyHostCertificate(host.noted?.certificate ?? "", root.hosts.certificate, identity, now()))) return [];
      return [{ rank: sha256Of(`${uid} ${host.uid}`), server: { ...hopPlaceOf(host), serverName: hostServerName(identity) } }];
    })
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, mostServers)
    .map(({ server }) => server);

const holds = (check: () => unknown): boolean => {
  try {
    check();
    return true;
  } catch (thrown) {
    if (thrown instanceof AmbitError) return false;
    throw thrown;
  }
};
