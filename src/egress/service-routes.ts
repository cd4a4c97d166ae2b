import { isIP } from "node:net";
import { labels, managedByAmbit } from "../api/cluster-names.ts";
import { isRefusedAddress } from "./address.ts";
import type { Closed, EntryIntent } from "./intent.ts";
import type { Peer, Route } from "./route.ts";
import { hostPort } from "./target.ts";

/** What of a Service decides how it is reached. */
export interface ServiceView {
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: {
    readonly type?: string;
    readonly selector?: Readonly<Record<string, string>> | null;
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly ports?: readonly {
      readonly port: number;
      readonly targetPort?: number | string;
      readonly protocol?: string;
    }[];
  };
}

/** What of an EndpointSlice is dialled where a Service has no address of its own. */
export interface SliceView {
  readonly endpoints?:
    | readonly { readonly addresses?: readonly string[]; readonly conditions?: { readonly ready?: boolean | null } }[]
    | null;
}

/** Pods' addresses are private everywhere. Who may write an EndpointSlice could name anything in it: what is no host's address stays closed. */
const podAddresses = { privateRanges: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"] };

/**
 * How the Service that an entry names is reached, or why it is not. A policy acts after address translation, so it names the pods that the Service selects and their port;
 * what is dialled is the Service's own address, or the pods' where it has none.
 */
export const serviceRoutes = (
  intent: EntryIntent & { readonly kind: "service" },
  service: ServiceView | undefined,
  slices: readonly SliceView[],
): readonly Route[] | Closed => {
  const name = `${intent.namespace}/${intent.service}`;
  if (service === undefined) return { reason: "ServiceMissing", message: `there is no Service ${name}` };
  const { spec = {} } = service;
  const fault = serviceFault(service, name);
  if (fault !== null) return { reason: "ServiceRefused", message: fault };
  const routes = intent.ports.flatMap((port) => {
    const found = portOf(service, port);
    if (found === undefined) return [];
    const key = hostPort(intent.host, port);
    const isHeadless = spec.clusterIP === "None";
    const peer: Peer = {
      kind: "pods",
      namespace: intent.namespace,
      labels: spec.selector ?? {},
      port: isHeadless ? port : (found.targetPort ?? port),
    };
    const addresses = isHeadless ? podsOf(slices) : (spec.clusterIPs ?? [spec.clusterIP ?? ""]).filter((address) => isIP(address) !== 0);
    return addresses.map((address) => ({ key, address, peer }));
  });
  if (routes.length > 0) return routes;
  return intent.ports.some((port) => portOf(service, port) !== undefined)
    ? { reason: "NotResolved", message: `the Service ${name} has no address yet: no pod that it selects is ready` }
    : { reason: "ServiceRefused", message: `the Service ${name} has no TCP port ${intent.ports.join(" or ")}; name the port in the entry` };
};

const portOf = ({ spec }: ServiceView, port: number) => spec?.ports?.find((one) => one.port === port && (one.protocol ?? "TCP") === "TCP");

const serviceFault = ({ metadata, spec = {} }: ServiceView, name: string): string | null => {
  if (metadata.labels?.[labels.managedBy] === managedByAmbit) return `the Service ${name} is Ambit's own; tools don't reach tools`;
  if (spec.type === "ExternalName") return `the Service ${name} is an ExternalName; name the host it stands for`;
  if (Object.keys(spec.selector ?? {}).length === 0) return `the Service ${name} has no selector, so no policy can name its pods`;
  return null;
};

const podsOf = (slices: readonly SliceView[]): string[] => {
  const ready = slices.flatMap(({ endpoints }) => (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false));
  const addresses = ready.flatMap((endpoint) => endpoint.addresses ?? []);
  return [...new Set(addresses)].filter((address) => isRefusedAddress(address, podAddresses) === null).sort();
};
