import { setTimeout as wait } from "node:timers/promises";
import type { CacheTtl } from "../api/declaration.ts";
import { CatalogueError } from "./catalogue-error.ts";
import { Conversation, type ConversationOptions } from "./conversation.ts";
import { type ConnectionOptions, delayOf, Requests } from "./requests.ts";
import { serverEvents } from "./server-events.ts";
import type { CallReport, CallResult, OneDeclaration, SearchHit, ToolFormat, ToolShapes, TurnAnswers, TurnFormat } from "./shapes.ts";

export { CatalogueError } from "./catalogue-error.ts";
export type { Conversation, ConversationOptions } from "./conversation.ts";
export type { ConnectionOptions } from "./requests.ts";
export type * from "./shapes.ts";

/** What a list may be asked for with; docs/catalogue.md says what each means. */
export interface DeclarationOptions {
  readonly cache?: "off" | CacheTtl;
  readonly strict?: boolean;
  /** Strict tools, optional parameters and unions that the agent's own tools need. */
  readonly reserve?: readonly [tools: number, optionals: number, unions: number];
  readonly namespace?: string;
  /** Leaves all but the first so many, or 30, to be found by the provider's own search, where it has one. */
  readonly defer?: boolean | number;
  /** True adds the catalogue's search as a tool; `only` gives nothing but that and `names`. */
  readonly search?: boolean | "only";
  /** Only tools of these names, 128 at most. */
  readonly names?: readonly string[];
}

export interface DeclarationList<Format extends ToolFormat> {
  /** For the provider's `tools`. Yours to change. */
  readonly tools: ToolShapes[Format][];
  /** Alike exactly as long as the bytes are. */
  readonly etag: string;
  /** What this provider would reject, with rule and place (an RFC 8941 list); null for nothing. */
  readonly leftOut: string | null;
}

export interface CallRequest {
  readonly name: string;
  readonly arguments?: object;
  /** What is known of the arguments, by JSON pointer. */
  readonly labels?: object;
  readonly session?: string;
}

/** A request in progress ends with the signal's reason once it aborts. Whether an aborted call took effect is not known. */
export interface RequestOptions {
  readonly signal?: AbortSignal;
}

/** Lists that are kept to be asked for by their ETag. */
const listsKept = 32;

/** The catalogue says something every 15 s; after this long it is taken for gone. */
const silenceMs = 45_000;

/**
 * A catalogue, for an agent. Every method throws `CatalogueError` where the catalogue gives no answer or finds the request itself wrong.
 *
 *   const ambit = new AmbitClient({ url: "http://127.0.0.1:7780", token: "triage-token" });
 *   const { tools } = await ambit.declarations("anthropic");
 *   messages.push(await ambit.answer("anthropic", turn.content));
 */
export class AmbitClient {
  readonly #requests: Requests;
  readonly #lists = new Map<string, { readonly etag: string; readonly leftOut: string | null; readonly text: string }>();

  constructor(options: ConnectionOptions) {
    this.#requests = new Requests(options);
  }

