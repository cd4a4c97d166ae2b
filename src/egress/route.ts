import { isIP } from "node:net";

/** What a policy lets a sandbox connect to: a range of addresses, or the pods of a Service. A port is a number, or the name of a pod's port. */
export type Peer =
  | { readonly kind: "range"; readonly cidr: string; readonly port: number }
  | {
      readonly kind: "pods";
      readonly namespace: string;
      readonly labels: Readonly<Record<string, string>>;
      readonly port: number | string;
    };

/** One address that a request to `key` (`host:port`) may be dialled at, and the peer without which its packets are dropped. */
export interface Route {
  readonly key: string;
  readonly address: string;
  readonly peer: Peer;
}

/** Equal exactly for peers that a policy would not tell apart. */
export const peerKey = (peer: Peer): string =>
  peer.kind === "range"
    ? JSON.stringify([peer.cidr, peer.port])
    : JSON.stringify([peer.namespace, Object.entries(peer.labels).sort(byFirst), peer.port]);

export const byFirst = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : a > b ? 1 : 0);

/** The range that holds one address and no other. */
export const cidrOf = (address: string): string => `${address}/${isIP(address) === 6 ? 128 : 32}`;
