import { isJsonObject, type JsonObject, type JsonValue, pointerTo } from "../api/json.ts";
import { type Child, childrenOf } from "./subschemas.ts";

/** The JSON pointer that a reference into its own schema stands for; null for any other. */
export const pointerOf = (reference: JsonValue | undefined): string | null => {
  if (typeof reference !== "string" || !/^#(?:\/|$)/.test(reference)) return null;
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return null;
  }
};

/** What is at a JSON pointer; undefined for nothing. */
export const valueAt = (root: JsonValue, pointer: string): JsonValue | undefined => {
  let value: JsonValue | undefined = root;
  for (const step of pointer.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(value)) value = /^(?:0|[1-9][0-9]*)$/.test(key) ? value[Number(key)] : undefined;
    else if (isJsonObject(value)) value = Object.hasOwn(value, key) ? value[key] : undefined;
    else return undefined;
  }
  return value;
};

/** Where the definitions are that only references lead to. */
const definitions = new Set(["$defs", "definitions"]);

/** Whether a circle of references may run through this subschema. */
export type Passage = (holder: JsonObject, child: Child) => boolean;

const everywhere: Passage = () => true;

/**
 * The pointer of a `$ref` that closes a circle of references, where the circle runs through nothing but what `passes` lets through; null for none. Needs no
 * deep stack, however long a chain of references is.
 */
export const circleIn = (root: JsonObject, passes: Passage = everywhere): string | null => {
  const finished = new Set<string>();
  // Every circle runs through what some reference leads to, whether the way there is one that counts or not.
  for (const { target } of referencesUnder(root, "", everywhere, new Set())) {
    const circle = finished.has(target) ? null : circleFrom(root, target, passes, finished);
    if (circle !== null) return circle;
  }
  return null;
};

const circleFrom = (root: JsonObject, start: string, passes: Passage, finished: Set<string>): string | null => {
  const open = new Set<string>();
  const stack: { readonly pointer: string; readonly left: Reference[] }[] = [];
  const enter = (pointer: string): void => {
    const target = valueAt(root, pointer);
    open.add(pointer);
    stack.push({ pointer, left: isJsonObject(target) ? referencesUnder(target, pointer, passes, definitions) : [] });
  };
  enter(start);
  for (let top = stack.at(-1); top; top = stack.at(-1)) {
    const next = top.left.pop();
    if (!next) {
      finished.add(top.pointer);
      open.delete(top.pointer);
      stack.pop();
    } else if (open.has(next.target)) {
      return next.at;
    } else if (!finished.has(next.target)) {
      enter(next.target);
    }
  }
  return null;
};

interface Reference {
  readonly at: string;
  readonly target: string;
}

const referencesUnder = (schema: JsonObject, at: string, passes: Passage, except: ReadonlySet<string>): Reference[] => {
  const found: Reference[] = [];
  const visit = (one: JsonObject, pointer: string): void => {
    const target = pointerOf(one.$ref);
    if (target !== null) found.push({ at: pointerTo(pointer, "$ref"), target });
    for (const child of childrenOf(one)) {
      if (except.has(child.keyword) || !isJsonObject(child.schema) || !passes(one, child)) continue;
      visit(child.schema, child.steps.reduce<string>(pointerTo, pointer));
    }
  };
  visit(schema, at);
  return found;
};
