/** Words of a text with how much each counts in it; a word that is there twice counts more, though not twice as much. */
export type TermWeights = ReadonlyMap<string, number>;

/** Below this length a beginning of a word, or a typing error in it, could be any word. */
const shortestPrefix = 3;
const shortestFuzzy = 5;

/** What a word counts that has one typing error; one that begins with the other counts by how much of it that is. */
const fuzzyShare = 0.4;

/** A word of the index that a word of a question may mean. */
export interface Meaning {
  /** How much the word counts in each document, by the document's number. */
  readonly postings: ReadonlyMap<number, number>;
  /** 1 for the word itself, less for one that is only like it. */
  readonly share: number;
}

/** Which documents have which words. Numbers of documents that were removed are given again. */
export class TermIndex {
  readonly #postings = new Map<string, Map<number, number>>();
  readonly #terms = new Map<number, readonly string[]>();
  readonly #free: number[] = [];
  /** In order; made anew where words came or went. */
  #sorted: readonly string[] | null = null;
  #next = 0;

  /** Numbers of documents are below this. */
  get capacity(): number {
    return this.#next;
  }

  add(weights: TermWeights): number {
    const document = this.#free.pop() ?? this.#next++;
    for (const [term, weight] of weights) {
      const postings = this.#postings.get(term);
      if (postings) postings.set(document, weight);
      else this.#newTerm(term, document, weight);
    }
    this.#terms.set(document, [...weights.keys()]);
    return document;
  }

  remove(document: number): void {
    for (const term of this.#terms.get(document) ?? []) {
      const postings = this.#postings.get(term);
      postings?.delete(document);
      if (postings?.size !== 0) continue;
      this.#postings.delete(term);
      this.#sorted = null;
    }
    if (this.#terms.delete(document)) this.#free.push(document);
  }

  /** The word itself, words that begin with it, and words that are one typing error away. */
  meanings(word: string): Meaning[] {
    const found: Meaning[] = [];
    const take = (term: string, share: number): void => {
      const postings = this.#postings.get(term);
      if (postings) found.push({ postings, share });
    };
    take(word, 1);
    if (word.length >= shortestPrefix) {
      for (const term of this.#beginningWith(word)) if (term !== word) take(term, word.length / term.length);
    }
    if (word.length >= shortestFuzzy) {
      for (const term of this.#postings.keys()) {
        if (term.startsWith(word) || !isOneEditAway(word, term)) continue;
        take(term, word.startsWith(term) ? term.length / word.length : fuzzyShare);
      }
    }
    return found;
  }

  #newTerm(term: string, document: number, weight: number): void {
    this.#postings.set(term, new Map([[document, weight]]));
    this.#sorted = null;
  }

  *#beginningWith(word: string): Generator<string> {
    this.#sorted ??= [...this.#postings.keys()].sort();
    const sorted = this.#sorted;
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sorted[middle] ?? "") < word) low = middle + 1;
      else high = middle;
    }
    for (let term = sorted[low]; term?.startsWith(word); term = sorted[++low]) yield term;
  }
}

/** Whether one character more, one fewer, or another one makes the words the same. */
const isOneEditAway = (a: string, b: string): boolean => {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  const more = long.length - short.length;
  if (more > 1) return false;
  let same = 0;
  while (same < short.length && short.charCodeAt(same) === long.charCodeAt(same)) same++;
  const rest = same + 1 - more;
  for (let index = rest; index < short.length; index++) {
    if (short.charCodeAt(index) !== long.charCodeAt(index + more)) return false;
  }
  return true;
};
