import { AmbitError, messageOf, Transient } from "../api/errors.ts";
import type { ApiStatus } from "./api-error.ts";
import type { Clock } from "./clock.ts";
import { parseClusterJson } from "./json.ts";
import type { ClusterObject } from "./object.ts";

/** One line of a watch. A bookmark's object has only a resource version; an error's is a status. */
export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"; readonly object: T }
  | { readonly type: "ERROR"; readonly object: ApiStatus };

/** The server sent something that is no watch event. */
export class WatchGarbled extends AmbitError {
  constructor(message: string, options?: ErrorOptions) {
    super("WatchGarbled", message, options);
  }
}

export interface WatchReading {
  readonly clock: Clock;
  /** A watch without a byte for so long is dead: bookmarks come about every minute even where nothing changes. */
  readonly idleMs: number;
  /** An object is at most about 1.5 MiB in etcd; JSON with managed fields is larger. */
  readonly lineBytes: number;
}

/**
 * The events of a watch. Ends when the server ends it; a last line without its end is dropped, since the watch goes on after the last whole one. Throws
 * `Transient` (`WatchSilent`, `WatchLost`), `WatchGarbled`.
 */
export async function* watchEvents<T extends ClusterObject>(
  chunks: AsyncIterable<Uint8Array>,
  { clock, idleMs, lineBytes }: WatchReading,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const source = chunks[Symbol.asyncIterator]();
  const line = new LineBuffer(lineBytes);
  try {
    for (;;) {
      const chunk = await orSilent(source.next(), clock, idleMs);
      if (chunk.done) return;
      for (const text of line.take(chunk.value)) if (text.trim() !== "") yield eventOf<T>(text);
    }
  } finally {
    // Not awaited: a dead connection may never say that it ended.
    Promise.resolve(source.return?.()).catch(() => {});
  }
}

/** Whole lines out of bytes that come in pieces. */
class LineBuffer {
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  *take(chunk: Uint8Array): Generator<string, void, undefined> {
    let rest = chunk;
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      this.#keep(rest.subarray(0, end));
      const text = Buffer.concat(this.#pieces).toString("utf8");
      this.#pieces = [];
      this.#size = 0;
      rest = rest.subarray(end + 1);
      yield text;
    }
    if (rest.byteLength > 0) this.#keep(rest);
  }

  #keep(piece: Uint8Array): void {
    this.#size += piece.byteLength;
    if (this.#size > this.#limit) throw new WatchGarbled(`a watch event has more than ${this.#limit} bytes`);
    this.#pieces.push(piece);
  }
}

const orSilent = <R>(next: Promise<R>, clock: Clock, idleMs: number): Promise<R> =>
  new Promise((resolve, reject) => {
    const cancel = clock.after(idleMs, () => reject(new Transient("WatchSilent", `the watch was silent for ${idleMs / 1000} s`)));
    next.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (thrown) => {
        cancel();
        reject(new Transient("WatchLost", `the watch broke off: ${messageOf(thrown)}`, { cause: thrown }));
      },
    );
  });

const eventTypes: ReadonlySet<unknown> = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]);

const eventOf = <T extends ClusterObject>(text: string): WatchEvent<T> => {
  let event: { type?: unknown; object?: { metadata?: { resourceVersion?: unknown; name?: unknown } } } | null;
  try {
    event = parseClusterJson(text) as typeof event;
  } catch (thrown) {
    throw new WatchGarbled(`a watch event is no JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
  const isKnown = eventTypes.has(event?.type) && typeof event?.object === "object" && event.object !== null;
  if (!isKnown) throw new WatchGarbled(`a watch event has the type ${JSON.stringify(event?.type)} and no object that goes with it`);
  const { metadata } = event?.object ?? {};
  if (event?.type !== "ERROR") {
    if (typeof metadata?.resourceVersion !== "string") throw new WatchGarbled("a watch event's object has no resource version");
    if (event?.type !== "BOOKMARK" && typeof metadata.name !== "string") throw new WatchGarbled("a watch event's object has no name");
  }
  return event as unknown as WatchEvent<T>;
};
