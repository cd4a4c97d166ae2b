import { LRUCache } from "lru-cache";
import type { Declaration } from "../api/declaration.ts";
import { isJsonObject, type JsonValue } from "../api/json.ts";
import type { Offer, Offers } from "./offers.ts";
import type { CatalogueId, CatalogueState, LiveGrant } from "./state.ts";
import { type Meaning, TermIndex, type TermWeights } from "./term-index.ts";

export interface SearchHit {
  readonly offer: Offer;
  readonly score: number;
}

export const searchLimits = { queryLength: 500, queryWords: 32, hits: 50, defaultHits: 10 } as const;

/** Offers that are remembered by their numbers, over all snapshots; some bytes each. */
const membersKept = 500_000;

/** A property deeper in a schema than this adds nothing to what a tool is found by. */
const schemaDepth = 6;
const schemaText = 4_000;

/**
 * What words count by where they are, and how long a text of that kind is usually. These are fixed, and not averages over an index, so that a tool's score says nothing of tools that its
 * caller may not call.
 */
const fields = {
  name: { boost: 3, usualLength: 3 },
  description: { boost: 1.5, usualLength: 15 },
  parameters: { boost: 1, usualLength: 25 },
} as const;

/** BM25's: how soon more of the same word adds nothing, and how much a long text's words count less. */
const saturation = 1.2;
const lengthShare = 0.7;

/**
 * Ranks a caller's tools against a question: BM25 over names, descriptions and parameters. One index has the tools of all who search; what a word is worth is
 * counted over the caller's own tools alone, so neither hits nor their order tell of others.
 */
export class ToolSearch {
  readonly #state: Pick<CatalogueState, "grant" | "subscribe">;
  readonly #index = new TermIndex();
  readonly #numbers = new Map<LiveGrant, { readonly id: CatalogueId; readonly number: number }>();
  readonly #members = new LRUCache<number, Members>({
    maxSize: membersKept,
    sizeCalculation: ({ isMember, list }) => 100 + list.length + (isMember.length >> 3),
  });
  #mayHoldDead = false;
  /** Another whenever the number of a document may mean another one. */
  #numbering = 0;

  constructor(state: Pick<CatalogueState, "grant" | "subscribe">) {
    this.#state = state;
    state.subscribe(() => {
      this.#mayHoldDead = true;
    });
  }

  /** At most `limit` hits, best first; equal ones by name. */
  search(offers: Offers, query: string, limit: number): SearchHit[] {
    const words = [...new Set(wordsOf(query.slice(0, searchLimits.queryLength)))].slice(0, searchLimits.queryWords);
    if (words.length === 0) return [];
    const members = this.#membersOf(offers);
    const scores = new Float64Array(this.#index.capacity);
    const closest = new Float64Array(this.#index.capacity);
    for (const word of words) addScores(scores, closest, this.#index.meanings(word), members);
    return best(scores, members, limit);
  }

  #membersOf({ snapshot, list }: Offers): Members {
    this.#forgetDead();
    const known = this.#members.get(snapshot);
    if (known?.numbering === this.#numbering) return known;
    const numbers = Uint32Array.from(list, (offer) => this.#numberOf(offer));
    const isMember = new Uint8Array(this.#index.capacity);
    for (const number of numbers) isMember[number] = 1;
    const members = { numbering: this.#numbering, list, numbers, isMember };
    this.#members.set(snapshot, members);
    return members;
  }

  #numberOf({ id, grant, declaration }: Offer): number {
    const known = this.#numbers.get(grant);
    if (known) return known.number;
    const number = this.#index.add(weightsOf(declaration));
    this.#numbers.set(grant, { id, number });
    return number;
  }

  /** What is no longer live is in nobody's offers. */
  #forgetDead(): void {
    if (!this.#mayHoldDead) return;
    this.#mayHoldDead = false;
    for (const [grant, { id, number }] of this.#numbers) {
      if (this.#state.grant(id) === grant) continue;
      this.#numbers.delete(grant);
      this.#index.remove(number);
      this.#numbering++;
    }
  }
}

/** A caller's offers, the numbers of their documents in the same order, and whether a number is one of these. */
interface Members {
  readonly numbering: number;
  readonly list: readonly Offer[];
  readonly numbers: Uint32Array;
  readonly isMember: Uint8Array;
}

/**
 * Adds what one word of the question says of each of the caller's tools: the closest of its meanings, by how few of the caller's tools have any. `closest` is room to
 * work in.
 */
const addScores = (scores: Float64Array, closest: Float64Array, meanings: readonly Meaning[], { numbers, isMember }: Members): void => {
  closest.fill(0);
  let having = 0;
  const note = (document: number, value: number): void => {
    const known = closest[document] ?? 0;
    if (value <= known) return;
    if (known === 0) having++;
    closest[document] = value;
  };
  for (const { postings, share } of meanings) {
    if (postings.size <= numbers.length) {
      for (const [document, weight] of postings) if (isMember[document] === 1) note(document, share * weight);
    } else {
      for (const document of numbers) note(document, share * (postings.get(document) ?? 0));
    }
  }
  const rarity = Math.log(1 + (numbers.length - having + 0.5) / (having + 0.5));
  for (const document of numbers) scores[document] = (scores[document] ?? 0) + rarity * (closest[document] ?? 0);
};

const best = (scores: Float64Array, { list, numbers }: Members, limit: number): SearchHit[] => {
  const hits: SearchHit[] = [];
  for (const [index, offer] of list.entries()) {
    const score = Math.round((scores[numbers[index] ?? 0] ?? 0) * 1000) / 1000;
    const last = hits[limit - 1];
    if (score === 0 || (last && (score < last.score || !isBefore({ offer, score }, last)))) continue;
    const place = hits.findLastIndex((hit) => !isBefore({ offer, score }, hit)) + 1;
    hits.splice(place, 0, { offer, score });
    if (hits.length > limit) hits.pop();
  }
  return hits;
};

const isBefore = (a: SearchHit, b: SearchHit): boolean =>
  a.score > b.score || (a.score === b.score && a.offer.declaration.name < b.offer.declaration.name);

/** `list_issues`, `listIssues` and `list-issues` are each two words. */
const wordsOf = (text: string): string[] =>
  text
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? [];

const weightsOf = ({ name, description, parameters }: Declaration): TermWeights => {
  const texts: string[] = [];
  collectSchemaText(parameters, schemaDepth, texts);
  const counts = new Map<string, number>();
  const count = (text: string, { boost, usualLength }: { readonly boost: number; readonly usualLength: number }): void => {
    const words = wordsOf(text);
    const worth = boost / (1 - lengthShare + (lengthShare * words.length) / usualLength);
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + worth);
  };
  count(name, fields.name);
  count(description, fields.description);
  count(texts.join(" ").slice(0, schemaText), fields.parameters);
  return new Map([...counts].map(([word, worth]) => [word, (worth * (saturation + 1)) / (worth + saturation)]));
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
