/**
 * Names of characters that do not show, as Unicode gives them. What is not in the table is named by its kind, with its code point beside it.
 */
const names: Readonly<Record<number, string>> = {
  13: "CARRIAGE RETURN",
  27: "ESCAPE",
  127: "DELETE",
  160: "NO-BREAK SPACE",
  173: "SOFT HYPHEN",
  847: "COMBINING GRAPHEME JOINER",
  1564: "ARABIC LETTER MARK",
  4447: "HANGUL CHOSEONG FILLER",
  4448: "HANGUL JUNGSEONG FILLER",
  5760: "OGHAM SPACE MARK",
  6068: "KHMER VOWEL INHERENT AQ",
  6069: "KHMER VOWEL INHERENT AA",
  6158: "MONGOLIAN VOWEL SEPARATOR",
  8192: "EN QUAD",
  8193: "EM QUAD",
  8194: "EN SPACE",
  8195: "EM SPACE",
  8199: "FIGURE SPACE",
  8201: "THIN SPACE",
  8202: "HAIR SPACE",
  8203: "ZERO WIDTH SPACE",
  8204: "ZERO WIDTH NON-JOINER",
  8205: "ZERO WIDTH JOINER",
  8206: "LEFT-TO-RIGHT MARK",
  8207: "RIGHT-TO-LEFT MARK",
  8232: "LINE SEPARATOR",
  8233: "PARAGRAPH SEPARATOR",
  8234: "LEFT-TO-RIGHT EMBEDDING",
  8235: "RIGHT-TO-LEFT EMBEDDING",
  8236: "POP DIRECTIONAL FORMATTING",
  8237: "LEFT-TO-RIGHT OVERRIDE",
  8238: "RIGHT-TO-LEFT OVERRIDE",
  8239: "NARROW NO-BREAK SPACE",
  8287: "MEDIUM MATHEMATICAL SPACE",
  8288: "WORD JOINER",
  8289: "FUNCTION APPLICATION",
  8290: "INVISIBLE TIMES",
  8291: "INVISIBLE SEPARATOR",
  8292: "INVISIBLE PLUS",
  8294: "LEFT-TO-RIGHT ISOLATE",
  8295: "RIGHT-TO-LEFT ISOLATE",
  8296: "FIRST STRONG ISOLATE",
  8297: "POP DIRECTIONAL ISOLATE",
  10240: "BRAILLE PATTERN BLANK",
  12288: "IDEOGRAPHIC SPACE",
  12644: "HANGUL FILLER",
  65279: "ZERO WIDTH NO-BREAK SPACE",
  65440: "HALFWIDTH HANGUL FILLER",
  65532: "OBJECT REPLACEMENT CHARACTER",
  917505: "LANGUAGE TAG",
  917631: "CANCEL TAG",
};

/** Controls, format characters, spaces other than the plain one, private use, unassigned, and what Unicode says is ignorable where it has no glyph. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}\p{Co}\p{Cn}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufffc]/u;
const shown = /[ \n\t]/;

export const isHidden = (character: string): boolean => hidden.test(character) && !shown.test(character);

export const characterName = (character: string): string => {
  const code = character.codePointAt(0) ?? 0;
  const known = names[code];
  if (known) return known;
  if (code >= 0xe0020 && code <= 0xe007e) return `TAG that stands for ${JSON.stringify(String.fromCharCode(code - 0xe0000))}`;
  if ((code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef)) return `VARIATION SELECTOR-${selectorNumber(code)}`;
  if (/\p{Cc}/u.test(character)) return "CONTROL CHARACTER";
  if (/\p{Zs}/u.test(character)) return "SPACE OF ANOTHER WIDTH";
  if (/\p{Co}/u.test(character)) return "PRIVATE USE CHARACTER";
  if (/\p{Cn}/u.test(character)) return "UNASSIGNED CHARACTER";
  if (/\p{Cs}/u.test(character)) return "HALF OF A SURROGATE PAIR";
  return "INVISIBLE CHARACTER";
};

const selectorNumber = (code: number): number => (code >= 0xe0100 ? code - 0xe0100 + 17 : code - 0xfe00 + 1);
