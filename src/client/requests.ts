import { setTimeout as wait } from "node:timers/promises";
import { CatalogueError } from "./catalogue-error.ts";

export interface ConnectionOptions {
  /** Where the catalogue is, without a path: `https://ambit-catalogue.ambit.svc`. */
  readonly url: string;
  /** The bearer token, or what reads it: a projected token is replaced while the agent runs, so read its file each time. */
  readonly token: string | (() => string | Promise<string>);
  /** Headers to send along, asked for at each request: a trace's `traceparent`. */
  readonly headers?: () => Readonly<Record<string, string>>;
  /** How often a request is made again where nothing can have run: the catalogue was not reached, or said that it is too busy. 4 unless given. */
  readonly retries?: number;
  /** What makes requests; the global `fetch` unless given. */
  readonly fetch?: typeof fetch;
}

export interface CatalogueRequest {
  /** With its query: `/v1/calls?format=anthropic`. */
  readonly path: string;
  /** JSON text; with it, the request is a POST. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

const firstDelayMs = 200;
const longestDelayMs = 10_000;

/** Codes of a connection that was never made: no byte of the request left. */
const neverConnected: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Makes requests to one catalogue, and again only those that can have had no effect. */
export class Requests {
  readonly #options: ConnectionOptions;
  readonly #base: string;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#base = options.url.replace(/\/+$/, "");
  }

  /** A response of status 2xx or 304. Throws `CatalogueError`, and the signal's reason once it aborts. */
  async send(request: CatalogueRequest): Promise<Response> {
    const { retries = 4 } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const answer = await this.#once(request);
      if (answer instanceof Response) return answer;
      if (!answer.isRetried || attempt >= retries) throw answer.error;
      await wait(answer.afterMs ?? delayOf(attempt), undefined, request.signal ? { signal: request.signal } : {});
    }
  }

  async #once({ path, body, headers, signal }: CatalogueRequest): Promise<Response | Failure> {
    const { token, fetch: send = fetch, headers: more } = this.#options;
    const bearer = typeof token === "string" ? token : await token();
    let response: Response;
    try {
      response = await send(this.#base + path, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          ...more?.(),
          authorization: `Bearer ${bearer.trim()}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        redirect: "error",
        ...(body === undefined ? {} : { body }),
        ...(signal ? { signal } : {}),
      });
    } catch (cause) {
      signal?.throwIfAborted();
      return unreachable(cause, body !== undefined);
    }
    return response.ok || response.status === 304 ? response : await refusal(response, body !== undefined);
  }
}

interface Failure {
  readonly error: CatalogueError;
  readonly isRetried: boolean;
  readonly afterMs: number | null;
}

const unreachable = (cause: unknown, isCall: boolean): Failure => {
  const mayHaveRun = isCall && !neverConnected.has(codeOf(cause));
  const message = mayHaveRun
    ? "the connection to the catalogue was lost; whether the call took effect is not known"
    : "the catalogue can't be reached";
  return {
    error: new CatalogueError("Unreachable", message, { status: null, mayHaveRun }, { cause }),
    isRetried: !mayHaveRun,
    afterMs: null,
  };
};

const codeOf = (thrown: unknown): unknown => {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  return cause instanceof Error && "code" in cause ? cause.code : undefined;
};

/** 429 and 503 are the catalogue's own before it looks at a call; any other 5xx of a call may come from what stands in between. */
const refusal = async (response: Response, isCall: boolean): Promise<Failure> => {
  const { status } = response;
  const told = errorIn(await response.text().catch(() => ""));
  const isBusy = status === 429 || status === 503;
  const mayHaveRun = isCall && status >= 500 && !(status === 503 && told !== undefined);
  const { code = "StatusUnexpected", message = `the catalogue answered with status ${status}`, at } = told ?? {};
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return {
    error: new CatalogueError(code, message, { status, at, mayHaveRun }),
    isRetried: !mayHaveRun && (isBusy || status >= 500),
    afterMs: seconds >= 0 ? Math.min(seconds * 1000, longestDelayMs) : null,
  };
};

const errorIn = (text: string): { code?: string; message?: string; at?: string } | undefined => {
  try {
    return (JSON.parse(text) as { error?: { code?: string; message?: string; at?: string } }).error;
  } catch {
    // Not the catalogue's own answer, then.
    return undefined;
  }
};

/** Doubles, and is never the same for all clients of a catalogue that comes back. */
export const delayOf = (attempt: number): number => Math.min(firstDelayMs * 2 ** attempt, longestDelayMs) * (0.5 + Math.random() / 2);
