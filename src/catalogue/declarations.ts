import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { LRUCache } from "lru-cache";
import { sha256Of } from "../api/digest.ts";
import type { StrictBudget } from "../declaration/dialects.ts";
import { type DeclarationFormat, declarationFormats, isDeclarationFormat } from "../declaration/formats.ts";
import {
  assembleDeclarations,
  assembleOne,
  type LeftOut,
  type PreparedDeclaration,
  prepareDeclaration,
  type RenderOptions,
} from "../declaration/render.ts";
import { HttpError, shown } from "./http.ts";
import { mcpDeclaration } from "./mcp/mcp-declaration.ts";
import type { Offer, Offers } from "./offers.ts";
import { withSearchListed } from "./search-tool.ts";

/** What a declaration list may be asked for with, in the query's own words. */
export const declarationParameters = [
  "format",
  "cache",
  "strict",
  "reserve",
  "defer",
  "namespace",
  "search",
  "names",
  "limit",
  "cursor",
  "watch",
] as const;
export type DeclarationQuery = { readonly [Name in (typeof declarationParameters)[number]]?: string };

/** One answer to `GET /v1/declarations`, ready to send. */
export interface RenderedList {
  readonly body: Buffer;
  /** Strong, over the bytes: `"sha256…"`. */
  readonly etag: string;
  /** What the provider would reject, as a header's value; the empty string for nothing. */
  readonly leftOut: string;
  /** Where the next page starts, null on the last. */
  readonly nextCursor: string | null;
  /** The body compressed, made when it is first asked for. */
  readonly compressed: () => Promise<Buffer>;
}

const renderedBytes = 64 * 1024 * 1024;
const preparedCharacters = 32 * 1024 * 1024;
const compress = promisify(gzip);

/** Renders a snapshot's declarations once for each way of asking, and each declaration once for all callers. */
export class DeclarationLists {
  readonly #kept = new LRUCache<string, RenderedList>({
    maxSize: renderedBytes,
    // Twice, for what is compressed beside it; and something for those of a few bytes.
    sizeCalculation: (list) => 1024 + 2 * list.body.length,
  });
  readonly #prepared = new LRUCache<string, PreparedDeclaration>({
    maxSize: preparedCharacters,
    sizeCalculation: ({ loose, strict }) => 256 + loose.open.length + (strict?.open.length ?? 0),
  });
  readonly #numbers = new WeakMap<Offer, number>();
  #offers = 0;

  /** Throws `HttpError` 400 `QueryInvalid`. */
  list(offers: Offers, query: DeclarationQuery): RenderedList {
    const asked = askedOf(query);
    const key = JSON.stringify([offers.snapshot, asked]);
    const kept = this.#kept.get(key);
    if (kept) return kept;
    const chosen = chosenFrom(offers, asked);
    const { page, nextCursor } = pageOf(chosen, asked);
    const { format, cache, strict, reserve, defer } = asked;
    // All of the list, whatever the page: pages together must be what the whole list is.
    const rendered = assembleDeclarations(
      format,
      chosen.map((offer) => this.#prepare(format, offer)),
      { ...(cache && { cache }), ...(strict !== undefined && { strict }), ...(reserve && { reserve }), ...(defer && { defer }), page },
    );
    const body = Buffer.from(rendered.body, "utf8");
    let compressed: Promise<Buffer> | undefined;
    const made: RenderedList = {
      body,
      etag: `"${sha256Of(body).slice("sha256:".length)}"`,
      leftOut: leftOutHeader(rendered.leftOut),
      nextCursor,
      compressed: () => {
        compressed ??= compress(body);
        return compressed;
      },
    };
    this.#kept.set(key, made);
    return made;
  }

  /** One declaration by itself as JSON text, null where the provider would reject it. */
  one(offer: Offer, format: DeclarationFormat): string | null {
    return assembleOne(this.#prepare(format, offer));
  }

  #prepare(format: DeclarationFormat, offer: Offer): PreparedDeclaration {
    let number = this.#numbers.get(offer);
    if (number === undefined) {
      number = ++this.#offers;
      this.#numbers.set(offer, number);
    }
    const key = `${format} ${number}`;
    const known = this.#prepared.get(key);
    if (known) return known;
    const prepared = prepareDeclaration(format, format === "mcp" ? mcpDeclaration(offer) : offer.declaration);
    this.#prepared.set(key, prepared);
    return prepared;
  }
}

interface Asked extends RenderOptions {
  readonly format: DeclarationFormat;
  readonly namespace?: string;
  /** With the search as a tool; `only` means that and what `names` says. */
  readonly search?: "true" | "only";
  /** Only these, in the order of lists. */
  readonly names?: readonly string[];
  readonly limit?: number;
  /** Name of the last declaration of the page before. */
  readonly after?: string;
}

export const formatOf = (text = "neutral"): DeclarationFormat => {
  if (isDeclarationFormat(text)) return text;
  throw invalid("format", text, declarationFormats.join(", "));
};

