import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { type AddressPolicy, isRefusedAddress } from "./address.ts";

/** When names are looked up and how long what they gave stays usable. Milliseconds. */
export interface NameTiming {
  /** A look-up is good for its TTL, but no shorter and no longer than this. */
  readonly ttlFloorMs: number;
  readonly ttlCeilingMs: number;
  /** After a look-up that failed; doubles up to the ceiling. */
  readonly retryMs: number;
  /** While look-ups fail, the last answer holds for so long. */
  readonly staleMs: number;
  /** How long an address is kept that answers no longer have. */
  readonly drainMs: number;
  /** Most addresses of one name, draining ones included. */
  readonly addressLimit: number;
}

export const defaultNameTiming: NameTiming = {
  ttlFloorMs: 5_000,
  ttlCeilingMs: 300_000,
  retryMs: 2_000,
  staleMs: 3_600_000,
  drainMs: 300_000,
  addressLimit: 100,
};

/** What a name service said: all addresses, each with its TTL in seconds. None means that the name has none, not that nobody answered. */
export type NameAnswer = readonly { readonly address: string; readonly ttl: number }[];

/**
 * The addresses of one name over time: the last answer and, of earlier ones, what still drains. A name that gives a part of its addresses each time
 * therefore has all of them here.
 *
 *   t=0 answer [a, b]   t=60 s answer [b, c]   →   current [b, c], draining { a until t=360 s }
 *
 * Times are of a monotonic clock.
 */
export interface NameAddresses {
  readonly current: readonly string[];
  /** Until when each may still be dialled. */
  readonly draining: ReadonlyMap<string, number>;
  /** Of the last answer, what may not be dialled, and why. */
  readonly refused: readonly { readonly address: string; readonly reason: string }[];
  /** How many the last answer had beyond the limit. */
  readonly leftOut: number;
  readonly answeredAt: number | null;
  readonly failure: { readonly message: string; readonly count: number } | null;
  readonly lookAgainAt: number;
}

/** A name that nobody has looked up yet. */
export const unknownName: NameAddresses = {
  current: [],
  draining: new Map(),
  refused: [],
  leftOut: 0,
  answeredAt: null,
  failure: null,
  lookAgainAt: 0,
};

/** Takes an answer in: screens it, keeps what it lacks draining. An empty answer empties the name, after draining. */
export const afterAnswer = (
  before: NameAddresses,
  answer: NameAnswer,
  now: number,
  policy: AddressPolicy,
  timing: NameTiming,
): NameAddresses => {
  const addresses = [...new Set(answer.map(({ address }) => plainAddress(address)))].sort(byFamily);
  const verdicts = addresses.map((address) => ({ address, reason: isRefusedAddress(address, policy) }));
  const usable = verdicts.flatMap(({ address, reason }) => (reason === null ? [address] : []));
  const current = usable.slice(0, timing.addressLimit);
  const left = before.current.filter((address) => !current.includes(address));
  const draining = new Map([...stillDraining(before, now), ...left.map((address) => [address, now + timing.drainMs] as const)]);
  for (const address of current) draining.delete(address);
  const ttlMs = Math.min(...answer.map(({ ttl }) => ttl * 1000));
  return {
    current,
    draining: latest(draining, timing.addressLimit - current.length),
    refused: verdicts.flatMap(({ address, reason }) => (reason === null ? [] : [{ address, reason }])).slice(0, timing.addressLimit),
    leftOut: usable.length - current.length,
    answeredAt: now,
    failure: null,
    lookAgainAt: now + (answer.length === 0 ? timing.ttlFloorMs : clamp(ttlMs, timing.ttlFloorMs, timing.ttlCeilingMs)),
  };
};

/** Nobody answered. What is known stays for a while: a name service that is away is no reason to close what was open. */
export const afterFailure = (before: NameAddresses, message: string, now: number, timing: NameTiming): NameAddresses => {
  const count = (before.failure?.count ?? 0) + 1;
  const isStale = before.answeredAt === null || now - before.answeredAt > timing.staleMs;
  const drained = new Map([...stillDraining(before, now), ...before.current.map((address) => [address, now + timing.drainMs] as const)]);
  return {
    ...before,
    current: isStale ? [] : before.current,
    draining: isStale ? drained : new Map(stillDraining(before, now)),
    failure: { message, count },
    lookAgainAt: now + Math.min(timing.retryMs * 2 ** Math.min(count - 1, 16), timing.ttlCeilingMs),
  };
};

/** What may be dialled now, in the order to try it: the last answer's before what drains, the latest of those first. */
export const dialledAddresses = (name: NameAddresses, now: number): readonly string[] => [
  ...name.current,
  ...stillDraining(name, now)
    .sort(([a, untilA], [b, untilB]) => untilB - untilA || (a < b ? -1 : 1))
    .map(([address]) => address),
];

/** When `dialledAddresses` gets shorter by itself; infinity if it doesn't. */
export const nextDrained = (name: NameAddresses, now: number): number => Math.min(...stillDraining(name, now).map(([, until]) => until));

const stillDraining = ({ draining }: NameAddresses, now: number): (readonly [string, number])[] =>
  [...draining].filter(([, until]) => until > now);

const latest = (draining: ReadonlyMap<string, number>, limit: number): ReadonlyMap<string, number> =>
  new Map([...draining].sort(([, a], [, b]) => b - a).slice(0, Math.max(limit, 0)));

const clamp = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high);

/** IPv4 first: more clusters have no way out by IPv6 than by IPv4, and what can't be reached costs a call time. */
const byFamily = (a: string, b: string): number => isIP(a) - isIP(b) || (a < b ? -1 : 1);

/** One spelling an address; an IPv4 address that is written as IPv6 is the IPv4 address, as policies and dialling take it. */
const plainAddress = (text: string): string => {
  if (isIP(text) === 0 || text.includes("%")) return text;
  return ipaddr.process(text).toString();
};
