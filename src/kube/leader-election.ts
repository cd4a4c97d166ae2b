import { AmbitError, Transient } from "../api/errors.ts";
import { abortScope } from "./abort-scope.ts";
import { isConflict, isNotFound } from "./api-error.ts";
import type { ClusterClient } from "./client.ts";
import { type Clock, jittered, pause, type Random } from "./clock.ts";
import { microTime } from "./micro-time.ts";
import type { ClusterObject, ObjectKey, ResourceType } from "./object.ts";

export interface ElectionOptions {
  readonly client: Pick<ClusterClient, "get" | "create" | "replace">;
  readonly lease: Required<ObjectKey>;
  /** Unlike any other candidate's, also one that had this pod's name before: a name and something random. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly timing?: ElectionTiming;
  readonly onEvent?: (event: ElectionEvent) => void;
}

export type ElectionEvent =
  | { readonly type: "following"; readonly leader: string }
  | { readonly type: "leading" }
  | { readonly type: "lost"; readonly error: unknown }
  | { readonly type: "trouble"; readonly error: unknown };

export interface ElectionTiming {
  /** A lease that nobody renews for so long is free. */
  readonly leaseMs: number;
  /** Who could not renew for so long stops leading: early enough that nobody else has begun. */
  readonly renewWithinMs: number;
  readonly retryMs: number;
}

export const defaultElectionTiming: ElectionTiming = { leaseMs: 15_000, renewWithinMs: 10_000, retryMs: 2_000 };

export const leases: ResourceType = { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases", namespaced: true };

interface LeaseObject extends ClusterObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}

/** Leading was lost, so what only a leader may do does not happen. Nothing was sent. */
export class LeadershipLost extends AmbitError {
  constructor(message: string, options?: ErrorOptions) {
    super("LeadershipLost", message, options);
  }
}

/** A term of leading. */
export interface Leadership {
  /** Aborts, with `LeadershipLost`, the moment the term ends. */
  readonly signal: AbortSignal;
  /**
   * Throws `LeadershipLost` unless the lease was renewed recently enough by every clock there is: a process that was stopped for a while finds out here, before its
   * timers run. For `ClusterClient.guardedBy`.
   */
  readonly assertHeld: () => void;
}

/**
 * Waits until this process leads, runs `lead`, and resolves when that has ended, to whether it was `lost` or ended `by itself` (also by `signal`). Gives the lease back in the
 * latter case, so that another takes over at once. Rejects with what `lead` rejects with, unless leading was lost.
 *
 * Whether a lease has run out is judged by how long this process has seen it unchanged, never by comparing clocks of two machines.
 */
export const runAsLeader = async (
  options: ElectionOptions,
  lead: (leadership: Leadership) => Promise<void>,
  signal: AbortSignal,
): Promise<"lost" | "ended"> => {
  const candidate = new Candidate(options);
  if (!(await candidate.acquire(signal))) return "ended";
  const term = new Term(options, candidate.renewedAt);
  options.onEvent?.({ type: "leading" });
  const stopRenewing = new AbortController();
  const renewing = candidate.renewUntil(AbortSignal.any([stopRenewing.signal, term.signal]), term);
  const stop = (): void => term.end(new LeadershipLost("this process stops"));
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    await lead({ signal: term.signal, assertHeld: term.assertHeld });
  } catch (thrown) {
    if (!term.signal.aborted) throw thrown;
  } finally {
    signal.removeEventListener("abort", stop);
    stopRenewing.abort();
    await renewing;
    const lost = term.isLost;
    term.end(new LeadershipLost("the term is over"));
    // Only now, when nothing of this process writes any more, may another begin.
    if (!lost) await candidate.release();
  }
  return term.isLost ? "lost" : "ended";
};

/** When, by either clock. */
interface Moment {
  readonly elapsed: number;
  readonly wall: number;
}

const momentOf = (clock: Clock): Moment => ({ elapsed: clock.elapsed(), wall: clock.now() });

class Term {
  readonly #clock: Clock;
  readonly #timing: ElectionTiming;
  readonly #onEvent: ElectionOptions["onEvent"];
  readonly #ended = new AbortController();
  #renewedAt: Moment;
  #cancel: () => void = () => {};
  isLost = false;
  lastError: unknown;

