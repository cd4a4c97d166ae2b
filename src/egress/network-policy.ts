import { hopPort, hostPort as hostListens, labels, operatorPods, ownPods } from "../api/cluster-names.ts";
import type { Hop } from "./hop.ts";
import { byFirst, type Peer, peerKey } from "./route.ts";

/** A `networking.k8s.io/v1` NetworkPolicy, as far as Ambit writes and reads it. */
export interface NetworkPolicySpec {
  readonly podSelector: LabelSelector;
  readonly policyTypes: readonly string[];
  readonly ingress: readonly IngressRule[];
  readonly egress: readonly EgressRule[];
}

interface IngressRule {
  readonly from: readonly PolicyPeer[];
  readonly ports: readonly PolicyPort[];
}

interface EgressRule {
  readonly to: readonly PolicyPeer[];
  readonly ports: readonly PolicyPort[];
}

interface PolicyPeer {
  readonly ipBlock?: { readonly cidr: string };
  readonly namespaceSelector?: LabelSelector;
  readonly podSelector?: LabelSelector;
}

interface PolicyPort {
  readonly protocol: string;
  readonly port: number | string;
}

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly { readonly key: string; readonly operator: string; readonly values?: readonly string[] }[];
}

/** The API server puts the name of every namespace in this label. */
const namespaceName = "kubernetes.io/metadata.name";

/**
 * The policy of one component's pods: in come only the operator and the catalogue, from Ambit's own namespace, to the host's port; out go only `peers`. No name service is among them.
 *
 * An MCP server's pods take no calls: besides the operator only their bridge's come in, to the port of the hop, and those go out there.
 *
 * Equal peers in any order give the same policy.
 */
export const componentPolicy = (
  workload: string,
  component: string,
  ambitNamespace: string,
  peers: readonly Peer[],
  hop: Hop | null = null,
): NetworkPolicySpec => ({
  podSelector: podsOf(workload, component),
  policyTypes: ["Ingress", "Egress"],
  ingress: [
    {
      from: [{ namespaceSelector: inNamespace(ambitNamespace), podSelector: hop?.end === "server" ? operatorPods : ownPods }],
      ports: [{ protocol: "TCP", port: hostListens }],
    },
    ...(hop?.end === "server" ? [{ from: [{ podSelector: podsOf(workload, hop.bridge) }], ports: hopPorts }] : []),
  ],
  egress: [
    ...egressRules(peers),
    ...(hop?.end === "bridge" ? [{ to: [{ podSelector: podsOf(workload, hop.server) }], ports: hopPorts }] : []),
  ],
});

/** Of the policy's own namespace. */
const podsOf = (workload: string, component: string): LabelSelector => ({
  matchLabels: { [labels.workload]: workload, [labels.component]: component },
});

const hopPorts: readonly PolicyPort[] = [{ protocol: "TCP", port: hopPort }];

/** A rule for each port, so that a thousand addresses on one port are one rule. */
const egressRules = (peers: readonly Peer[]): EgressRule[] => {
  const byPort = new Map<string, { readonly port: number | string; readonly peers: Map<string, Peer> }>();
  for (const peer of peers) {
    const key = JSON.stringify(peer.port);
    const rule = byPort.get(key) ?? { port: peer.port, peers: new Map<string, Peer>() };
    rule.peers.set(peerKey(peer), peer);
    byPort.set(key, rule);
  }
  return [...byPort].sort(byFirst).map(([, rule]) => ({
    to: [...rule.peers].sort(byFirst).map(([, peer]) => (peer.kind === "range" ? { ipBlock: { cidr: peer.cidr } } : podsPeer(peer))),
    ports: [{ protocol: "TCP", port: rule.port }],
  }));
};

const podsPeer = ({ namespace, labels }: Peer & { readonly kind: "pods" }): PolicyPeer => ({
  namespaceSelector: inNamespace(namespace),
  podSelector: { matchLabels: labels },
});

const inNamespace = (namespace: string): LabelSelector => ({ matchLabels: { [namespaceName]: namespace } });

/** What a policy that `componentPolicy` made lets out: its inverse. What it would not have written is passed over. */
export const policyPeersOf = (spec: { readonly egress?: readonly EgressRule[] | null } | undefined): readonly Peer[] =>
  (spec?.egress ?? []).flatMap(({ to, ports }) => (to ?? []).flatMap((peer) => (ports ?? []).flatMap((port) => peerOf(peer, port))));

const peerOf = ({ ipBlock, namespaceSelector, podSelector }: PolicyPeer, { port }: PolicyPort): Peer[] => {
  if (ipBlock !== undefined) return typeof port === "number" ? [{ kind: "range", cidr: ipBlock.cidr, port }] : [];
  const namespace = namespaceSelector?.matchLabels?.[namespaceName];
  const selected = podSelector?.matchLabels;
  return namespace === undefined || selected === undefined ? [] : [{ kind: "pods", namespace, labels: selected, port }];
};