  /** All tools that may be called now, as the provider takes them. What did not change since it was asked for last does not travel again. */
  async declarations<Format extends ToolFormat>(
    format: Format,
    options: DeclarationOptions = {},
    { signal }: RequestOptions = {},
  ): Promise<DeclarationList<Format>> {
    const path = listPath(format, options);
    const known = this.#lists.get(path);
    const response = await this.#requests.send({ path, signal, ...(known && { headers: { "if-none-match": known.etag } }) });
    const kept =
      response.status === 304 && known
        ? known
        : { etag: response.headers.get("etag") ?? "", leftOut: response.headers.get("ambit-left-out"), text: await response.text() };
    this.#lists.delete(path);
    this.#lists.set(path, kept);
    const [oldest] = this.#lists.keys();
    if (this.#lists.size > listsKept && oldest !== undefined) this.#lists.delete(oldest);
    return { tools: JSON.parse(kept.text) as ToolShapes[Format][], etag: kept.etag, leftOut: kept.leftOut };
  }

  /** One declaration; null where no tool of that name is offered or the provider would reject it. */
  async declaration<Format extends ToolFormat>(
    format: Format,
    name: string,
    { signal }: RequestOptions = {},
  ): Promise<OneDeclaration<Format> | null> {
    try {
      const response = await this.#requests.send({ path: `/v1/declarations/${encodeURIComponent(name)}?format=${format}`, signal });
      return (await response.json()) as OneDeclaration<Format>;
    } catch (thrown) {
      if (thrown instanceof CatalogueError && thrown.status === 404) return null;
      throw thrown;
    }
  }

  /** The tools that fit a question best, best first: 10 at most unless `limit` says otherwise. */
  async search<Format extends ToolFormat>(
    format: Format,
    question: string,
    { limit, signal }: RequestOptions & { readonly limit?: number } = {},
  ): Promise<SearchHit<Format>[]> {
    const query = new URLSearchParams({ q: question, format, ...(limit !== undefined && { limit: String(limit) }) });
    const response = await this.#requests.send({ path: `/v1/search?${query}`, signal });
    return ((await response.json()) as { hits: SearchHit<Format>[] }).hits;
  }

  /** Makes one call. What became of it, a refusal included, is the result and no error. */
  async call(request: CallRequest, { signal }: RequestOptions = {}): Promise<CallResult> {
    const response = await this.#requests.send({ path: "/v1/calls", body: JSON.stringify(request), signal });
    return (await response.json()) as CallResult;
  }

  /**
   * Answers a model's turn: takes what the model returned as it is (its content, its `tool_calls`, its output items) and gives what to append to the
   * conversation, with one result for each call.
   */
  async answer<Format extends TurnFormat>(format: Format, turn: unknown, options: RequestOptions = {}): Promise<TurnAnswers[Format]> {
    return (await this.turn(format, { turn }, options)).answer;
  }

  /**
   * Answers a model's turn like `answer`, and says what became of each call. `labels` says what is known of the arguments of each, in order; a
   * `session` is written down with the calls.
   */
  async turn<Format extends TurnFormat>(
    format: Format,
    request: { readonly turn: unknown; readonly labels?: readonly (object | null)[]; readonly session?: string },
    { signal }: RequestOptions = {},
  ): Promise<{ readonly answer: TurnAnswers[Format]; readonly calls: readonly CallReport[] }> {
    const body = JSON.stringify(request, withoutBytes);
    const response = await this.#requests.send({ path: `/v1/calls?format=${format}`, body, signal });
    return JSON.parse(await response.text(), format === "bedrock" ? withBytes : undefined);
  }

  /** A conversation with a model that may find tools as it goes. */
  conversation<Format extends TurnFormat>(format: Format, options: ConversationOptions = {}): Conversation<Format> {
    return new Conversation(this, format, options);
  }

  /**
   * The list's ETag, at once and after each change, until the signal aborts. A connection that breaks is made again; a token that is no longer valid ends it
   * with `CatalogueError`.
   */
  async *watch(format: ToolFormat, options: DeclarationOptions, signal: AbortSignal): AsyncGenerator<string> {
    const path = `${listPath(format, options)}&watch`;
    let told: string | undefined;
    for (let failures = 0; !signal.aborted; failures++) {
      const silence = new AbortController();
      const alarm = setTimeout(() => silence.abort(), silenceMs);
      try {
        const response = await this.#requests.send({ path, signal: AbortSignal.any([signal, silence.signal]) });
        for await (const { event, data } of serverEvents(response.body ?? new ReadableStream(), () => alarm.refresh())) {
          failures = 0;
          const { etag } = JSON.parse(data) as { etag: string };
          if (event !== "declarations" || etag === told) continue;
          told = etag;
          yield etag;
        }
      } catch (thrown) {
        if (signal.aborted) return;
        if (thrown instanceof CatalogueError && thrown.status !== null && thrown.status < 500 && thrown.status !== 429) throw thrown;
      } finally {
        clearTimeout(alarm);
        silence.abort();
      }
      await wait(delayOf(failures), undefined, { signal }).catch(() => undefined);
    }
  }
}

const listPath = (format: ToolFormat, options: DeclarationOptions): string => {
  const { cache, strict, reserve, namespace, defer, search, names } = options;
  return `/v1/declarations?${new URLSearchParams({
    format,
    ...(cache !== undefined && { cache }),
    ...(strict !== undefined && { strict: String(strict) }),
    ...(reserve !== undefined && { reserve: reserve.join() }),
    ...(namespace !== undefined && { namespace }),
    ...(defer && { defer: defer === true ? "on" : String(defer) }),
    ...(search && { search: String(search) }),
    ...(names !== undefined && { names: names.join() }),
  })}`;
};

/** Some SDKs give bytes within a turn (a model's redacted reasoning); they are of no call. */
const withoutBytes = (_key: string, value: unknown): unknown => (value instanceof Uint8Array ? undefined : value);

/** What is base64 in Bedrock's JSON is bytes in its SDK. */
const withBytes = (key: string, value: unknown): unknown =>
  key === "bytes" && typeof value === "string" ? Uint8Array.from(Buffer.from(value, "base64")) : value;