  constructor({ clock, timing = defaultElectionTiming, onEvent }: ElectionOptions, renewedAt: Moment) {
    this.#clock = clock;
    this.#timing = timing;
    this.#onEvent = onEvent;
    this.#renewedAt = renewedAt;
    this.renewed(renewedAt);
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** `at` is when the renewal was sent: the server may have got it as early as that. */
  renewed(at: Moment): void {
    if (this.#ended.signal.aborted) return;
    this.#renewedAt = at;
    this.#cancel();
    const left = at.elapsed + this.#timing.renewWithinMs - this.#clock.elapsed();
    this.#cancel = this.#clock.after(left, () => this.lose(this.lastError));
  }

  readonly assertHeld = (): void => {
    const { elapsed, wall } = this.#renewedAt;
    // Elapsed time may stand still while a machine sleeps; wall time may be set back. Either is enough to doubt.
    const age = Math.max(this.#clock.elapsed() - elapsed, this.#clock.now() - wall);
    if (age >= this.#timing.renewWithinMs) this.lose(this.lastError);
    this.#ended.signal.throwIfAborted();
  };

  lose(error: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.isLost = true;
    this.end(new LeadershipLost("the lease could not be renewed in time, or another process has it", { cause: error }));
    this.#onEvent?.({ type: "lost", error });
  }

  end(reason: LeadershipLost): void {
    this.#cancel();
    this.#ended.abort(reason);
  }
}

class Candidate {
  readonly #options: ElectionOptions;
  readonly #timing: ElectionTiming;
  /** The lease as last seen or written. */
  #lease: LeaseObject | undefined;
  /** When it was first seen like that, in elapsed time. */
  #unchangedSince = 0;
  renewedAt: Moment;

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.#timing = options.timing ?? defaultElectionTiming;
    this.renewedAt = momentOf(options.clock);
  }

  /** Resolves to true as soon as this process has the lease, to false when the signal aborts. */
  async acquire(signal: AbortSignal): Promise<boolean> {
    const { clock, random, onEvent } = this.#options;
    let followed: string | undefined;
    while (!signal.aborted) {
      try {
        this.#see(await this.#read(signal));
        const holder = this.#lease?.spec?.holderIdentity;
        if (this.#isFree()) {
          await this.#write(signal);
          return true;
        }
        if (holder !== undefined && holder !== followed) onEvent?.({ type: "following", leader: holder });
        followed = holder;
      } catch (thrown) {
        if (!signal.aborted && !isConflict(thrown)) this.#trouble(thrown);
      }
      await pause(clock, jittered(random, this.#timing.retryMs, 0.2), signal);
    }
    return false;
  }

  async renewUntil(signal: AbortSignal, term: Term): Promise<void> {
    const { clock, identity } = this.#options;
    while (!signal.aborted) {
      await pause(clock, this.#timing.retryMs, signal);
      if (signal.aborted) return;
      try {
        await this.#renew(signal);
        term.renewed(this.renewedAt);
      } catch (thrown) {
        if (signal.aborted) return;
        term.lastError = thrown;
        this.#trouble(thrown);
        if (isConflict(thrown) || isNotFound(thrown)) await this.#readAgain(signal);
        const holder = this.#lease?.spec?.holderIdentity;
        if (holder !== identity && holder !== undefined && holder !== "") term.lose(thrown);
      }
    }
  }

  /** Gives up on a request that hangs while there is time for another. */
  async #renew(signal: AbortSignal): Promise<void> {
    const scope = abortScope(signal);
    const ms = this.#timing.renewWithinMs / 2;
    const cancel = this.#options.clock.after(ms, () =>
      scope.abort(new Transient("ApiTimeout", `the lease was not renewed within ${ms / 1000} s`)),
    );
    try {
      await this.#write(scope.signal);
    } finally {
      cancel();
      scope.release();
    }
  }

  /** Best effort: who can't give the lease back lets it run out. */
  async release(): Promise<void> {
    const { client, clock, identity } = this.#options;
    if (this.#lease?.spec?.holderIdentity !== identity) return;
    const spec = { ...this.#lease.spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: microTime(clock.now()) };
    try {
      await client.replace(leases, { ...this.#lease, spec });
    } catch (thrown) {
      this.#trouble(thrown);
    }
  }

  #isFree(): boolean {
    const { holderIdentity, leaseDurationSeconds } = this.#lease?.spec ?? {};
    if (!holderIdentity || holderIdentity === this.#options.identity) return true;
    const leaseMs = leaseDurationSeconds === undefined ? this.#timing.leaseMs : leaseDurationSeconds * 1000;
    return this.#options.clock.elapsed() - this.#unchangedSince >= leaseMs;
  }

  async #read(signal: AbortSignal): Promise<LeaseObject | undefined> {
    try {
      return await this.#options.client.get<LeaseObject>(leases, this.#options.lease, signal);
    } catch (thrown) {
      if (isNotFound(thrown)) return undefined;
      throw thrown;
    }
  }

  async #readAgain(signal: AbortSignal): Promise<void> {
    try {
      this.#see(await this.#read(signal));
    } catch (thrown) {
      if (!signal.aborted) this.#trouble(thrown);
    }
  }

  #see(lease: LeaseObject | undefined): void {
    const before = this.#lease?.metadata;
    const isSame = before?.uid === lease?.metadata.uid && before?.resourceVersion === lease?.metadata.resourceVersion;
    if (!isSame || lease === undefined) this.#unchangedSince = this.#options.clock.elapsed();
    this.#lease = lease;
  }

  /** Takes or renews the lease, if it is still as it was seen. */
  async #write(signal: AbortSignal): Promise<void> {
    const { client, clock, identity, lease: key } = this.#options;
    const at = momentOf(clock);
    const now = microTime(at.wall);
    const before = this.#lease?.spec;
    const isOurs = before?.holderIdentity === identity;
    const spec = {
      ...before,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#timing.leaseMs / 1000),
      acquireTime: isOurs ? (before?.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (before === undefined || isOurs ? 0 : 1),
    };
    const written =
      this.#lease === undefined
        ? await client.create<LeaseObject>(leases, { metadata: { ...key }, spec }, signal)
        : await client.replace<LeaseObject>(leases, { ...this.#lease, spec }, signal);
    this.#see(written);
    this.renewedAt = at;
  }

  #trouble(error: unknown): void {
    this.#options.onEvent?.({ type: "trouble", error });
  }
}
