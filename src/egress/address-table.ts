import type { Closed, EntryIntent } from "./intent.ts";
import { dialledAddresses, type NameAddresses, nextDrained, unknownName } from "./name-addresses.ts";
import { cidrOf, type Peer, peerKey, type Route } from "./route.ts";
import { type ServiceView, type SliceView, serviceRoutes } from "./service-routes.ts";
import { hostPort } from "./target.ts";

/** What was looked up for the entries of one component. Times are of a monotonic clock. */
export interface Known {
  readonly name: (name: string) => NameAddresses | undefined;
  readonly service: (namespace: string, name: string) => ServiceView | undefined;
  readonly slices: (namespace: string, name: string) => readonly SliceView[];
}

/** One entry with where it leads now. `pending` until its name was looked up once. */
export interface EntryPlan {
  readonly entry: string;
  readonly routes: readonly Route[];
  readonly closed: Closed | null;
  /** Of an entry that is open: what of it is not as it should be. */
  readonly caveat: Closed | null;
  readonly pending: boolean;
}

/** Where each allowed host of a component should be dialled now. */
export interface EgressPlan {
  readonly entries: readonly EntryPlan[];
  /** When the same knowledge gives another plan; infinity if never. */
  readonly changesAt: number;
}

/** Most addresses that one component's policy may name: enforcers keep a rule for each. */
export const defaultRouteLimit = 1000;

export const planEgress = (intents: readonly EntryIntent[], known: Known, now: number, routeLimit = defaultRouteLimit): EgressPlan => {
  let left = routeLimit;
  let changesAt = Number.POSITIVE_INFINITY;
  const entries = intents.map((intent): EntryPlan => {
    if (intent.kind === "name") changesAt = Math.min(changesAt, nextDrained(known.name(intent.name) ?? unknownName, now));
    const plan = entryPlan(intent, known, now);
    if (plan.routes.length > left) {
      const message = `its ${plan.routes.length} addresses and those of the entries before it are more than the ${routeLimit} that one component may have`;
      return { ...plan, routes: [], closed: { reason: "AddressLimit", message } };
    }
    left -= plan.routes.length;
    return plan;
  });
  return { entries, changesAt };
};

const entryPlan = (intent: EntryIntent, known: Known, now: number): EntryPlan => {
  const { entry } = intent;
  const open = (routes: readonly Route[]): EntryPlan => ({ entry, routes, closed: null, caveat: null, pending: false });
  const closed = (why: Closed): EntryPlan => ({ entry, routes: [], closed: why, caveat: null, pending: false });
  switch (intent.kind) {
    case "closed":
      return closed(intent.closed);
    case "range": {
      const cidr = `${intent.base}/${intent.prefix}`;
      const isOne = cidr === cidrOf(intent.base);
      return open(
        intent.ports.map((port) => ({
          key: isOne ? hostPort(intent.base, port) : `${cidr}:${port}`,
          address: isOne ? intent.base : cidr,
          peer: { kind: "range", cidr, port },
        })),
      );
    }
    case "service": {
      const { namespace, service } = intent;
      const found = serviceRoutes(intent, known.service(namespace, service), known.slices(namespace, service));
      return "reason" in found ? closed(found) : open(found);
    }
    case "name": {
      const name = known.name(intent.name);
      if (name === undefined || (name.answeredAt === null && name.failure === null)) {
        return { ...closed({ reason: "NotResolved", message: `${intent.name} has not been looked up yet` }), pending: true };
      }
      const addresses = dialledAddresses(name, now);
      if (addresses.length === 0) return closed(whyNoAddress(intent.name, name));
      const routes = intent.ports.flatMap((port) =>
        addresses.map((address) => ({
          key: hostPort(intent.name, port),
          address,
          peer: { kind: "range", cidr: cidrOf(address), port } as const,
        })),
      );
      return { ...open(routes), caveat: caveatOf(intent.name, name) };
    }
  }
};

const caveatOf = (name: string, { refused, leftOut, failure }: NameAddresses): Closed | null => {
  const [first] = refused;
  if (failure !== null)
    return { reason: "NotResolved", message: `${name} could not be looked up lately, and keeps its addresses for now: ${failure.message}` };
  if (leftOut > 0)
    return { reason: "AddressLimit", message: `${name} has ${leftOut} addresses more than one name may have; they are left out` };
  return first ? { reason: "AddressRefused", message: `${first.address} is left out: it is ${first.reason}` } : null;
};

const whyNoAddress = (name: string, { refused, failure }: NameAddresses): Closed => {
  const [first] = refused;
  if (first !== undefined && failure === null) {
    return { reason: "AddressRefused", message: `${name} resolves to ${first.address}, which is ${first.reason}` };
  }
  return {
    reason: "NotResolved",
    message: failure === null ? `${name} has no address` : `${name} could not be looked up: ${failure.message}`,
  };
};

/** When a policy and the table that follows it may change. Milliseconds. */
export interface ConvergeTiming {
  /** Nothing tells when a policy is in force everywhere: an address that was added to one is dialled only after this. */
  readonly settleMs: number;
  /** An address stays in the policy for so long after it left the table. */
  readonly narrowAfterMs: number;
}

