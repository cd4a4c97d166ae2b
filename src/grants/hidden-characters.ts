import { type JsonValue, pointerTo } from "../api/json.ts";
import { characterName, isHidden } from "./character-names.ts";
import { lookAlikes } from "./look-alikes.ts";

/** A character that a reader does not see, or takes for another. `index` counts UTF-16 code units. */
export interface HiddenCharacter {
  readonly index: number;
  /** `U+200B` */
  readonly codePoint: string;
  /** `ZERO WIDTH SPACE`, or for a look-alike `CYRILLIC LETTER that looks like "a"`. */
  readonly name: string;
}

/** Every such character of a text, in order. Line feed, tab and what belongs to an emoji are as they seem and are left out. */
export const findHiddenCharacters = (text: string): HiddenCharacter[] => {
  const found: HiddenCharacter[] = [];
  let index = 0;
  let before = "";
  for (const character of text) {
    if (isHidden(character) && !belongsToEmoji(character, before, text.slice(index + character.length))) {
      found.push({ index, codePoint: codePointText(character), name: characterName(character) });
    }
    index += character.length;
    before = character;
  }
  for (const { index: at, character, looksLike, script } of lookAlikes(text)) {
    found.push({ index: at, codePoint: codePointText(character), name: `${script} LETTER that looks like ${JSON.stringify(looksLike)}` });
  }
  return found.sort((a, b) => a.index - b.index);
};

/** Where in a JSON value hidden characters are, keys included; `path` is the pointer of the string or of the key's value. */
export const hiddenCharactersIn = (value: JsonValue, path = ""): (HiddenCharacter & { readonly path: string })[] => {
  if (typeof value === "string") return findHiddenCharacters(value).map((found) => ({ path, ...found }));
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item: JsonValue, i) => hiddenCharactersIn(item, pointerTo(path, i)));
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = pointerTo(path, key);
    return [...findHiddenCharacters(key).map((found) => ({ path: at, ...found })), ...hiddenCharactersIn(inner, at)];
  });
};

/** The text with each hidden character spelled out: `a⟨U+200B ZERO WIDTH SPACE⟩b`. */
export const revealed = (text: string): string => {
  let made = "";
  let from = 0;
  for (const { index, codePoint, name } of findHiddenCharacters(text)) {
    const length = (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
    made += `${text.slice(from, index)}⟨${codePoint} ${name}⟩`;
    from = index + length;
  }
  return made + text.slice(from);
};

export const codePointText = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** U+FE0F right after a pictograph, U+200D between two: how emoji are written. A run of them is not. */
const belongsToEmoji = (character: string, before: string, after: string): boolean => {
  if (character === "\ufe0f") return /\p{Extended_Pictographic}/u.test(before);
  if (character === "\u200d")
    return /\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f/u.test(before) && /^\p{Extended_Pictographic}/u.test(after);
  return false;
};
