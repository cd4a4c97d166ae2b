import { LRUCache } from "lru-cache";
import type { Declaration } from "../api/declaration.ts";
import { sha256Of } from "../api/digest.ts";
import type { JsonValue } from "../api/json.ts";
import { offersFor } from "../grants/offers.ts";
import { type Caller, callerKey, subjectsOf } from "./caller.ts";
import { type CatalogueId, type CatalogueState, catalogueId, type LiveGrant } from "./state.ts";

/** One tool that a caller may call, under the name that its model reads. */
export interface Offer {
  readonly id: CatalogueId;
  readonly declaration: Declaration;
  readonly grant: LiveGrant;
  /** Answers an admitted call within the catalogue, from its canonical bytes; no host has such a tool. */
  readonly answer?: (args: Uint8Array) => OwnAnswer;
}

/** What a tool of the catalogue's own says. `found` are names of tools that may be declared now. */
export interface OwnAnswer {
  readonly text: string;
  readonly structured: JsonValue;
  readonly found: readonly string[];
}

/**
 * All that a caller may call, in the order of names (by UTF-16 code units, so alike on every replica). Never changes: what is true later is another snapshot, so whatever was made from this
 * one may be kept under its number. Callers who may call the same share one.
 */
export interface Offers {
  readonly snapshot: number;
  readonly list: readonly Offer[];
  readonly byName: ReadonlyMap<string, Offer>;
}

/** Offers kept over all snapshots; one that is not kept is made again. */
const offersKept = 200_000;

/** Callers whose offers are known. */
const callersKept = 50_000;

/** Makes each caller's offers once for as long as nothing changes that concerns it. */
export class OfferBook {
  readonly #state: CatalogueState;
  readonly #ofCallers = new LRUCache<string, { readonly revision: string; readonly offers: Offers }>({ max: callersKept });
  readonly #shared = new LRUCache<string, Offers>({ maxSize: offersKept, sizeCalculation: ({ list }) => 1 + list.length });
  readonly #offers = new WeakMap<LiveGrant, NumberedOffer>();
  #snapshots = 0;
  #numbers = 0;

  constructor(state: CatalogueState) {
    this.#state = state;
  }

  offersFor(caller: Caller): Offers {
    const key = callerKey(caller);
    const subjects = subjectsOf(caller);
    const revision = this.#state.revisionFor(subjects);
    const kept = this.#ofCallers.get(key);
    if (kept?.revision === revision) return kept.offers;
    const { offers: grants } = offersFor(caller, this.#state.grantsNaming(subjects), this.#state.namespaces);
    const offers = this.#shareOf(grants);
    this.#ofCallers.set(key, { revision, offers });
    return offers;
  }

  /** The same for all who are offered these. */
  #shareOf(grants: readonly LiveGrant[]): Offers {
    const numbered = grants.map((grant) => this.#offerOf(grant));
    const print = sha256Of(numbered.map(({ number }) => number).join());
    const shared = this.#shared.get(print);
    if (shared) return shared;
    const list = numbered.map(({ offer }) => offer);
    const byName = new Map(list.map((offer) => [offer.declaration.name, offer]));
    const offers: Offers = { snapshot: ++this.#snapshots, list, byName };
    this.#shared.set(print, offers);
    return offers;
  }

  /** The same object for every caller. */
  #offerOf(grant: LiveGrant): NumberedOffer {
    const known = this.#offers.get(grant);
    if (known) return known;
    const offer = { id: catalogueId(grant), declaration: declarationIn(grant), grant };
    const numbered = { offer, number: ++this.#numbers };
    this.#offers.set(grant, numbered);
    return numbered;
  }
}

/** No other offer ever has the number. */
interface NumberedOffer {
  readonly offer: Offer;
  readonly number: number;
}

/** The reviewed words, and nothing else. */
const declarationIn = (grant: LiveGrant): Declaration => {
  const { name, description, parameters, cache } = grant.spec.declaration;
  const declared = { name, description, parameters, tool: catalogueId(grant) };
  return cache === undefined ? declared : { ...declared, cache };
};
