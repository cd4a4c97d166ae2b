import { messageOf } from "../../api/errors.ts";
import type { AddressPolicy } from "../../egress/address.ts";
import {
  afterAnswer,
  afterFailure,
  dialledAddresses,
  type NameAddresses,
  type NameTiming,
  unknownName,
} from "../../egress/name-addresses.ts";
import { type Clock, jittered, type Random } from "../../kube/clock.ts";
import type { NameService } from "./name-service.ts";

export interface ResolvedNamesOptions {
  readonly ask: NameService;
  readonly policy: AddressPolicy;
  readonly timing: NameTiming;
  readonly clock: Clock;
  readonly random: Random;
  /** Look-ups at once. */
  readonly concurrency: number;
  /** Told to whoever uses a name when it came to mean something else. */
  readonly changed: (user: string) => void;
}

interface Slot {
  known: NameAddresses;
  readonly users: Set<string>;
  cancel: () => void;
  isAsking: boolean;
}

/** The one resolver of an installation: looks each name up once for all who use it, again when its answer has run out, and no longer than somebody uses it. */
export class ResolvedNames {
  readonly #options: ResolvedNamesOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #namesOf = new Map<string, ReadonlySet<string>>();
  readonly #due: string[] = [];
  #asking = 0;
  #isClosed = false;

  constructor(options: ResolvedNamesOptions) {
    this.#options = options;
  }

  /** What is known of a name that somebody uses. */
  get(name: string): NameAddresses | undefined {
    return this.#slots.get(name)?.known;
  }

  get size(): number {
    return this.#slots.size;
  }

  /** Says which names a user needs from now on, in place of those before; none when it is gone. */
  use(user: string, names: Iterable<string>): void {
    if (this.#isClosed) return;
    const now = new Set(names);
    for (const name of this.#namesOf.get(user) ?? []) if (!now.has(name)) this.#release(name, user);
    for (const name of now) {
      const slot = this.#slots.get(name) ?? this.#begin(name);
      slot.users.add(user);
    }
    if (now.size > 0) this.#namesOf.set(user, now);
    else this.#namesOf.delete(user);
  }

  /** Asks no more. */
  close(): void {
    this.#isClosed = true;
    this.#due.length = 0;
    for (const { cancel } of this.#slots.values()) cancel();
    this.#slots.clear();
    this.#namesOf.clear();
  }

  #begin(name: string): Slot {
    const slot: Slot = { known: unknownName, users: new Set(), cancel: () => {}, isAsking: false };
    this.#slots.set(name, slot);
    this.#isDue(name);
    return slot;
  }

  #release(name: string, user: string): void {
    const slot = this.#slots.get(name);
    slot?.users.delete(user);
    if (slot === undefined || slot.users.size > 0) return;
    slot.cancel();
    this.#slots.delete(name);
  }

  #isDue(name: string): void {
    this.#due.push(name);
    this.#askNext();
  }

  #askNext(): void {
    while (this.#asking < this.#options.concurrency) {
      const name = this.#due.shift();
      if (name === undefined) return;
      const slot = this.#slots.get(name);
      if (slot === undefined || slot.isAsking) continue;
      slot.isAsking = true;
      this.#asking++;
      void this.#ask(name, slot).finally(() => {
        slot.isAsking = false;
        this.#asking--;
        this.#askNext();
      });
    }
  }

  async #ask(name: string, slot: Slot): Promise<void> {
    const { ask, clock, random, policy, timing, changed } = this.#options;
    const before = slot.known;
    const answer = await ask(name).catch((thrown: unknown) => ({ failure: messageOf(thrown) }));
    // Whoever used it may have gone meanwhile, or come back with a new slot.
    if (this.#slots.get(name) !== slot) return;
    const now = clock.elapsed();
    slot.known = "failure" in answer ? afterFailure(before, answer.failure, now, timing) : afterAnswer(before, answer, now, policy, timing);
    slot.cancel = clock.after(jittered(random, slot.known.lookAgainAt - now, 0.1), () => this.#isDue(name));
    if (meaning(before, now) !== meaning(slot.known, now)) for (const user of slot.users) changed(user);
  }
}

/** What of a name's state others act on. */
const meaning = (known: NameAddresses, now: number): string =>
  JSON.stringify([
    known.answeredAt === null && known.failure === null,
    dialledAddresses(known, now),
    [...known.draining],
    known.refused,
    known.leftOut,
    known.failure?.message ?? null,
  ]);