const askedOf = ({ format, cache, strict, reserve, defer, namespace, search, names, limit, cursor }: DeclarationQuery): Asked => ({
  format: formatOf(format),
  ...(cache !== undefined && { cache: cacheOf(cache) }),
  ...(strict !== undefined && { strict: booleanOf("strict", strict) }),
  ...(reserve !== undefined && { reserve: reserveOf(reserve) }),
  ...(defer !== undefined && deferOf(defer)),
  ...(namespace !== undefined && { namespace }),
  ...(search !== undefined && { search: searchOf(search) }),
  ...(names !== undefined && { names: namesIn(names) }),
  ...(limit !== undefined && { limit: countOf("limit", limit, 10_000) }),
  ...(cursor !== undefined && cursor !== "" && { after: nameIn(cursor) }),
});

const cacheOf = (text: string): "off" | "5m" | "1h" => {
  if (text === "off" || text === "5m" || text === "1h") return text;
  throw invalid("cache", text, "off, 5m, 1h");
};

/** Beyond so many declarations models choose worse. */
const readUnasked = 30;

/** `off`, `on`, or how many are read: `30`; with `,regex` for the search that takes patterns. */
const deferOf = (text: string): Pick<RenderOptions, "defer"> => {
  if (text === "off") return {};
  const [, after, search = "bm25"] = /^(on|[1-9][0-9]{0,4})(?:,(bm25|regex))?$/.exec(text) ?? [];
  if (after === undefined)
    throw invalid("defer", text, "off, on, how many declarations are read such as 30; and a search, such as 30,regex");
  return { defer: { after: after === "on" ? readUnasked : Number(after), search: search === "regex" ? "regex" : "bm25" } };
};

/** Throws `HttpError` 400 `QueryInvalid`. */
export const searchOf = (text: string): "true" | "only" => {
  if (text === "true" || text === "only") return text;
  throw invalid("search", text, "true, only");
};

const mostNames = 128;

/** Sorted and each once, so that what means the same is rendered once. */
const namesIn = (text: string): readonly string[] => {
  const names = [...new Set(text.split(",").filter((name) => name !== ""))].sort();
  if (names.length > mostNames) throw new HttpError(400, "QueryInvalid", `there are more than ${mostNames} names`);
  return names;
};

const booleanOf = (name: string, text: string): boolean => {
  if (text === "true" || text === "false") return text === "true";
  throw invalid(name, text, "true, false");
};

/** `tools,optionals,unions`, such as `3,10,0`. */
const reserveOf = (text: string): StrictBudget => {
  const [, tools, optionals, unions] = /^([0-9]{1,3}),([0-9]{1,3}),([0-9]{1,3})$/.exec(text) ?? [];
  if (unions === undefined) throw invalid("reserve", text, "tools,optionals,unions as three numbers, such as 3,10,0");
  return { tools: Number(tools), optionals: Number(optionals), unions: Number(unions) };
};

/** A count in a query, from 1 to `most`. Throws `HttpError` 400 `QueryInvalid`. */
export const countOf = (name: string, text: string, most: number): number => {
  const count = /^[1-9][0-9]{0,5}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > most) throw invalid(name, text, `a whole number from 1 to ${most}`);
  return count;
};

const invalid = (name: string, text: string, known: string): HttpError =>
  new HttpError(400, "QueryInvalid", `'${shown(text)}' is not what the query parameter '${name}' takes: ${known}`);

const cursorPrefix = "after:";

const nameIn = (cursor: string): string => {
  const text = Buffer.from(cursor.slice(0, 1024), "base64url").toString("utf8");
  if (!text.startsWith(cursorPrefix)) throw new HttpError(400, "QueryInvalid", "the cursor is none that this catalogue gave out");
  return text.slice(cursorPrefix.length);
};

/** In the order of names. */
const chosenFrom = ({ list, byName }: Offers, { namespace, search, names }: Asked): readonly Offer[] => {
  const named = names?.flatMap((name) => byName.get(name) ?? []) ?? (search === "only" ? [] : list);
  const chosen = namespace === undefined ? named : named.filter((offer) => offer.grant.namespace === namespace);
  return search === undefined ? chosen : withSearchListed(chosen, { byName });
};

/** A page starts after the name that ended the one before, so that a list which changes in between neither repeats nor skips what stayed. */
const pageOf = (list: readonly Offer[], { limit, after }: Asked): { page: { start: number; end: number }; nextCursor: string | null } => {
  const first = after === undefined ? 0 : list.findIndex((offer) => offer.declaration.name > after);
  const start = first < 0 ? list.length : first;
  const end = limit === undefined ? list.length : Math.min(list.length, start + limit);
  const last = end < list.length ? list[end - 1] : undefined;
  const nextCursor = last === undefined ? null : Buffer.from(cursorPrefix + last.declaration.name, "utf8").toString("base64url");
  return { page: { start, end }, nextCursor };
};

/** A header must stay small, however many tools a provider rejects. */
const leftOutShown = 20;

/** An RFC 8941 list: `"name";rule="…";where="/…", "other";…`; more than are shown are counted. */
const leftOutHeader = (leftOut: readonly LeftOut[]): string => {
  const items = leftOut
    .slice(0, leftOutShown)
    .map(({ name, rule, where }) => `${quoted(name)};rule=${quoted(rule)};where=${quoted(where)}`);
  if (leftOut.length > leftOutShown) items.push(`"";more=${leftOut.length - leftOutShown}`);
  return items.join(", ");
};

const quoted = (text: string): string =>
  `"${text
    .slice(0, 120)
    .replace(/[^\x20-\x7e]/g, "?")
    .replace(/["\\]/g, "\\$&")}"`;
