import ipaddr from "ipaddr.js";
import { Invalid } from "../api/errors.ts";
import { type AddressPolicy, isRefusedAddress, parseRange } from "./address.ts";
import { type AllowedHost, addressBits, allowedHostText, hostWithin, parseAllowedHost } from "./allowed-host.ts";
import { defaultPort } from "./target.ts";

/** What an installation lets the authors of Workloads ask for. */
export interface EgressRules {
  readonly addresses: AddressPolicy;
  /** Shortest prefix that an address range may have. */
  readonly widestRange: { readonly ipv4: number; readonly ipv6: number };
  /** `cluster.local`: what may follow `.svc` in a Service's name. */
  readonly clusterDomain: string;
  /** Where Ambit itself runs: its Services are never reached. */
  readonly ambitNamespace: string;
  /** By a Workload's namespace: further namespaces whose Services it may name, or `*`. Its own is always among them. */
  readonly serviceNamespaces: Readonly<Record<string, readonly string[]>>;
  /** By namespace: entries that hold all that its Workloads may ask for. A namespace that is no key may ask for anything. */
  readonly hostsByNamespace: Readonly<Record<string, readonly string[]>>;
}

export const defaultEgressRules: EgressRules = {
  addresses: {},
  widestRange: { ipv4: 16, ipv6: 48 },
  clusterDomain: "cluster.local",
  ambitNamespace: "ambit-system",
  serviceNamespaces: {},
  hostsByNamespace: {},
};

/** Why an entry stays closed: stable words for a status. */
export type ClosedReason =
  | "AllowedHostInvalid"
  | "BackendCannotExpress"
  | "NotPermitted"
  | "AddressRefused"
  | "ServiceRefused"
  | "ServiceMissing"
  | "NotResolved"
  | "AddressLimit";

export interface Closed {
  readonly reason: ClosedReason;
  /** For a person, and what to do. */
  readonly message: string;
}

/** One entry of `allowedHosts`, as what has to be known to open it. `ports` are the effective ones. */
export type EntryIntent = { readonly entry: string } & (
  | { readonly kind: "name"; readonly name: string; readonly ports: readonly number[] }
  | { readonly kind: "range"; readonly base: string; readonly prefix: number; readonly ports: readonly number[] }
  /** `host` is the name as a request writes it, `tickets.support.svc`. */
  | {
      readonly kind: "service";
      readonly host: string;
      readonly namespace: string;
      readonly service: string;
      readonly ports: readonly number[];
    }
  | { readonly kind: "closed"; readonly closed: Closed }
);

/** Reads the entries of a Workload in `namespace`. Never throws: an entry that can't be used is closed, and says why. */
export const egressIntents = (entries: readonly string[], namespace: string, rules: EgressRules): EntryIntent[] =>
  entries.map((entry) => {
    try {
      return entryIntent(parseAllowedHost(entry, { allowAny: true }), namespace, rules);
    } catch (thrown) {
      if (!(thrown instanceof Invalid)) throw thrown;
      return closedEntry(entry, "AllowedHostInvalid", thrown.message);
    }
  });

const closedEntry = (entry: string, reason: ClosedReason, message: string): EntryIntent => ({
  entry,
  kind: "closed",
  closed: { reason, message },
});

const entryIntent = (allowed: AllowedHost, namespace: string, rules: EgressRules): EntryIntent => {
  const { entry, hosts } = allowed;
  const bounds = Object.hasOwn(rules.hostsByNamespace, namespace) ? rules.hostsByNamespace[namespace] : undefined;
  if (bounds !== undefined && !hostWithin(allowed, bounds)) {
    return closedEntry(entry, "NotPermitted", `${allowedHostText(allowed)} is not among the hosts that namespace ${namespace} may reach`);
  }
  const ports = effectivePorts(allowed);
  switch (hosts.kind) {
    case "any":
    case "below":
      return closedEntry(
        entry,
        "BackendCannotExpress",
        `a NetworkPolicy holds addresses, and ${allowedHostText(allowed)} has no list of them; name each host`,
      );
    case "addresses": {
      const fault = rangeFault(hosts.base, hosts.prefix, rules);
      if (fault !== null) return closedEntry(entry, "AddressRefused", fault);
      return { entry, kind: "range", base: hosts.base, prefix: hosts.prefix, ports };
    }
    case "name": {
      const service = serviceOf(hosts.name, rules.clusterDomain);
      if (service === null) return { entry, kind: "name", name: hosts.name, ports };
      const fault = namespaceFault(service.namespace, namespace, rules);
      if (fault !== null) return closedEntry(entry, "ServiceRefused", fault);
      return { entry, kind: "service", host: hosts.name, ...service, ports };
    }
  }
};

const effectivePorts = ({ scheme, port }: AllowedHost): readonly number[] => {
  if (port !== null) return [port];
  return scheme === null ? [defaultPort("http"), defaultPort("https")] : [defaultPort(scheme)];
};

/** `tickets.support.svc` and `tickets.support.svc.cluster.local`; null for a name that is no Service's. */
const serviceOf = (name: string, clusterDomain: string): { readonly namespace: string; readonly service: string } | null => {
  const suffix = [".svc", `.svc.${clusterDomain}`].find((one) => name.endsWith(one));
  if (suffix === undefined) return null;
  const [service, namespace, ...rest] = name.slice(0, -suffix.length).split(".");
  return service && namespace && rest.length === 0 ? { service, namespace } : null;
};

const namespaceFault = (of: string, namespace: string, { ambitNamespace, serviceNamespaces }: EgressRules): string | null => {
  if (of === ambitNamespace) return "Ambit's own Services are not reached by tools";
  if (of === namespace) return null;
  const others = Object.hasOwn(serviceNamespaces, namespace) ? serviceNamespaces[namespace] : undefined;
  if (others?.includes(of) || others?.includes("*")) return null;
  return `this installation does not let namespace ${namespace} reach Services of namespace ${of}`;
};

/** Why a range (or a single address) may not be opened, or null where it may. */
const rangeFault = (base: string, prefix: number, { addresses, widestRange }: EgressRules): string | null => {
  const isIpv6 = addressBits(base) === 128;
  const widest = isIpv6 ? widestRange.ipv6 : widestRange.ipv4;
  if (prefix < widest) return `/${prefix} is wider than the /${widest} that this installation permits`;
  const range = `${base}/${prefix}`;
  const first =
    ipaddr.parse(base).kind() === "ipv6" ? ipaddr.IPv6.networkAddressFromCIDR(range) : ipaddr.IPv4.networkAddressFromCIDR(range);
  const fault = isRefusedAddress(first.toString(), addresses);
  if (fault !== null) return `${first.toString()} is ${fault}`;
  // Two ranges overlap only if one holds the other's first address; the one direction is judged above.
  const inside = closedRanges(addresses).find((closed) => holdsRange(range, closed));
  return inside === undefined ? null : `it holds ${inside}, which may not be dialled`;
};

const holdsRange = (outer: string, inner: string): boolean => {
  const [outerBase, outerPrefix] = parseRange(outer);
  const [innerBase, innerPrefix] = parseRange(inner);
  return outerBase.kind() === innerBase.kind() && innerPrefix >= outerPrefix && innerBase.match(outerBase, outerPrefix);
};

/** Small ranges that a permitted one could hold. Those that are wider than any that is permitted can't lie within one. */
const closedRanges = ({ refusedRanges = [] }: AddressPolicy): readonly string[] => [
  ...refusedRanges,
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20",
];
