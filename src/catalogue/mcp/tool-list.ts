import { LRUCache } from "lru-cache";
import { sha256Of } from "../../api/digest.ts";
import { assembleOne, prepareDeclaration } from "../../declaration/render.ts";
import type { Offer, Offers } from "../offers.ts";
import { withSearchListed } from "../search-tool.ts";
import { mcpDeclaration } from "./mcp-declaration.ts";
import { RpcError, rpcCodes } from "./messages.ts";

/** One page of tools: JSON text of the members `tools` and, but on the last page, `nextCursor`. */
export interface ToolPage {
  readonly members: string;
}

/** All that a caller is offered, that and the search as a tool (`true`), or the search alone: for more tools than a model should read. */
export type Listing = "all" | "true" | "only";

export interface PageLimits {
  /** Tools on a page: many, since there are clients that read only the first. */
  readonly tools: number;
  /** Characters of their JSON text; a page has one tool at least. */
  readonly characters: number;
}

export const defaultPageLimits: PageLimits = { tools: 1000, characters: 4 * 1024 * 1024 };

const keptCharacters = 32 * 1024 * 1024;

/**
 * What `tools/list` answers, made once for each state of a caller's offers. In the order of names; a page begins after the name that ended the one before, so what
 * is added or withdrawn in between moves nothing else.
 */
export class ToolLists {
  readonly #limits: PageLimits;
  readonly #pages = new LRUCache<string, ToolPage>({ maxSize: keptCharacters, sizeCalculation: ({ members }) => 256 + members.length });
  readonly #entries = new LRUCache<Offer, string>({ maxSize: keptCharacters, sizeCalculation: (entry) => 256 + entry.length });
  readonly #prints = new LRUCache<number, string>({ max: 10_000 });

  constructor(limits: PageLimits = defaultPageLimits) {
    this.#limits = limits;
  }

  /** Throws `RpcError` -32602 for a cursor that is none of ours. The empty one begins at the beginning. */
  page(offers: Offers, cursor: string | undefined, listing: Listing = "all"): ToolPage {
    const after = cursor === undefined || cursor === "" ? null : nameIn(cursor);
    const key = JSON.stringify([offers.snapshot, after, listing]);
    const kept = this.#pages.get(key);
    if (kept !== undefined) return kept;
    const page = this.#make(listedOf(offers, listing), after);
    this.#pages.set(key, page);
    return page;
  }

  /** Differs when the list does, whatever its pages. */
  print(offers: Offers): string {
    const known = this.#prints.get(offers.snapshot);
    if (known !== undefined) return known;
    const print = sha256Of(offers.list.map((offer) => this.#entry(offer)).join());
    this.#prints.set(offers.snapshot, print);
    return print;
  }

  #make(list: readonly Offer[], after: string | null): ToolPage {
    const entries: string[] = [];
    let characters = 0;
    let last: string | null = null;
    for (let index = after === null ? 0 : firstAfter(list, after); index < list.length; index++) {
      const offer = list[index];
      const entry = offer && this.#entry(offer);
      if (!entry) continue;
      const isFull = entries.length >= this.#limits.tools || characters + entry.length > this.#limits.characters;
      if (isFull && last !== null) return { members: `"tools":[${entries.join(",")}],"nextCursor":${JSON.stringify(cursorAfter(last))}` };
      characters += entry.length;
      entries.push(entry);
      last = offer.declaration.name;
    }
    return { members: `"tools":[${entries.join(",")}]` };
  }

  /** Empty for a tool that MCP has no form for. */
  #entry(offer: Offer): string {
    const known = this.#entries.get(offer);
    if (known !== undefined) return known;
    const entry = assembleOne(prepareDeclaration("mcp", mcpDeclaration(offer))) ?? "";
    this.#entries.set(offer, entry);
    return entry;
  }
}

const listedOf = (offers: Offers, listing: Listing): readonly Offer[] =>
  listing === "all" ? offers.list : withSearchListed(listing === "only" ? [] : offers.list, offers);

/** The index of the first offer whose name comes after `name`; the list is in that order. */
const firstAfter = (list: readonly Offer[], name: string): number => {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const here = list[middle];
    if (here !== undefined && here.declaration.name <= name) low = middle + 1;
    else high = middle;
  }
  return low;
};

const cursorPrefix = "after:";
const longestCursor = 1024;

const cursorAfter = (name: string): string => Buffer.from(cursorPrefix + name, "utf8").toString("base64url");

const nameIn = (cursor: string): string => {
  const text = cursor.length > longestCursor ? "" : Buffer.from(cursor, "base64url").toString("utf8");
  if (!text.startsWith(cursorPrefix))
    throw new RpcError(rpcCodes.invalidParams, "Invalid params: the cursor is none that this catalogue gave out");
  return text.slice(cursorPrefix.length);
};
