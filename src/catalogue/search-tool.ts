import { sha256Of } from "../api/digest.ts";
import type { ToolGrantSpec } from "../api/generated/toolgrant.ts";
import { canonicalJson, compactJson, isJsonObject, type JsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { WitFunction } from "../api/wit.ts";
import { declarationOf } from "../declaration/declaration.ts";
import type { DeclarationFormat } from "../declaration/formats.ts";
import { definitionDigest } from "../grants/definition.ts";
import type { DeclarationLists } from "./declarations.ts";
import type { Offer, Offers, OwnAnswer } from "./offers.ts";
import type { ToolSearch } from "./search.ts";

/** The name under which a model finds the search. A grant of this name is what is called instead. */
export const searchToolName = "search_tools";

const defaultTools = 5;
const mostTools = 20;

const fn: WitFunction = {
  interface: "ambit:catalogue/discovery@0.1.0",
  name: "search-tools",
  form: "function",
  async: false,
  docs: "Finds tools that are not declared yet. Says what fits best, each with its full declaration; call a tool by the name that its declaration has.",
  params: [
    { name: "query", type: { kind: "string" } },
    { name: "limit", type: { kind: "option", some: { kind: "u32" } } },
  ],
  result: null,
};

const parameters: JsonObject = {
  type: "object",
  properties: {
    query: { type: "string", description: "What the tool should do, in a few words: verbs, kinds of things, names.", maxLength: 500 },
    limit: { type: "integer", description: `Tools to give at most; ${defaultTools} unless given.`, minimum: 1, maximum: mostTools },
  },
  required: ["query"],
  additionalProperties: false,
};

const spec: ToolGrantSpec = {
  tool: { workload: "catalogue", component: "catalogue", interface: fn.interface ?? "", function: fn.name },
  declaration: { ...declarationOf(fn, searchToolName), parameters },
  mutates: false,
  // A question goes no further than this process.
  egressCeiling: "Secret",
};

/** The search as a tool, for lists. No namespace has a dot, so its id is that of no grant. */
export const searchToolOffer: Offer = {
  id: `ambit.dev/${searchToolName}`,
  declaration: { ...spec.declaration, tool: `ambit.dev/${searchToolName}` },
  grant: {
    namespace: "ambit.dev",
    name: searchToolName,
    spec,
    grant: sha256Of(canonicalJson(parameters)),
    definition: definitionDigest(fn),
    components: [],
    fn,
  },
};

/** A list, in the order of names, with the search in its place. Who has a grant of the search's name has that tool, and no search. */
export const withSearchListed = (list: readonly Offer[], { byName }: Pick<Offers, "byName">): readonly Offer[] => {
  if (byName.has(searchToolName)) return list;
  const place = list.findIndex((offer) => offer.declaration.name > searchToolName);
  return place < 0 ? [...list, searchToolOffer] : list.toSpliced(place, 0, searchToolOffer);
};

/** What a caller may call by `name`: its offers, or, for the search, that tool over exactly these offers. */
export const withSearchTool = (
  offers: Offers,
  { name, format }: { readonly name: string; readonly format: DeclarationFormat },
  { search, lists }: { readonly search: ToolSearch; readonly lists: DeclarationLists },
): Offers => {
  if (name !== searchToolName || offers.byName.has(name)) return offers;
  const answer = (bytes: Uint8Array): OwnAnswer => {
    const { query, limit } = questionIn(bytes);
    const found: string[] = [];
    const declarations: string[] = [];
    for (const { offer } of search.search(offers, query, limit)) {
      const declaration = lists.one(offer, format);
      if (declaration === null) continue;
      found.push(offer.declaration.name);
      declarations.push(declaration);
    }
    const text = `{"tools":[${declarations.join(",")}]}`;
    return { text, structured: parseJson(text, { maxLength: text.length, maxDepth: 130 }), found };
  };
  return { ...offers, byName: new Map([[name, { ...searchToolOffer, answer }]]) };
};

/** From arguments that were judged to fit the tool's schema. */
const questionIn = (bytes: Uint8Array): { readonly query: string; readonly limit: number } => {
  const args: JsonValue = parseJson(Buffer.from(bytes).toString("utf8"));
  const { query, limit = defaultTools } = isJsonObject(args) ? args : {};
  return { query: typeof query === "string" ? query : compactJson(args), limit: Number(limit) };
};
