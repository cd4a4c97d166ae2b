import { sha256Of } from "../api/digest.ts";
import type { Gated, Refusal } from "../grants/gates.ts";
import { bytesWithin, callsWithin, type WindowLimit } from "../grants/limits.ts";
import type { Charge, Counters, Receipt } from "./counters.ts";
import type { Offer } from "./offers.ts";

/** Whose call it is. A session is what the caller says, and can only divide what the subject has. */
export interface CalledBy {
  readonly subject: string;
  readonly session: string | null;
}

/** How often a caller may be refused at one tool; `perSession` is the part of it that one session may use, null where it may use all. */
export interface DenialLimit extends WindowLimit {
  readonly perSession: number | null;
}

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
  readonly #denials: DenialLimit | null;

  constructor(counters: Counters, denials: DenialLimit | null) {
    this.#counters = counters;
    this.#denials = denials;
  }

  /** Takes what the call needs, or says which limit leaves no room. Throws what `Counters.take` does. */
  async take(by: CalledBy, offer: Offer, bytes: number): Promise<Allowed> {
    const { rateLimit, maxEgressBytes } = offer.grant.spec;
    const owner = ownerOf(by, offer);
    const charges: [Counted, Charge][] = [];
    const charge = (gate: Counted, limit: WindowLimit, needs: number, adds: number): void => {
      charges.push([gate, { key: keyOf(owner, gate, limit), limit, needs, adds }]);
    };
    for (const denial of this.#denialCharges(by, offer)) charges.push(["denials", { ...denial, adds: 0 }]);
    if (maxEgressBytes) charge("egress-budget", bytesWithin(maxEgressBytes), bytes, bytes);
    if (rateLimit) charge("rate", callsWithin(rateLimit), 1, 1);
    if (charges.length === 0) return { refusal: null, receipt: [] };
    const taken = await this.#counters.take(charges.map(([, one]) => one));
    if (taken.taken) return { refusal: null, receipt: taken.receipt };
    const gate = charges[taken.index]?.[0] ?? "rate";
    const told = { admitted: false, gate, ...refusals[gate] } as const;
    return { refusal: gate === "rate" ? { ...told, kind: "rate", retryAfterMs: taken.retryAfterMs } : { ...told, kind: "policy" } };
  }

  /** Counts a refusal of what the caller sent to the tool: not beyond the limit, so that no session that goes on uses up what is left to others. */
  async deny(by: CalledBy, offer: Offer): Promise<void> {
    const charges = this.#denialCharges(by, offer);
    if (charges.length > 0) await this.#counters.take(charges);
  }

  /** Gives back what a call took that was sent to no host. */
  async giveBack(receipt: Receipt): Promise<void> {
    if (receipt.length > 0) await this.#counters.giveBack(receipt);
  }

  /** Of the caller, and of its session where that has a part of its own. */
  #denialCharges(by: CalledBy, offer: Offer): Charge[] {
    if (!this.#denials) return [];
    const { max, windowMs, perSession } = this.#denials;
    const key = keyOf(ownerOf(by, offer), "denials", { windowMs });
    const all: Charge = { key, limit: { max, windowMs }, needs: 1, adds: 1 };
    if (perSession === null || by.session === null) return [all];
    return [all, { ...all, key: `${key}:${shortDigest(by.session)}`, limit: { max: perSession, windowMs } }];
  }
}

/** Of a fixed length and without a name in it, since it is told to a store; the same for all counters of one call, as Redis's cluster asks. */
const ownerOf = ({ subject }: CalledBy, { id }: Offer): string => `{${shortDigest(JSON.stringify([subject, id]))}}`;

const shortDigest = (text: string): string => sha256Of(text).slice("sha256:".length, "sha256:".length + 32);

const keyOf = (owner: string, gate: Counted, { windowMs }: Pick<WindowLimit, "windowMs">): string => `ambit:${owner}:${gate}:${windowMs}`;
