import type { ServerResponse } from "node:http";
import { HttpError } from "./http.ts";
import type { CatalogueState } from "./state.ts";

export interface WatchLimits {
  readonly connections: number;
  readonly connectionsPerCaller: number;
  /** A comment is sent this often, so that neither side keeps a dead connection; the caller is authenticated again as often. */
  readonly heartbeatMs: number;
  /** Changes within this time are told as one. */
  readonly settleMs: number;
  /** A watcher that leaves more than this unread is cut off: it will connect again and read the list. */
  readonly unreadBytes: number;
}

export const defaultWatchLimits: WatchLimits = {
  connections: 2000,
  connectionsPerCaller: 16,
  heartbeatMs: 15_000,
  settleMs: 50,
  unreadBytes: 64 * 1024,
};

/** One who watches: the caller's key, what its list's ETag is now (null where none can be made, which ends the watch), and whether its token still holds. */
export interface Watcher {
  readonly caller: string;
  readonly etag: () => string | null;
  readonly stillValid: () => Promise<boolean>;
  /** What it is told, as text of server-sent events; `declarations` events by default. */
  readonly words?: WatchWords;
  /** An older watch with the same key ends: whoever connects again has left it. */
  readonly replaces?: string;
}

export interface WatchWords {
  readonly opening: (etag: string) => string;
  readonly changed: (etag: string) => string;
  /** Said where the catalogue ends the watch by itself. */
  readonly closing: string;
}

/**
 * Tells watchers that their declarations changed, as server-sent events: `event: declarations`, `data: {"etag": "…"}`, once at the start and after each change
 * that alters the bytes they would get.
 */
export class Watches {
  readonly #limits: WatchLimits;
  readonly #open = new Map<ServerResponse, Stream>();
  readonly #unsubscribe: () => void;
  #settling: NodeJS.Timeout | undefined;

  constructor(state: CatalogueState, limits: WatchLimits = defaultWatchLimits) {
    this.#limits = limits;
    this.#unsubscribe = state.subscribe(() => this.#settle());
  }

  /** Takes over the response. Throws `HttpError` 429 `TooManyWatchers`. */
  add(response: ServerResponse, watcher: Watcher): void {
    for (const [older, { watcher: before }] of this.#open) {
      if (watcher.replaces !== undefined && before.replaces === watcher.replaces) this.#end(older);
    }
    const ofCaller = [...this.#open.values()].filter((stream) => stream.watcher.caller === watcher.caller).length;
    if (this.#open.size >= this.#limits.connections || ofCaller >= this.#limits.connectionsPerCaller) {
      throw new HttpError(429, "TooManyWatchers", "too many watches are open; close some, or ask for the list with If-None-Match", {
        "retry-after": "10",
      });
    }
    const etag = watcher.etag();
    if (etag === null)
      throw new HttpError(503, "Unavailable", "the list cannot be made now; the catalogue's log says why", { "retry-after": "10" });
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-accel-buffering": "no",
    });
    const heartbeat = setInterval(() => this.#beat(response), this.#limits.heartbeatMs);
    const stream: Stream = { watcher, told: etag, heartbeat };
    this.#open.set(response, stream);
    response.on("close", () => this.#forget(response));
    this.#send(response, wordsFor(watcher).opening(etag));
  }

  close(): void {
    this.#unsubscribe();
    clearTimeout(this.#settling);
    for (const response of [...this.#open.keys()]) this.#end(response);
  }

  #settle(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined;
      for (const [response, stream] of this.#open) {
        const etag = stream.watcher.etag();
        if (etag === null) this.#end(response);
        else if (etag !== stream.told) {
          stream.told = etag;
          this.#send(response, wordsFor(stream.watcher).changed(etag));
        }
      }
    }, this.#limits.settleMs);
  }

  #beat(response: ServerResponse): void {
    this.#send(response, ": still here\n\n");
    this.#open
      .get(response)
      ?.watcher.stillValid()
      .then(
        (valid) => {
          if (!valid) this.#end(response);
        },
        // Who can't be authenticated now is not let in now either.
        () => this.#end(response),
      );
  }

  #send(response: ServerResponse, text: string): void {
    response.write(text);
    if (response.writableLength > this.#limits.unreadBytes) response.destroy();
  }

  #end(response: ServerResponse): void {
    const stream = this.#open.get(response);
    this.#forget(response);
    response.end(stream && wordsFor(stream.watcher).closing);
  }

  #forget(response: ServerResponse): void {
    clearInterval(this.#open.get(response)?.heartbeat);
    this.#open.delete(response);
  }
}

interface Stream {
  readonly watcher: Watcher;
  readonly heartbeat: NodeJS.Timeout;
  told: string;
}

const changeEvent = (etag: string): string => `event: declarations\ndata: ${JSON.stringify({ etag })}\n\n`;

const declarationWords: WatchWords = { opening: changeEvent, changed: changeEvent, closing: "" };

const wordsFor = ({ words = declarationWords }: Watcher): WatchWords => words;
