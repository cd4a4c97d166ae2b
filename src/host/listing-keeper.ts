import type { DefinitionDigest } from "../api/definition.ts";
import { type Sha256Digest, sha256Of } from "../api/digest.ts";
import { AmbitError, Invalid, Refused, Transient, Waiting } from "../api/errors.ts";
import { compactJson } from "../api/json.ts";
import type { ToolListing } from "../api/untyped.ts";
import { definitionDigest } from "../grants/definition.ts";
import { type ListedDefinition, type ListedServer, listingText, toolListing } from "../grants/listing.ts";
import type { LiftedPage } from "./untyped-calls.ts";
import type { PoolReply } from "./worker-pool.ts";

/** What a whole list may be: no honest server comes near, and a hostile one ends here. */
const most = { pages: 200, bytes: 8 * 1024 * 1024, ms: 60_000, cursorLength: 4096 } as const;

/** When a list is asked for again by itself: after what the component says, within these. */
const refreshMs = { least: 10_000, usual: 60_000, most: 300_000 } as const;

/** After a list that could not be had: this, twice that, and so on. */
const retryMs = { first: 1000, last: 60_000 } as const;

/** Not more often than this, whatever makes it seem to have changed. */
const restMs = 1000;

/** How long a call waits for the first listing: a host takes calls before it, and after a rollout there may be no other. */
const firstMs = 5_000;

/** A listing that could not be renewed for so long is not called by any more. */
const outdatedMs = 15 * 60_000;

export interface ListingDeps {
  /** Runs `list-tools` in an instance. */
  readonly list: (cursor: string | null) => Promise<PoolReply>;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
}

/** A listed tool as it is called; its schema is JSON. */
export interface CallableTool {
  readonly definition: DefinitionDigest;
  readonly inputSchema: string;
}

interface Kept {
  readonly text: string;
  readonly digest: Sha256Digest;
  readonly tools: ReadonlyMap<string, CallableTool>;
}

/**
 * The last complete list of a component's tools, asked for again when it may have changed and from time to time. A list counts once all of its pages came, within
 * bounds; until then, and where it fails, the one before stays, and is called by until it is too old.
 */
export class ListingKeeper {
  readonly #deps: ListingDeps;
  readonly #waiting = new Set<() => void>();
  #kept: Kept | undefined;
  #completedAt = 0;
  #fault: { readonly code: string; readonly message: string } | null = null;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #isListing = false;
  #isWantedAgain = false;
  #isClosed = false;

  constructor(deps: ListingDeps) {
    this.#deps = deps;
  }

  /** Lists now, or as soon as the list under way is done; then by itself. */
  refresh(): void {
    if (this.#isListing) this.#isWantedAgain = true;
    else this.#refreshIn(this.#kept === undefined ? 0 : Math.max(0, this.#completedAt + restMs - this.#deps.now()));
  }

  /** Waits for the first listing, or for why there is none; not for long. */
  async begun(): Promise<void> {
    if (this.#kept === undefined && this.#fault === null && !this.#isClosed) await this.#change(firstMs);
  }

  /**
   * The tool as it may be called by whoever approved this definition. Throws `Refused` (`ToolGone`, `DefinitionChanged`) and `Waiting` (`NotListed`, `ListingOutdated`):
   * nothing ran.
   */
  callable(name: string, definition: string): CallableTool {
    const kept = this.#kept;
    if (kept === undefined) throw new Waiting("NotListed", `the component has not listed its tools yet${this.#why}`, retryMs.first);
    if (this.#deps.now() - this.#completedAt > outdatedMs) {
      throw new Waiting(
        "ListingOutdated",
        `the component's tools were not listed for ${outdatedMs / 60_000} minutes${this.#why}`,
        retryMs.first,
      );
    }
    const tool = kept.tools.get(name);
    if (tool === undefined) throw new Refused("ToolGone", "the component does not list this tool now");
    if (tool.definition !== definition) throw new Refused("DefinitionChanged", "the tool is not defined as the ticket says");
    return tool;
  }

  /** As `ListingAnswer`, in JSON. Waits at most `waitMs` for another listing than the one that is known. */
  async answer(known: Sha256Digest | null, waitMs: number): Promise<string> {
    if ((this.#kept?.digest ?? null) === known && !this.#isClosed) await this.#change(waitMs);
    const { digest = null, text } = this.#kept ?? {};
    const listing = digest === known || text === undefined ? "null" : text;
    return `{"digest":${JSON.stringify(digest)},"fault":${compactJson(this.#fault)},"listing":${listing}}`;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#tell();
  }

  get #why(): string {
    return this.#fault === null ? "" : `: ${this.#fault.message}`;
  }

  #change(waitMs: number): Promise<void> {
    return new Promise((done) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        done();
      };
      const timer = setTimeout(end, waitMs);
      this.#waiting.add(end);
    });
  }

