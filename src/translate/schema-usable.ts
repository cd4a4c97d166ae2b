import { RE2JS } from "re2js";
import { Invalid } from "../api/errors.ts";
import { compactJson, isJsonObject, type JsonObject, type JsonValue, pointerTo } from "../api/json.ts";
import { childrenOf } from "../declaration/subschemas.ts";

/** What a reviewed schema may be at most. Anything that these numbers keep out is no tool's parameters. */
const limits = { length: 256 * 1024, depth: 64, schemas: 10_000, patterns: 200, patternLength: 1000 } as const;

const dialect = "https://json-schema.org/draft/2020-12/schema";

/** Subschemas of these judge the very same value, so that a circle of them would never end. */
const inPlace = new Set(["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"]);

/** Keywords that name or move a base. Without them a reference is a pointer into this one document, which is all that a tool needs. */
const refusedKeywords = ["$id", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"];

/** A name that no reference of ours uses: allowed where it is one, and once. */
const anchorPattern = /^[A-Za-z_][-A-Za-z0-9._]*$/;

interface Subschema {
  readonly pointer: string;
  readonly schema: JsonObject;
  /** Pointers of the schemas that judge the same value, the reference's included. */
  readonly sameValue: string[];
}

/**
 * A pattern as it is matched: RE2 syntax, in time linear in the text, never backtracking. Throws `Invalid` with code `SchemaUnusable` for what that
 * can't express (look-around, back-references) and for patterns that are too long.
 */
export const compilePattern = (pattern: string, at: string): RE2JS => {
  if (pattern.length > limits.patternLength)
    throw unusable(at, `the pattern has ${pattern.length} characters, more than ${limits.patternLength}`);
  try {
    return RE2JS.compile(RE2JS.translateRegExp(pattern));
  } catch (cause) {
    throw unusable(
      at,
      `the pattern ${JSON.stringify(pattern)} can't be matched in linear time (no look-around, no back-references)`,
      cause,
    );
  }
};

/**
 * Whether a schema can judge arguments safely: JSON Schema 2020-12, of bounded size, with references into itself alone and none that runs in a
 * circle, and patterns that are matched in linear time. `compileSchema` asks this first; the schema's form is checked there.
 *
 * Throws `Invalid` with code `SchemaUnusable`; `at` is a JSON pointer into the schema.
 */
export const assertUsableSchema = (schema: JsonObject): void => {
  const depth = depthOf(schema, 0);
  if (depth > limits.depth) throw unusable("", `the schema nests deeper than ${limits.depth}`);
  const length = compactJson(schema).length;
  if (length > limits.length) throw unusable("", `the schema has ${length} characters, more than ${limits.length}`);
  if (schema.$schema !== undefined && schema.$schema !== dialect && schema.$schema !== `${dialect}#`) {
    throw unusable("/$schema", `the schema must be JSON Schema 2020-12 ("${dialect}", or no $schema at all)`);
  }
  const found = collect(schema);
  for (const one of found.values()) followReference(one, found);
  refuseCircles(found);
};

const collect = (root: JsonObject): Map<string, Subschema> => {
  const found = new Map<string, Subschema>();
  const anchors = new Set<JsonValue>();
  let patterns = 0;
  const visit = (schema: JsonValue, pointer: string): void => {
    if (typeof schema === "boolean") return;
    if (!isJsonObject(schema)) throw unusable(pointer, "a schema must be an object or a boolean");
    if (found.size >= limits.schemas) throw unusable(pointer, `there are more than ${limits.schemas} subschemas`);
    const one: Subschema = { pointer, schema, sameValue: [] };
    found.set(pointer, one);
    for (const keyword of refusedKeywords) {
      if (schema[keyword] !== undefined) throw unusable(pointerTo(pointer, keyword), `the keyword ${keyword} is not supported`);
    }
    const { $anchor } = schema;
    if ($anchor !== undefined) {
      const isName = typeof $anchor === "string" && anchorPattern.test($anchor) && !anchors.has($anchor);
      if (!isName) throw unusable(pointerTo(pointer, "$anchor"), "an anchor is a name, and names one schema");
      anchors.add($anchor);
    }
    for (const pattern of patternsOf(schema)) {
      if (++patterns > limits.patterns) throw unusable(pointer, `there are more than ${limits.patterns} patterns`);
      compilePattern(pattern, pointer);
    }
    for (const child of childrenOf(schema)) {
      const at = child.steps.reduce<string>(pointerTo, pointer);
      if (child.steps.includes("__proto__")) throw unusable(at, 'the key "__proto__" is not supported');
      if (inPlace.has(child.keyword)) one.sameValue.push(at);
      visit(child.schema, at);
    }
  };
  visit(root, "");
  return found;
};

const patternsOf = (schema: JsonObject): string[] => [
  ...(typeof schema.pattern === "string" ? [schema.pattern] : []),
  ...(isJsonObject(schema.patternProperties) ? Object.keys(schema.patternProperties) : []),
];

const followReference = (one: Subschema, found: ReadonlyMap<string, Subschema>): void => {
  const reference = one.schema.$ref;
  if (reference === undefined) return;
  const at = pointerTo(one.pointer, "$ref");
  if (typeof reference !== "string" || !/^#(?:\/|$)/.test(reference)) {
    throw unusable(at, 'a reference must be "#" or a pointer into this schema such as "#/$defs/name"; nothing is fetched');
  }
  const target = pointerIn(reference, at);
  if (!found.has(target)) throw unusable(at, `there is no schema at ${JSON.stringify(reference)}`);
  one.sameValue.push(target);
};

const pointerIn = (reference: string, at: string): string => {
  try {
    return decodeURIComponent(reference.slice(1));
  } catch (cause) {
    throw unusable(at, `the reference ${JSON.stringify(reference)} is not percent-encoded properly`, cause);
  }
};

/** Depth-first, without recursion: a chain of references can be as long as the schema. */
const refuseCircles = (found: ReadonlyMap<string, Subschema>): void => {
  const finished = new Set<string>();
  for (const start of found.keys()) {
    const open = new Set<string>();
    const stack: { readonly pointer: string; next: number }[] = [{ pointer: start, next: 0 }];
    open.add(start);
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const next = finished.has(top.pointer) ? undefined : found.get(top.pointer)?.sameValue[top.next++];
      if (next === undefined) {
        finished.add(top.pointer);
        open.delete(top.pointer);
        stack.pop();
      } else if (open.has(next)) {
        throw unusable(next, "the schema refers to itself without looking at a smaller part of the value");
      } else {
        open.add(next);
        stack.push({ pointer: next, next: 0 });
      }
    }
  }
};

const depthOf = (value: JsonValue, above: number): number => {
  if (typeof value !== "object" || value === null || above > limits.depth) return above;
  let deepest = above + 1;
  for (const child of Object.values(value) as JsonValue[]) deepest = Math.max(deepest, depthOf(child, above + 1));
  return deepest;
};

export const unusable = (at: string, message: string, cause?: unknown): Invalid =>
  new Invalid("SchemaUnusable", `${at || "the schema"}: ${message}`, at, cause === undefined ? undefined : { cause });
