import { LRUCache } from "lru-cache";
import type { Declaration } from "../api/declaration.ts";
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
 * All that one caller may call, in the order of names (by UTF-16 code units, so alike on every replica). Never changes: what is true later is another snapshot, so whatever was made from this
 * one may be kept under its number.
 */
export interface Offers {
  /** Whose they are: `callerKey`. */
  readonly caller: string;
  readonly snapshot: number;
  readonly list: readonly Offer[];
  readonly byName: ReadonlyMap<string, Offer>;
}

/** Offers kept over all callers; one that is not kept is made again. */
const offersKept = 200_000;

/** Makes each caller's offers once for as long as nothing changes that concerns it. */
export class OfferBook {
  readonly #state: CatalogueState;
  readonly #kept = new LRUCache<string, { readonly revision: string; readonly offers: Offers }>({
    maxSize: offersKept,
    sizeCalculation: ({ offers }) => 1 + offers.list.length,
  });
  readonly #offers = new WeakMap<LiveGrant, Offer>();
  #snapshots = 0;

  constructor(state: CatalogueState) {
    this.#state = state;
  }

  offersFor(caller: Caller): Offers {
    const key = callerKey(caller);
    const subjects = subjectsOf(caller);
    const revision = this.#state.revisionFor(subjects);
    const kept = this.#kept.get(key);
    if (kept?.revision === revision) return kept.offers;
    const { offers: grants } = offersFor(caller, this.#state.grantsNaming(subjects), this.#state.namespaces);
    const list = grants.map((grant) => this.#offerOf(grant));
    const byName = new Map(list.map((offer) => [offer.declaration.name, offer]));
    const offers: Offers = { caller: key, snapshot: ++this.#snapshots, list, byName };
    this.#kept.set(key, { revision, offers });
    return offers;
  }

  /** The same object for every caller. */
  #offerOf(grant: LiveGrant): Offer {
    const known = this.#offers.get(grant);
    if (known) return known;
    const offer: Offer = { id: catalogueId(grant), declaration: declarationIn(grant), grant };
    this.#offers.set(grant, offer);
    return offer;
  }
}

/** The reviewed words, and nothing else. */
const declarationIn = (grant: LiveGrant): Declaration => {
  const { name, description, parameters, cache } = grant.spec.declaration;
  const declared = { name, description, parameters, tool: catalogueId(grant) };
  return cache === undefined ? declared : { ...declared, cache };
};
