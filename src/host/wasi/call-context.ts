import { Refused } from "../../api/errors.ts";
import type { HopReach, HostMount, HostUse } from "../../api/host.ts";
import type { AllowedHost } from "../../egress/allowed-host.ts";
import type { Resolver } from "../../egress/resolver.ts";
import type { Clock } from "./clock.ts";
import type { KeptConnections } from "./http/kept-connections.ts";
import { MadeRequests } from "./made-requests.ts";

/**
 * One line that a component wrote, or (`host`) that the host says about what the component tried. `cut` marks the last one that is kept: what follows was
 * dropped.
 */
export interface GuestLine {
  readonly stream: "stdout" | "stderr" | "host";
  readonly text: string;
  readonly cut: boolean;
}

/** A request that was denied or failed for a reason of ours, for the host's own log: `detail` is what the guest may not be told. */
export interface DeniedRequest {
  readonly target: string;
  readonly detail: string;
}

/** What one call may use up. Bytes are counted over the whole call; counts are of things open at once, unless they say otherwise. */
export interface WasiBudgets {
  readonly openFiles: number;
  readonly writtenFileBytes: number;
  readonly connections: number;
  /** Requests over the whole call. */
  readonly requests: number;
  readonly requestBodyBytes: number;
  readonly responseBodyBytes: number;
  readonly headerBytes: number;
  readonly logLines: number;
  readonly logLineLength: number;
  readonly connectTimeoutMs: number;
}

export const defaultWasiBudgets: WasiBudgets = {
  openFiles: 256,
  writtenFileBytes: 256 * 1024 * 1024,
  connections: 16,
  requests: 256,
  requestBodyBytes: 32 * 1024 * 1024,
  responseBodyBytes: 64 * 1024 * 1024,
  headerBytes: 64 * 1024,
  logLines: 200,
  logLineLength: 4096,
  connectTimeoutMs: 10_000,
};

/** `reach` is null until the host was told. */
export interface HopTarget {
  readonly authority: string;
  readonly reach: () => HopReach | null;
}

export interface WasiOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly HostMount[];
  readonly allowedHosts: readonly AllowedHost[];
  /** Where an admitted target is dialled: `tableResolver` or `systemResolver`. */
  readonly dial: Resolver;
  /** For a bridge: the server behind it, which no resolver is asked for. */
  readonly hop: HopTarget | null;
  /** Kept from call to call; null: each request has a connection of its own. */
  readonly connections: KeptConnections | null;
  readonly log: (line: GuestLine) => void;
  readonly denied: (request: DeniedRequest) => void;
  readonly clock: Clock;
  /** Fills the array with unpredictable bytes. */
  readonly random: (into: Uint8Array) => void;
  readonly budgets: WasiBudgets;
}

/** One call's use of WASI: what it may use, what it has open, what it used up. */
export class CallContext {
  readonly options: WasiOptions;
  /** Whether blocking may suspend the guest (JSPI). Where it cannot, nothing that a guest can wait for needs the event loop. */
  readonly suspends: boolean;
  readonly #open = new Set<Disposable>();
  readonly #spent: Record<Spent, number> = { writtenFileBytes: 0, requests: 0, requestBodyBytes: 0, responseBodyBytes: 0 };
  readonly made = new MadeRequests();
  #ended = false;

  constructor(options: WasiOptions, suspends: boolean) {
    this.options = options;
    this.suspends = suspends;
  }

  /** How many of what the call has open are of this class. */
  countOpen(kind: abstract new (...args: never[]) => Disposable): number {
    let count = 0;
    for (const opened of this.#open) {
      if (opened instanceof kind) count++;
    }
    return count;
  }

  /** Keeps what must be closed when the call ends. */
  hold<T extends Disposable>(opened: T): T {
    if (this.#ended) {
      opened[Symbol.dispose]();
      throw new Refused("CallEnded", "the call has ended; nothing more can be opened for it");
    }
    this.#open.add(opened);
    return opened;
  }

  release(closed: Disposable): void {
    this.#open.delete(closed);
  }

  /** Charges a total of the call; false, and nothing charged, where it would go over. */
  charge(what: Spent, amount: number): boolean {
    if (this.#spent[what] + amount > this.options.budgets[what]) return false;
    this.#spent[what] += amount;
    return true;
  }

  /** Another call begins: totals start anew, what is open stays open. */
  renew(): void {
    for (const what of Object.keys(this.#spent) as Spent[]) this.#spent[what] = 0;
    this.made.clear();
  }

  /** What the call, which began at `since` by `performance.now()`, has used up so far; null where that is nothing. */
  useSince(since: number): HostUse | null {
    const { requests, requestBodyBytes: sentBytes, responseBodyBytes: receivedBytes, writtenFileBytes } = this.#spent;
    if (requests === 0 && writtenFileBytes === 0) return null;
    const { denied } = this.made;
    return { requests, deniedRequests: denied, sentBytes, receivedBytes, writtenFileBytes, exchanges: this.made.exchanges(since) };
  }

  /** Closes what the call has open of this class. */
  endOpen(kind: abstract new (...args: never[]) => Disposable): void {
    for (const opened of [...this.#open]) if (opened instanceof kind) opened[Symbol.dispose]();
  }

  /** Closes everything that the call still has open. */
  end(): void {
    this.#ended = true;
    for (const opened of this.#open) opened[Symbol.dispose]();
    this.#open.clear();
  }
}

type Spent = "writtenFileBytes" | "requests" | "requestBodyBytes" | "responseBodyBytes";
