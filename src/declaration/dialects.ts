import type { CacheTtl, Declaration } from "../api/declaration.ts";
import { compactJson, type JsonObject } from "../api/json.ts";
import type { DeclarationFormat } from "./formats.ts";

/** JSON text of a declaration, `whole` and in the two parts between which a mark that depends on the list may stand. */
export interface Fragment {
  readonly whole: string;
  readonly open: string;
  readonly close: string;
}

/** What one request may hold that the provider enforces strictly. */
export interface StrictBudget {
  readonly tools: number;
  readonly optionals: number;
  readonly unions: number;
}

/** How a model finds tools whose declarations it hasn't read. */
export type ToolSearchKind = "bm25" | "regex";

/** How one format writes a list of declarations. Texts are JSON. */
export interface Dialect {
  readonly declare: (declaration: Declaration, schema: JsonObject, strict: boolean) => Fragment;
  /** The list that holds these entries. */
  readonly list: (entries: readonly string[]) => string;
  /** Whether what can be strict is, when nobody says. False where only some of the provider's models know the mark. */
  readonly strictUnasked: boolean;
  readonly budget: StrictBudget;
  /** A cache breakpoint after a declaration: a mark within it, or an entry of its own. Null where there are none. */
  readonly breakpoint: { readonly within: boolean; readonly text: (ttl: CacheTtl) => string } | null;
  /** The mark of a declaration that a model reads only once it searched for it, and the search tool that such a list needs. Null where there is none. */
  readonly deferral: { readonly mark: string; readonly tool: (kind: ToolSearchKind) => JsonObject } | null;
}

const unbounded: StrictBudget = {
  tools: Number.POSITIVE_INFINITY,
  optionals: Number.POSITIVE_INFINITY,
  unions: Number.POSITIVE_INFINITY,
};

const grammarBudget: StrictBudget = { tools: 20, optionals: 24, unions: 16 };

const array = (entries: readonly string[]): string => `[${entries.join(",")}]`;

const plain = { list: array, strictUnasked: true, budget: unbounded, breakpoint: null, deferral: null } as const;

/** The object's text, within `before` and `after`; marks go at its end. */
const fragment = (object: JsonObject, before = "", after = ""): Fragment => {
  const text = compactJson(object);
  return { whole: before + text + after, open: before + text.slice(0, -1), close: `}${after}` };
};

/** Providers refuse an empty description. */
const wordsOf = ({ name, description }: Declaration): JsonObject => (description === "" ? { name } : { name, description });

export const dialects: Readonly<Record<DeclarationFormat, Dialect>> = {
  neutral: {
    ...plain,
    declare: ({ name, description, cache, tool }, parameters) =>
      fragment({
        name,
        description,
        parameters,
        ...(cache === undefined ? {} : { cache }),
        ...(tool === undefined ? {} : { tool }),
      }),
  },
  anthropic: {
    ...plain,
    declare: (declaration, schema, strict) => fragment({ ...wordsOf(declaration), input_schema: schema, ...(strict ? { strict } : {}) }),
    budget: grammarBudget,
    breakpoint: { within: true, text: (ttl) => `,"cache_control":{"type":"ephemeral","ttl":"${ttl}"}` },
    deferral: {
      mark: ',"defer_loading":true',
      tool: (kind) => ({ type: `tool_search_tool_${kind}_20251119`, name: `tool_search_tool_${kind}` }),
    },
  },
  "openai-chat": {
    ...plain,
    declare: (declaration, schema, strict) =>
      fragment({ ...wordsOf(declaration), parameters: schema, strict }, '{"type":"function","function":', "}"),
  },
  "openai-responses": {
    ...plain,
    declare: (declaration, schema, strict) => fragment({ type: "function", ...wordsOf(declaration), parameters: schema, strict }),
    deferral: { mark: ',"defer_loading":true', tool: () => ({ type: "tool_search" }) },
  },
  gemini: {
    ...plain,
    declare: (declaration, schema) =>
      fragment({ ...wordsOf(declaration), ...(hasParameters(schema) ? { parametersJsonSchema: schema } : {}) }),
    list: (entries) => (entries.length === 0 ? "[]" : `[{"functionDeclarations":${array(entries)}}]`),
  },
  bedrock: {
    ...plain,
    declare: (declaration, schema, strict) =>
      fragment({ ...wordsOf(declaration), inputSchema: { json: schema }, ...(strict ? { strict } : {}) }, '{"toolSpec":', "}"),
    strictUnasked: false,
    budget: grammarBudget,
    // Five minutes are what a point lasts by itself, and older models know no other.
    breakpoint: { within: false, text: (ttl) => `{"cachePoint":{"type":"default"${ttl === "1h" ? ',"ttl":"1h"' : ""}}}` },
  },
  mcp: {
    ...plain,
    declare: (declaration, schema) =>
      fragment({
        ...wordsOf(declaration),
        inputSchema: schema,
        ...(declaration.outputSchema === undefined ? {} : { outputSchema: declaration.outputSchema }),
        ...(declaration.annotations === undefined ? {} : { annotations: declaration.annotations }),
      }),
  },
};

/** Gemini wants no schema at all for a function that takes nothing. */
const hasParameters = ({ properties, additionalProperties }: JsonObject): boolean =>
  Object.keys(properties ?? {}).length > 0 || (additionalProperties !== undefined && additionalProperties !== false);