export const defaultConvergeTiming: ConvergeTiming = { settleMs: 3_000, narrowAfterMs: 15_000 };

/**
 * How far the policy and the table of one component have come towards the plan. The policy is wider than the table at any time: it is widened before the table follows, and
 * narrowed after it.
 *
 *   plan gains b ─> policy {a,b} ─ settle ─> table {a,b}      plan loses a ─> table {b} ─ wait ─> policy {b}
 */
export interface EgressProgress {
  /** In the policy as it was last applied: since when. */
  readonly programmed: ReadonlyMap<string, number>;
  /** What the table holds; null until the first table is published. */
  readonly published: readonly Route[] | null;
  /** Left the table, or were found in a policy from before: until when they stay in the policy. */
  readonly leaving: ReadonlyMap<string, { readonly peer: Peer; readonly until: number }>;
  /** Grows with each table. */
  readonly version: number;
}

/** Begins with the policy as it is found: what it lets through works already, and is not taken away before hosts have a newer table. */
export const beginProgress = (found: readonly Peer[], now: number, { narrowAfterMs }: ConvergeTiming): EgressProgress => ({
  programmed: new Map(found.map((peer) => [peerKey(peer), Number.NEGATIVE_INFINITY])),
  published: null,
  leaving: new Map(found.map((peer) => [peerKey(peer), { peer, until: now + narrowAfterMs }])),
  version: 0,
});

/**
 * Lets the table follow the plan as far as the policy permits. `wall` is the time of day in milliseconds: versions go on from it, so that hosts take the tables of an operator
 * that starts anew. The first table waits until every entry has an address that settled, or is known to be closed: a host that starts then finds all it was granted.
 */
export const publishTable = (
  progress: EgressProgress,
  plan: EgressPlan,
  now: number,
  wall: number,
  { settleMs, narrowAfterMs }: ConvergeTiming,
): EgressProgress => {
  const wanted = plan.entries.flatMap(({ routes }) => routes);
  const isSettled = ({ peer }: Route): boolean => (progress.programmed.get(peerKey(peer)) ?? Number.POSITIVE_INFINITY) + settleMs <= now;
  const published = wanted.filter(isSettled);
  const before = progress.published;
  const reached = new Set(published.map(({ key }) => key));
  const isComplete = wanted.every(({ key }) => reached.has(key)) && !plan.entries.some(({ pending }) => pending);
  if (before === null && !isComplete) return progress;
  const stays = new Set(published.map(({ peer }) => peerKey(peer)));
  const left = (before ?? []).map(({ peer }) => peer);
  // An operator that starts anew: what the policy let through before counts from the first table on.
  const known = [...progress.leaving.values()].map(({ peer, until }) => ({ peer, until: before === null ? now + narrowAfterMs : until }));
  const leaving = new Map(
    [...known, ...left.map((peer) => ({ peer, until: now + narrowAfterMs }))]
      .map((one) => [peerKey(one.peer), one] as const)
      .filter(([key, { until }]) => until > now && !stays.has(key)),
  );
  const isSame = before !== null && tableText(before) === tableText(published);
  return { ...progress, published, leaving, version: isSame ? progress.version : Math.max(progress.version + 1, Math.floor(wall)) };
};

/** What the policy should let through now, each peer once, in a stable order: all that is planned, of which the table is a part, and what leaves. */
export const policyPeers = (progress: EgressProgress, plan: EgressPlan, now: number): readonly Peer[] => {
  const peers = new Map<string, Peer>();
  for (const { routes } of plan.entries) for (const { peer } of routes) peers.set(peerKey(peer), peer);
  for (const [key, { peer, until }] of progress.leaving) if (until > now || progress.published === null) peers.set(key, peer);
  return [...peers].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, peer]) => peer);
};

/** Notes that a policy with these peers has been applied. */
export const afterProgrammed = (progress: EgressProgress, peers: readonly Peer[], now: number): EgressProgress => ({
  ...progress,
  programmed: new Map(peers.map(peerKey).map((key) => [key, progress.programmed.get(key) ?? now])),
});

/** When the next step can be done, though nothing else changes; infinity if there is none. */
export const nextStep = (progress: EgressProgress, plan: EgressPlan, now: number, { settleMs }: ConvergeTiming): number => {
  const settles = plan.entries.flatMap(({ routes }) =>
    routes.map(({ peer }) => (progress.programmed.get(peerKey(peer)) ?? now) + settleMs),
  );
  const leaves = progress.published === null ? [] : [...progress.leaving.values()].map(({ until }) => until);
  // A peer that is wanted again and still leaving has its time in `leaves` as well; it passes.
  return Math.min(plan.changesAt, ...[...settles, ...leaves].filter((at) => at > now));
};

/** The table as hosts get it: by `host:port`, or `range:port`, the addresses in the order to try them. */
export const tableOf = (routes: readonly Route[]): Readonly<Record<string, readonly string[]>> => {
  const table: Record<string, string[]> = {};
  for (const { key, address } of routes) {
    const addresses = table[key] ?? [];
    if (!addresses.includes(address)) addresses.push(address);
    table[key] = addresses;
  }
  return table;
};

const tableText = (routes: readonly Route[]): string => JSON.stringify(tableOf(routes));
