import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { TermIndex } from "../../../src/catalogue/term-index.ts";

const weights = (...terms: string[]): ReadonlyMap<string, number> => new Map(terms.map((term) => [term, 1]));

const meant = (index: TermIndex, word: string): Record<number, number> => {
  const found: Record<number, number> = {};
  for (const { postings, share } of index.meanings(word)) {
    for (const document of postings.keys()) found[document] = Math.max(found[document] ?? 0, share);
  }
  return found;
};

const meanings: Record<string, { word: string; has: string; share: number | undefined }> = {
  "a word is itself": { word: "event", has: "event", share: 1 },
  "a longer word that begins with it is nearly it": { word: "even", has: "eventual", share: 0.5 },
  "a plural is nearly its singular": { word: "tests", has: "test", share: 0.8 },
  "two letters begin nothing": { word: "ev", has: "events", share: undefined },
  "another letter is a typing error": { word: "mossage", has: "message", share: 0.4 },
  "a missing letter is one": { word: "mesage", has: "message", share: 0.4 },
  "a letter too many is one": { word: "messsage", has: "message", share: 0.4 },
  "the first letter may be the error": { word: "nessage", has: "message", share: 0.4 },
  "two errors are another word": { word: "massige", has: "message", share: undefined },
  "a short word has no errors": { word: "list", has: "lost", share: undefined },
  "no name of JavaScript's own is found": { word: "constructor", has: "event", share: undefined },
};

for (const [what, { word, has, share }] of Object.entries(meanings)) {
  test(what, () => {
    const index = new TermIndex();
    const document = index.add(weights(has));
    assert.equal(meant(index, word)[document], share);
  });
}

test("after any additions and removals, an index means what one made anew does", () => {
  const word = fc.constantFrom("event", "events", "evening", "eve", "message", "messages", "constructor");
  const step = fc.record({ words: fc.uniqueArray(word, { maxLength: 4 }), removes: fc.option(fc.nat(20)) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), word, (steps, asked) => {
      const index = new TermIndex();
      const held = new Map<number, string[]>();
      for (const { words, removes } of steps) {
        if (removes !== null && held.delete(removes)) index.remove(removes);
        held.set(index.add(weights(...words)), words);
      }
      for (const [number, words] of held) {
        const anew = new TermIndex();
        const only = anew.add(weights(...words));
        assert.equal(meant(index, asked)[number], meant(anew, asked)[only]);
      }
      assert.ok(index.capacity <= steps.length);
    }),
    { numRuns: 200 },
  );
});
