import { canonicalJson, compactJson, isJsonObject, type JsonValue, jsonObject, pointerTo } from "../api/json.ts";
import { revealed } from "./hidden-characters.ts";

/**
 * One difference, for a person. `path` is a JSON Pointer in which members of a list are named by their `name` where they have one
 * (`/params/args/type/fields/repo/docs`). Strings are shown as they are, other values as JSON, hidden characters spelled out; null is absence.
 */
export interface Change {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Differences listed at most; the last entry then says how many there are beyond. */
const mostChanges = 100;

/** Field by field, in the order of the members before, then those that are new. */
export const describeChanges = (before: JsonValue | undefined, after: JsonValue | undefined, path = ""): Change[] => {
  const found: Change[] = [];
  compare(before, after, path, found);
  if (found.length <= mostChanges) return found;
  return [...found.slice(0, mostChanges - 1), { path, before: null, after: `… and ${found.length - mostChanges + 1} more differences` }];
};

const compare = (before: JsonValue | undefined, after: JsonValue | undefined, path: string, found: Change[]): void => {
  const byName = namesOf(before) !== null && namesOf(after) !== null;
  const membersBefore = membersOf(before, byName);
  const membersAfter = membersOf(after, byName);
  if (!membersBefore || !membersAfter || Array.isArray(before) !== Array.isArray(after)) {
    if (!isSame(before, after)) found.push({ path, ...shown(before, after) });
    return;
  }
  for (const [key, inner] of membersBefore) compare(inner, membersAfter.get(key), pointerTo(path, key), found);
  for (const [key, inner] of membersAfter) if (!membersBefore.has(key)) compare(undefined, inner, pointerTo(path, key), found);
  const order = [...membersBefore.keys()].filter((key) => membersAfter.has(key));
  const orderAfter = [...membersAfter.keys()].filter((key) => membersBefore.has(key));
  if (Array.isArray(before) && order.join() !== orderAfter.join()) {
    found.push({ path, before: `order: ${order.join(", ")}`, after: `order: ${orderAfter.join(", ")}` });
  }
};

/** Members of an object by key; of a list by the `name` of each if both lists have names, or else by position. */
const membersOf = (value: JsonValue | undefined, byName: boolean): Map<string, JsonValue> | null => {
  if (isJsonObject(value)) return new Map(Object.entries(value));
  if (!Array.isArray(value)) return null;
  const items: readonly JsonValue[] = value;
  const names = byName ? namesOf(value) : null;
  return new Map(items.map((item, i) => [names?.[i] ?? String(i), names && isJsonObject(item) ? withoutName(item) : item]));
};

/** The names of a list whose members all have one, and no two the same. */
const namesOf = (value: JsonValue | undefined): string[] | null => {
  if (!Array.isArray(value)) return null;
  const names = value.flatMap((item: JsonValue) => (isJsonObject(item) && typeof item.name === "string" ? [item.name] : []));
  return names.length === value.length && new Set(names).size === names.length ? names : null;
};

const withoutName = (item: { readonly [key: string]: JsonValue }): JsonValue =>
  jsonObject(Object.entries(item).filter(([key]) => key !== "name"));

const isSame = (before: JsonValue | undefined, after: JsonValue | undefined): boolean =>
  before === undefined || after === undefined ? before === after : canonicalJson(before) === canonicalJson(after);

/** Text as it is, unless the other side is no text: then both as JSON, so that `1` and `"1"` can be told apart. */
const shown = (before: JsonValue | undefined, after: JsonValue | undefined): Pick<Change, "before" | "after"> => {
  const isText = (value: JsonValue | undefined) => value === undefined || typeof value === "string";
  const areTexts = isText(before) && isText(after);
  const text = (value: JsonValue | undefined) => {
    if (value === undefined) return null;
    return revealed(areTexts && typeof value === "string" ? value : compactJson(value));
  };
  return { before: text(before), after: text(after) };
};
