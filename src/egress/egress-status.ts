import type { EgressPlan, EgressProgress } from "./address-table.ts";
import { peerKey } from "./route.ts";

/** What a Workload's status says of one entry of `allowedHosts`. */
export interface EgressHostStatus {
  /** The entry, as written. */
  readonly host: string;
  /** Where it may be dialled now, the first sixteen; ranges as they are. Absent while it is closed. */
  readonly addresses?: readonly string[];
  /** How many there are. */
  readonly addressCount?: number;
  /** What lets these packets out and no others; absent while it is closed. */
  readonly enforcedBy?: string;
  /** Why it is closed; of an open entry, what part of it is. */
  readonly notEnforcedBecause?: { readonly reason: string; readonly message: string };
  /** Since when it is open, or closed for this reason. ISO 8601. */
  readonly since: string;
}

const addressesShown = 16;
const longestMessage = 1024;

/**
 * The status of a component's allowed hosts. `before` is what the status says now: what stayed as it was keeps its time, also when the operator starts anew.
 */
export const egressStatus = (
  backend: string,
  plan: EgressPlan,
  { published, programmed }: EgressProgress,
  before: readonly EgressHostStatus[],
  now: string,
): EgressHostStatus[] =>
  plan.entries.map(({ entry, routes, closed, caveat, pending }): EgressHostStatus => {
    const wanted = new Set(routes.map(({ peer }) => peerKey(peer)));
    const open = (published ?? []).filter(({ peer }) => wanted.has(peerKey(peer)) && programmed.has(peerKey(peer)));
    const addresses = [...new Set(open.map(({ address }) => address))];
    const known = before.find(({ host }) => host === entry);
    if (addresses.length === 0) {
      const because = closed ?? {
        reason: "Settling",
        message: "its addresses were just let through, and are dialled as soon as that is in force",
      };
      const why = { reason: pending ? "Pending" : because.reason, message: because.message.slice(0, longestMessage) };
      const isSame = known?.enforcedBy === undefined && known?.notEnforcedBecause?.reason === why.reason;
      return { host: entry, notEnforcedBecause: why, since: isSame ? known.since : now };
    }
    return {
      host: entry,
      addresses: addresses.slice(0, addressesShown),
      addressCount: addresses.length,
      enforcedBy: backend,
      ...(caveat === null ? {} : { notEnforcedBecause: { reason: caveat.reason, message: caveat.message.slice(0, longestMessage) } }),
      since: known?.enforcedBy === backend ? known.since : now,
    };
  });
