import type { EgressHostStatus } from "./egress-status.ts";

/** The hop between the two hosts of an MCP server that is a component: which end of it a component is, and the name of the other. */
export type Hop = { readonly end: "server"; readonly bridge: string } | { readonly end: "bridge"; readonly server: string };

/**
 * What the status says of the one place that such a bridge reaches, besides its entries: none for others. `fault` says why its policy could not be applied; `before` is what the
 * status says now.
 */
export const hopStatus = (
  backend: string,
  hop: Hop | null,
  fault: { readonly reason: string; readonly message: string } | undefined,
  before: readonly EgressHostStatus[],
  now: string,
): EgressHostStatus[] => {
  if (hop?.end !== "bridge") return [];
  const host = `${hop.server} (this workload's component)`;
  const known = before.find((one) => one.host === host);
  if (fault === undefined) return [{ host, enforcedBy: backend, since: known?.enforcedBy === backend ? known.since : now }];
  const isSame = known?.enforcedBy === undefined && known?.notEnforcedBecause?.reason === fault.reason;
  return [{ host, notEnforcedBecause: { ...fault, message: fault.message.slice(0, 1024) }, since: isSame ? known.since : now }];
};
