import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { findHiddenCharacters, hiddenCharactersIn, revealed } from "../../../src/grants/hidden-characters.ts";

const cases: Record<string, { text: string; found: string[] }> = {
  "plain text with line feeds and tabs shows all it has": {
    text: "List the issues.\n\tOne a line — “quoted”, naïve café, 100 €…",
    found: [],
  },
  "a zero width space": { text: "a\u200bb", found: ["1 U+200B ZERO WIDTH SPACE"] },
  "a right-to-left override and its end": {
    text: "\u202eevil\u202c",
    found: ["0 U+202E RIGHT-TO-LEFT OVERRIDE", "5 U+202C POP DIRECTIONAL FORMATTING"],
  },
  isolates: { text: "\u2066x\u2069", found: ["0 U+2066 LEFT-TO-RIGHT ISOLATE", "2 U+2069 POP DIRECTIONAL ISOLATE"] },
  "tag characters that spell a text": {
    text: "x\u{e0068}\u{e0069}",
    found: ['1 U+E0068 TAG that stands for "h"', '3 U+E0069 TAG that stands for "i"'],
  },
  "variation selectors that carry bytes": {
    text: "😀\u{e0101}\u{e0102}",
    found: ["2 U+E0101 VARIATION SELECTOR-18", "4 U+E0102 VARIATION SELECTOR-19"],
  },
  "emoji as they are written": { text: "⚠️ 👩‍💻 👍🏽", found: [] },
  "a joiner that joins no emoji": { text: "a\u200db", found: ["1 U+200D ZERO WIDTH JOINER"] },
  "a second selector after an emoji": { text: "⚠\ufe0f\ufe0f", found: ["2 U+FE0F VARIATION SELECTOR-16"] },
  "a carriage return and an escape": { text: "a\r\u001b[2K", found: ["1 U+000D CARRIAGE RETURN", "2 U+001B ESCAPE"] },
  "a no-break space": { text: "a\u00a0b", found: ["1 U+00A0 NO-BREAK SPACE"] },
  "fillers that are letters": { text: "\u3164\u115f", found: ["0 U+3164 HANGUL FILLER", "1 U+115F HANGUL CHOSEONG FILLER"] },
  "private use and unassigned": { text: "\ue000\u0378", found: ["0 U+E000 PRIVATE USE CHARACTER", "1 U+0378 UNASSIGNED CHARACTER"] },
  "a Cyrillic letter in a Latin word": { text: "P\u0430ypal", found: ['1 U+0430 CYRILLIC LETTER that looks like "a"'] },
  "a whole word of look-alikes in a Latin text": {
    text: "Send it to \u0440\u0430\u0443 only",
    found: [
      '11 U+0440 CYRILLIC LETTER that looks like "p"',
      '12 U+0430 CYRILLIC LETTER that looks like "a"',
      '13 U+0443 CYRILLIC LETTER that looks like "y"',
    ],
  },
  "a text in Russian": { text: "Показать все задачи в репозитории.", found: [] },
  "a text in Greek": { text: "Εμφάνιση όλων των θεμάτων.", found: [] },
  "a fullwidth letter": { text: "\uff41dmin", found: ['0 U+FF41 COMPATIBILITY FORM OF A LETTER that looks like "a"'] },
  "a mathematical letter": { text: "\u{1d41a}", found: ['0 U+1D41A COMPATIBILITY FORM OF A LETTER that looks like "a"'] },
  "half of a surrogate pair": { text: "\ud800", found: ["0 U+D800 HALF OF A SURROGATE PAIR"] },
};

for (const [sentence, { text, found }] of Object.entries(cases)) {
  test(`hidden characters: ${sentence}`, () => {
    assert.deepEqual(
      findHiddenCharacters(text).map(({ index, codePoint, name }) => `${index} ${codePoint} ${name}`),
      found,
    );
  });
}

test("hidden characters are found in keys and values of a schema, with their place", () => {
  const places = hiddenCharactersIn({ name: "x", parameters: { properties: { "re\u200bpo": { enum: ["a\u200b"] } } } });
  assert.deepEqual(
    places.map(({ path, codePoint }) => [path, codePoint]),
    [
      ["/parameters/properties/re\u200bpo", "U+200B"],
      ["/parameters/properties/re\u200bpo/enum/0", "U+200B"],
    ],
  );
});

test("a revealed text spells each out and hides nothing", () => {
  assert.equal(revealed("a\u200bb\u{e0068}"), 'a⟨U+200B ZERO WIDTH SPACE⟩b⟨U+E0068 TAG that stands for "h"⟩');
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
      assert.deepEqual(
        findHiddenCharacters(revealed(text)).filter(({ name }) => !name.includes("looks like")),
        [],
      );
    }),
    { numRuns: 300 },
  );
});
