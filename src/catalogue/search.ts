import { LRUCache } from "lru-cache";
import MiniSearch from "minisearch";
import type { Declaration } from "../api/declaration.ts";
import { isJsonObject, type JsonValue } from "../api/json.ts";
import type { Offer, Offers } from "./offers.ts";

interface SearchDocument {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly parameters: string;
}

export interface SearchHit {
  readonly offer: Offer;
  readonly score: number;
}

export const searchLimits = { queryLength: 500, queryWords: 32, hits: 50, defaultHits: 10 } as const;

/** Offers that indexes are kept for, over all callers: about 2 KB each. */
const indexedOffers = 50_000;

/** A property deeper in a schema than this adds nothing to what a tool is found by. */
const schemaDepth = 6;
const schemaText = 4_000;

/**
 * Ranks a caller's tools against a question: BM25 over names, descriptions and parameters. The index holds only what this caller may call, so neither hits nor
 * their order tell of other tools.
 */
export class ToolSearch {
  readonly #indexes = new LRUCache<string, { readonly offers: Offers; readonly index: MiniSearch<SearchDocument> }>({
    maxSize: indexedOffers,
    sizeCalculation: ({ offers }) => 1 + offers.list.length,
  });

  /** At most `limit` hits, best first; equal ones by name. */
  search(offers: Offers, query: string, limit: number): SearchHit[] {
    const words = wordsOf(query.slice(0, searchLimits.queryLength)).slice(0, searchLimits.queryWords);
    if (words.length === 0) return [];
    const hits = this.#indexOf(offers).search(words.join(" "));
    hits.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
    const found: SearchHit[] = [];
    for (const hit of hits) {
      const offer = offers.byName.get(hit.id);
      if (offer) found.push({ offer, score: Math.round(hit.score * 1000) / 1000 });
      if (found.length >= limit) break;
    }
    return found;
  }

  /** Brings the caller's index to these offers: what did not change stays, so that one grant's change costs little among thousands. */
  #indexOf(offers: Offers): MiniSearch<SearchDocument> {
    const known = this.#indexes.get(offers.caller);
    if (known?.offers.snapshot === offers.snapshot) return known.index;
    const index = known?.index ?? emptyIndex();
    const before = known?.offers ?? noOffers;
    for (const offer of before.list) {
      if (offers.byName.get(offer.declaration.name) !== offer) index.remove(documentOf(offer.declaration));
    }
    index.addAll(
      offers.list.filter((offer) => before.byName.get(offer.declaration.name) !== offer).map((offer) => documentOf(offer.declaration)),
    );
    this.#indexes.set(offers.caller, { offers, index });
    return index;
  }
}

const noOffers: Pick<Offers, "list" | "byName"> = { list: [], byName: new Map() };

const emptyIndex = (): MiniSearch<SearchDocument> =>
  new MiniSearch<SearchDocument>({
    fields: ["name", "description", "parameters"],
    tokenize: wordsOf,
    processTerm: (term) => term,
    searchOptions: {
      boost: { name: 3, description: 1.5 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      maxFuzzy: 1,
    },
  });

/** `list_issues`, `listIssues` and `list-issues` are each two words. */
const wordsOf = (text: string): string[] =>
  text
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? [];

const documentOf = ({ name, description, parameters }: Declaration): SearchDocument => {
  const texts: string[] = [];
  collectSchemaText(parameters, schemaDepth, texts);
  return { id: name, name, description, parameters: texts.join(" ").slice(0, schemaText) };
};

/** Names of properties and their descriptions. */
const collectSchemaText = (schema: JsonValue, depth: number, into: string[]): void => {
  if (!isJsonObject(schema) || depth === 0) return;
  if (typeof schema.description === "string") into.push(schema.description);
  const { properties, items } = schema;
  if (isJsonObject(properties)) {
    for (const [name, property] of Object.entries(properties)) {
      into.push(name);
      collectSchemaText(property, depth - 1, into);
    }
  }
  if (items !== undefined) collectSchemaText(items, depth - 1, into);
};
