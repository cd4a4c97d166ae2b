import type { JsonValue } from "../api/json.ts";

/** A value in few characters, for a message that a model reads. */
export const inShort = (value: JsonValue | undefined): string => {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value === "string") return `the string ${JSON.stringify(cut(value, 40))}`;
  if (Array.isArray(value)) return `an array of ${value.length} item${value.length === 1 ? "" : "s"}`;
  if (typeof value === "object") return keysInShort(value);
  return cut(String(value), 40);
};

/** At most `longest` characters, never half of one. */
export const cut = (text: string, longest: number): string => {
  if (text.length <= longest) return text;
  return `${[...text.slice(0, 2 * longest)].slice(0, longest - 1).join("")}…`;
};

/** Words with commas, at most twenty of them. */
export const enumerated = (words: readonly string[], longest = 20): string =>
  words.length > longest ? `${words.slice(0, longest).join(", ")} and ${words.length - longest} more` : words.join(", ");

const keysInShort = (value: object): string => {
  const keys = Object.keys(value).map((key) => JSON.stringify(cut(key, 40)));
  return keys.length === 0 ? "an object with no keys" : `an object with the keys ${enumerated(keys, 5)}`;
};
