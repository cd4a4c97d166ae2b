import { Refused } from "../api/errors.ts";

/**
 * Nonces that were used, each kept until no ticket with it can be valid any more.
 *
 * Bounded: when `capacity` nonces are held and none can be forgotten, further tickets are refused rather than let through unchecked.
 */
export class UsedNonces {
  readonly #capacity: number;
  /** In order of use; since a ticket's lifetime is bounded, what was used first may go first, give or take one lifetime. */
  readonly #forgettableAt = new Map<string, number>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Marks a nonce as used until `forgettableAt`. Throws `Refused`: `TicketUsed`, `TooManyTickets`. */
  use(nonce: string, forgettableAt: number, now: number): void {
    this.#forget(now);
    if (this.#forgettableAt.has(nonce)) throw new Refused("TicketUsed", "the ticket was used before");
    if (this.#forgettableAt.size >= this.#capacity) {
      throw new Refused("TooManyTickets", `${this.#capacity} tickets were used within their lifetime; no more are taken until some expire`);
    }
    this.#forgettableAt.set(nonce, forgettableAt);
  }

  get size(): number {
    return this.#forgettableAt.size;
  }

  #forget(now: number): void {
    for (const [nonce, forgettableAt] of this.#forgettableAt) {
      if (forgettableAt > now) return;
      this.#forgettableAt.delete(nonce);
    }
  }
}
