import { Waiting } from "../../api/errors.ts";
import type { CanaryDocument, SignedDocument } from "../../api/host.ts";
import type { JsonObject } from "../../api/json.ts";
import { type Clock, pause } from "../../kube/clock.ts";
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

/**
 * Asks hosts, before they get their component, to reach what their policy forbids: the only way to know that policies are in force, since nothing acknowledges them. What each component's
 * newest host found is kept, in memory: an operator that starts anew hears it again from the next host.
 */
export class Canary {
  readonly #options: CanaryOptions;
  readonly #found = new Map<string, Enforcement>();

  constructor(options: CanaryOptions) {
    this.#options = options;
  }

  of(of: EgressOf): Enforcement {
    return this.#found.get(keyOf(of)) ?? untried(this.#options.place);
  }

  /** Throws `Waiting` (`EgressNotEnforced`) where the component must not be delivered yet, and what asking the host throws. */
  async check({ of }: Pod, session: Session, signal: AbortSignal): Promise<void> {
    const { place, requirement, clock } = this.#options;
    if (place === null) {
      if (requirement === "require") throw notYet(untried(null).message);
      return;
    }
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
    this.#record(of, reachedFrom(place));
    if (requirement === "require") throw notYet(reachedFrom(place).message);
  }

  /** Forgets a component that is gone. */
  forget(of: EgressOf): void {
    this.#found.delete(keyOf(of));
  }

  #record(of: EgressOf, enforcement: Enforcement): void {
    const before = this.of(of);
    this.#found.set(keyOf(of), enforcement);
    if (before.status !== enforcement.status) this.#options.changed(of);
  }
}

const keyOf = ({ namespace, workload, component }: EgressOf): string => JSON.stringify([namespace, workload, component]);

const inForce: Enforcement = {
  status: "True",
  reason: "PolicyInForce",
  message: "the sandbox could not reach what its NetworkPolicy forbids",
};

const reachedFrom = ({ address, port }: CanaryPlace): Enforcement => ({
  status: "False",
  reason: "CanaryReached",
  message: `the sandbox reached ${address}:${port}, which its NetworkPolicy forbids: install a network plugin that enforces NetworkPolicy; until then only the host's own check holds`,
});

const untried = (place: CanaryPlace | null): Enforcement =>
  place === null
    ? { status: "Unknown", reason: "NoCanary", message: "no canary address is configured, so whether policies are in force is not known" }
    : { status: "Unknown", reason: "NotTried", message: "no sandbox has tried yet to reach what its NetworkPolicy forbids" };

const notYet = (message: string): Waiting => new Waiting("EgressNotEnforced", message, retryAfterMs);
