import { Transient } from "../api/errors.ts";
import type { WindowLimit } from "../grants/limits.ts";
import { bucketAt, freeAgainMs, type UsedBuckets, usedNow } from "../grants/sliding-window.ts";

/** What one call takes of one limit: `needs` must be free within it, and `adds` is then used. */
export interface Charge {
  /** Whose limit it is: the same for all replicas, and never what a caller chose. */
  readonly key: string;
  readonly limit: WindowLimit;
  readonly needs: number;
  readonly adds: number;
}

/** What was taken and where, to give it back. */
export type Receipt = readonly { readonly key: string; readonly windowMs: number; readonly bucket: number; readonly amount: number }[];

/** All charges were taken, or none: then `index` is the first that has no room, and `retryAfterMs` when it may have. */
export type Taken =
  | { readonly taken: true; readonly receipt: Receipt }
  | { readonly taken: false; readonly index: number; readonly retryAfterMs: number };

/**
 * Counts what callers use. Taking is atomic: two calls that both have room only alone never both get it. Throws `Transient` (`CountersUnavailable`) where it is not known what
 * was used; nothing may run then.
 */
export interface Counters {
  take(charges: readonly Charge[]): Taken | Promise<Taken>;
  giveBack(receipt: Receipt): void | Promise<void>;
  close(): void | Promise<void>;
}

/** Which of the replicas this one is, from 0, and how many share the limits. */
export interface Share {
  readonly index: number;
  readonly of: number;
}

/** Callers times tools that have limits, in one window. A replica that would have to keep more admits no others. */
const mostCounted = 200_000;

interface Counter {
  readonly windowMs: number;
  readonly used: UsedBuckets;
}

/**
 * Counts in this process. Replicas that know nothing of each other stay within the limits by each taking its share of them: `share` is asked at every call. The sum of shares is the
 * limit, and those of limits that don't divide fall to other replicas for other keys.
 */
export class ProcessCounters implements Counters {
  readonly #counters = new Map<string, Counter>();
  readonly #now: () => number;
  readonly #share: () => Share;
  readonly #most: number;
  #sweepAt = 1024;

  /** `now` is milliseconds on a clock that never jumps. */
  constructor(now: () => number, share: () => Share = () => ({ index: 0, of: 1 }), most = mostCounted) {
    this.#now = now;
    this.#share = share;
    this.#most = most;
  }

  take(charges: readonly Charge[]): Taken {
    const now = this.#now();
    const share = this.#share();
    for (const [index, { key, limit, needs }] of charges.entries()) {
      const used = this.#counters.get(key)?.used ?? new Map();
      const max = limitOf(limit.max, key, share);
      if (usedNow(used, limit.windowMs, now) + needs <= max) continue;
      return { taken: false, index, retryAfterMs: freeAgainMs(used, limit.windowMs, now, max - needs) };
    }
    const receipt = charges
      .filter(({ adds }) => adds > 0)
      .map(({ key, limit: { windowMs }, adds }) => ({ key, windowMs, bucket: bucketAt(windowMs, now), amount: adds }));
    for (const { key, windowMs, bucket, amount } of receipt) {
      const { used } = this.#counterOf(key, windowMs, now);
      used.set(bucket, (used.get(bucket) ?? 0) + amount);
    }
    return { taken: true, receipt };
  }

  giveBack(receipt: Receipt): void {
    for (const { key, bucket, amount } of receipt) {
      const used = this.#counters.get(key)?.used;
      const taken = used?.get(bucket);
      if (used && taken !== undefined) used.set(bucket, Math.max(0, taken - amount));
    }
  }

  close(): void {
    this.#counters.clear();
  }

  #counterOf(key: string, windowMs: number, now: number): Counter {
    const known = this.#counters.get(key);
    if (known) return known;
    if (this.#counters.size >= Math.min(this.#sweepAt, this.#most)) this.#sweep(now);
    const counter: Counter = { windowMs, used: new Map() };
    this.#counters.set(key, counter);
    return counter;
  }

  /** Forgets what has left its window. What is left sets when it is worth doing again. */
  #sweep(now: number): void {
    for (const [key, { used, windowMs }] of this.#counters) if (usedNow(used, windowMs, now) === 0) this.#counters.delete(key);
    if (this.#counters.size >= this.#most)
      throw new Transient("CountersUnavailable", `${this.#most} limits are being counted, which is as many as this process keeps`);
    this.#sweepAt = Math.max(1024, 2 * this.#counters.size);
  }
}

/** A replica's share of a limit. What does not divide falls to replicas from a place that the key decides, so that no replica is without the small limits of all. */
const limitOf = (max: number, key: string, { index, of }: Share): number => {
  if (of <= 1) return max;
  const place = (index + placeOf(key, of)) % of;
  return Math.floor(max / of) + (place < max % of ? 1 : 0);
};

/** FNV-1a: alike in every replica, and all that is asked of it is to spread. */
const placeOf = (key: string, of: number): number => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % of;
};
