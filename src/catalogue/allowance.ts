import { sha256Of } from "../api/digest.ts";
import type { Gated, Refusal } from "../grants/gates.ts";
import { bytesWithin, callsWithin, type WindowLimit } from "../grants/limits.ts";
import type { Charge, Counters, Receipt } from "./counters.ts";
import type { Offer } from "./offers.ts";

/** What a call may use, in the order in which it is judged: refusals so far, bytes, calls. */
export type Allowed = { readonly refusal: Refusal } | { readonly refusal: null; readonly receipt: Receipt };

type Counted = Extract<Gated, "denials" | "egress-budget" | "rate">;

const refusals: Readonly<Record<Counted, { readonly code: string; readonly reason: string }>> = {
  denials: { code: "TooManyDenials", reason: "what the caller sent this tool was refused too often" },
  "egress-budget": { code: "EgressBudgetSpent", reason: "the caller would send this tool more bytes than it may" },
  rate: { code: "RateExceeded", reason: "the caller calls this tool more often than it may" },
};

/**
 * Holds a caller's calls of a tool to the limits of its grant, and to how often it may be refused. Limits belong to the subject, the grant and the window; nothing that a caller
 * chooses gives it others.
 */
export class Allowances {
  readonly #counters: Counters;
  readonly #denials: WindowLimit | null;

  constructor(counters: Counters, denials: WindowLimit | null) {
    this.#counters = counters;
    this.#denials = denials;
  }

  /** Takes what the call needs, or says which limit leaves no room. Throws what `Counters.take` does. */
  async take(subject: string, offer: Offer, bytes: number): Promise<Allowed> {
    const { rateLimit, maxEgressBytes } = offer.grant.spec;
    const owner = ownerOf(subject, offer);
    const charges: [Counted, Charge][] = [];
    const charge = (gate: Counted, limit: WindowLimit, needs: number, adds: number): void => {
      charges.push([gate, { key: keyOf(owner, gate, limit), limit, needs, adds }]);
    };
    if (this.#denials) charge("denials", this.#denials, 1, 0);
    if (maxEgressBytes) charge("egress-budget", bytesWithin(maxEgressBytes), bytes, bytes);
    if (rateLimit) charge("rate", callsWithin(rateLimit), 1, 1);
    if (charges.length === 0) return { refusal: null, receipt: [] };
    const taken = await this.#counters.take(charges.map(([, one]) => one));
    if (taken.taken) return { refusal: null, receipt: taken.receipt };
    const gate = charges[taken.index]?.[0] ?? "rate";
    const told = { admitted: false, gate, ...refusals[gate] } as const;
    return { refusal: gate === "rate" ? { ...told, kind: "rate", retryAfterMs: taken.retryAfterMs } : { ...told, kind: "policy" } };
  }

  /** Counts a refusal of what the caller sent to the tool. */
  async deny(subject: string, offer: Offer): Promise<void> {
    if (!this.#denials) return;
    const { windowMs } = this.#denials;
    const key = keyOf(ownerOf(subject, offer), "denials", this.#denials);
    await this.#counters.take([{ key, limit: { max: Number.MAX_SAFE_INTEGER, windowMs }, needs: 0, adds: 1 }]);
  }

  /** Gives back what a call took that was sent to no host. */
  async giveBack(receipt: Receipt): Promise<void> {
    if (receipt.length > 0) await this.#counters.giveBack(receipt);
  }
}

/** Of a fixed length and without a name in it, since it is told to a store; the same for all counters of one call, as Redis's cluster asks. */
const ownerOf = (subject: string, { id }: Offer): string =>
  `{${sha256Of(JSON.stringify([subject, id])).slice("sha256:".length, "sha256:".length + 32)}}`;

const keyOf = (owner: string, gate: Counted, { windowMs }: WindowLimit): string => `ambit:${owner}:${gate}:${windowMs}`;