  #tell(): void {
    for (const end of this.#waiting) end();
  }

  #refreshIn(ms: number): void {
    const dueAt = this.#deps.now() + ms;
    if (this.#isClosed || (this.#timer !== undefined && this.#dueAt <= dueAt)) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(() => void this.#refreshNow(), ms);
    this.#timer.unref();
  }

  async #refreshNow(): Promise<void> {
    this.#timer = undefined;
    this.#isListing = true;
    this.#isWantedAgain = false;
    let nextMs: number;
    try {
      const { listing, ttlMs } = await this.#complete();
      this.#take(listing);
      nextMs = Math.min(Math.max(ttlMs ?? refreshMs.usual, refreshMs.least), refreshMs.most);
    } catch (thrown) {
      if (!(thrown instanceof AmbitError)) throw thrown;
      this.#fault = { code: thrown.code, message: thrown.message };
      nextMs = Math.min(retryMs.first * 2 ** this.#failures++, retryMs.last);
      // Whoever waits for a first listing is told why there is none.
      if (this.#kept === undefined) this.#tell();
    }
    this.#isListing = false;
    this.#refreshIn(this.#isWantedAgain ? restMs : nextMs);
  }

  #take(listing: ToolListing): void {
    this.#failures = 0;
    this.#fault = null;
    this.#completedAt = this.#deps.now();
    const text = listingText(listing);
    const digest = sha256Of(text);
    if (digest === this.#kept?.digest) return;
    this.#kept = { text, digest, tools: new Map(listing.tools.map((tool) => [tool.name, callableOf(tool)])) };
    this.#tell();
  }

  /** Throws `Transient` (`ListingFailed`) and `Invalid` (`ListingTooLarge`, `ListingEndless`). */
  async #complete(): Promise<{ listing: ToolListing; ttlMs: number | undefined }> {
    const started = this.#deps.now();
    const cursors = new Set<string>();
    const tools: ListedDefinition[] = [];
    let said: (ListedServer & Pick<LiftedPage, "ttlMs">) | undefined;
    let bytes = 0;
    for (let cursor: string | null = null; ; ) {
      const page: LiftedPage = pageOf((await this.#deps.list(cursor)).reply);
      const { server, instructions, ttlMs } = page;
      said ??= { server, instructions, ttlMs };
      bytes += sizeOf(page);
      if (bytes > most.bytes) throw new Invalid("ListingTooLarge", `the list of tools has more than ${most.bytes} bytes`);
      tools.push(...page.tools);
      cursor = page.nextCursor ?? null;
      if (cursor === null) return { listing: toolListing(said, tools), ttlMs: said.ttlMs };
      if (cursor.length > most.cursorLength || cursors.has(cursor))
        throw new Invalid("ListingEndless", "the list of tools comes back to where it was");
      cursors.add(cursor);
      if (cursors.size >= most.pages) throw new Invalid("ListingTooLarge", `the list of tools has more than ${most.pages} pages`);
      if (this.#deps.now() - started > most.ms)
        throw new Transient("ListingFailed", `the list of tools was not complete within ${most.ms / 1000} s`);
    }
  }
}

const callableOf = (tool: ToolListing["tools"][number]): CallableTool => ({
  definition: definitionDigest(tool),
  inputSchema: compactJson(tool.inputSchema),
});

const pageOf = (reply: PoolReply["reply"]): LiftedPage => {
  switch (reply.kind) {
    case "page":
      return reply.page;
    case "unlisted":
      throw new Transient("ListingFailed", `the component could not list its tools: ${reply.why}`);
    case "failed":
      if (reply.code === "ResultTooLarge") throw new Invalid("ListingTooLarge", "one page of its tools takes more than may be taken");
      throw new Transient("ListingFailed", `listing the component's tools failed: ${reply.text}`);
    default:
      throw new Transient("ListingFailed", "listing the component's tools failed");
  }
};

const sizeOf = ({ server, instructions, tools }: LiftedPage): number =>
  [server, instructions, ...tools.flatMap((tool) => Object.values(tool) as (string | undefined)[])].reduce(
    (sum, text) => sum + (text === undefined ? 0 : Buffer.byteLength(text)),
    0,
  );
