import { Waiting } from "../../api/errors.ts";
import type { CanaryDocument, SignedDocument } from "../../api/host.ts";
import type { JsonObject } from "../../api/json.ts";
import { type Clock, jittered, pause, type Random } from "../../kube/clock.ts";
import type { EgressOf } from "./egress.ts";

/** Somewhere that always answers and that no sandbox may reach, such as the API server's own Service. */
export interface CanaryPlace {
  readonly address: string;
  readonly port: number;
}

/** What came of it, as a condition of the component says it. */
export interface Enforcement {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: "PolicyInForce" | "CanaryReached" | "NoCanary" | "NotTried";
  readonly message: string;
}

export interface CanaryOptions {
  readonly place: CanaryPlace | null;
  /** `require`: no host gets its component while it reaches the canary. `report`: it is said, and the host's own checks hold. */
  readonly requirement: "report" | "require";
  readonly sign: (document: CanaryDocument) => SignedDocument;
  readonly clock: Clock;
  readonly random: Random;
  /** Told when a component's enforcement came to be another. */
  readonly changed: (of: EgressOf) => void;
}

/** The part of a host's pod and session that is needed here. */
interface Pod {
  readonly of: EgressOf;
}
interface Session {
  boot(): Promise<{ readonly boot: string }>;
  ask(request: { readonly method: "POST"; readonly path: string; readonly body: string }): Promise<JsonObject>;
}

/** A policy takes a moment until it holds for a new pod. */
const settleMs = 3_000;
const betweenMs = 300;
const retryAfterMs = 10_000;
/** A network plugin may be taken away while sandboxes run: one host of each component tries again this often. */
const periodMs = 15 * 60_000;

interface Found extends Enforcement {
  /** On the monotonic clock. */
  readonly againAt: number;
}

/**
 * Asks hosts, before they get their component and from time to time after that, to reach what their policy forbids: the only way to know that policies are in force, since nothing
 * acknowledges them. What each component's hosts found last is kept, in memory: an operator that starts anew hears it again from the next host.
 */
export class Canary {
  readonly #options: CanaryOptions;
  readonly #found = new Map<string, Found>();

  constructor(options: CanaryOptions) {
    this.#options = options;
  }

  of(of: EgressOf): Enforcement {
    return this.#found.get(keyOf(of)) ?? untried(this.#options.place);
  }

  /** Throws `Waiting` (`EgressNotEnforced`) where the component must not be delivered yet, and what asking the host throws. */
  async check({ of }: Pod, session: Session, signal: AbortSignal): Promise<void> {
    const { place, requirement } = this.#options;
    const found = place === null ? untried(null) : await this.#try(place, of, session, signal);
    if (found.status !== "True" && requirement === "require") throw notYet(found.message);
  }

  /** In how many milliseconds a host that has its component is to try again; never where nothing was tried. */
  dueInMs(of: EgressOf): number {
    const found = this.#found.get(keyOf(of));
    return found === undefined ? Number.POSITIVE_INFINITY : Math.max(0, found.againAt - this.#options.clock.elapsed());
  }

  /** Has a host that is due try again. Others of the component are not due meanwhile, nor is this one soon if it does not answer. */
  async again({ of }: Pod, session: Session, signal: AbortSignal): Promise<void> {
    const { place } = this.#options;
    if (place === null) return;
    this.#postpone(of);
    await this.#try(place, of, session, signal);
  }

  /** What a policy of the component became another: it is due when that has settled. */
  suspect(of: EgressOf): void {
    const found = this.#found.get(keyOf(of));
    if (found) this.#found.set(keyOf(of), { ...found, againAt: Math.min(found.againAt, this.#options.clock.elapsed() + settleMs) });
  }

  async #try(place: CanaryPlace, of: EgressOf, session: Session, signal: AbortSignal): Promise<Enforcement> {
    const { clock } = this.#options;
    // Where it was reached before, the next host need not wait to find out the same.
    const until = clock.elapsed() + (this.of(of).status === "False" ? 0 : settleMs);
    const { boot } = await session.boot();
    const body = JSON.stringify(this.#options.sign({ kind: "canary", boot, ...place }));
    for (;;) {
      const { reached } = await session.ask({ method: "POST", path: "/v1/canary", body });
      if (reached === false) return this.#record(of, inForce);
      if (clock.elapsed() >= until) break;
      await pause(clock, betweenMs, signal);
      signal.throwIfAborted();
    }
    return this.#record(of, reachedFrom(place));
  }

  /** Forgets a component that is gone. */
  forget(of: EgressOf): void {
    this.#found.delete(keyOf(of));
  }

  #record(of: EgressOf, enforcement: Enforcement): Enforcement {
    const before = this.of(of);
    this.#found.set(keyOf(of), { ...enforcement, againAt: this.#next() });
    if (before.status !== enforcement.status) this.#options.changed(of);
    return enforcement;
  }

  #postpone(of: EgressOf): void {
    const found = this.#found.get(keyOf(of));
    if (found) this.#found.set(keyOf(of), { ...found, againAt: this.#next() });
  }

  #next(): number {
    const { clock, random } = this.#options;
    return clock.elapsed() + jittered(random, periodMs, 0.1);
  }
}

const keyOf = ({ namespace, workload, component }: EgressOf): string => JSON.stringify([namespace, workload, component]);

const inForce: Enforcement = {
  status: "True",
  reason: "PolicyInForce",
  message: "NetworkPolicy and the host's own check hold: a sandbox could not reach what its policy forbids",
};

const reachedFrom = ({ address, port }: CanaryPlace): Enforcement => ({
  status: "False",
  reason: "CanaryReached",
  message: `only the host's own check holds: a sandbox reached ${address}:${port}, which its NetworkPolicy forbids; install a network plugin that enforces NetworkPolicy`,
});

const untried = (place: CanaryPlace | null): Enforcement =>
  place === null
    ? { status: "Unknown", reason: "NoCanary", message: "no canary address is configured, so whether policies are in force is not known" }
    : { status: "Unknown", reason: "NotTried", message: "no sandbox has tried yet to reach what its NetworkPolicy forbids" };

const notYet = (message: string): Waiting => new Waiting("EgressNotEnforced", message, retryAfterMs);
