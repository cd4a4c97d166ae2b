import type { HostExchange } from "../../api/host.ts";

/** Exchanges of one call that are told one by one; beyond, they are only counted. */
const toldOneByOne = 16;

interface Noted {
  readonly method: string;
  readonly host: string;
  readonly at: number;
  until: number | null;
  status: number | null;
}

/** What becomes of one request, as it does. */
export interface RequestNote {
  answered(status: number): void;
  ended(): void;
}

const notNoted: RequestNote = { answered: () => {}, ended: () => {} };

/** The requests that one call made of other hosts: how many, and when the first of them were. */
export class MadeRequests {
  readonly #noted: Noted[] = [];
  #denied = 0;

  get denied(): number {
    return this.#denied;
  }

  deny(): void {
    this.#denied++;
  }

  /** `host` is the entry that grants it, since a name below a wildcard is the guest's choice, and may hold anything. */
  note(method: string, host: string): RequestNote {
    if (this.#noted.length >= toldOneByOne) return notNoted;
    const noted: Noted = { method: knownMethods.has(method) ? method : "other", host, at: performance.now(), until: null, status: null };
    this.#noted.push(noted);
    return {
      answered: (status) => {
        noted.status = status;
      },
      ended: () => {
        noted.until ??= performance.now();
      },
    };
  }

  /** Those of a call that began at `since`, by `performance.now()`; one that goes on lasts until now. */
  exchanges(since: number): HostExchange[] {
    const now = performance.now();
    return this.#noted.map(({ method, host, at, until, status }) => ({
      method,
      host,
      atMs: Math.max(0, at - since),
      ms: (until ?? now) - at,
      status,
    }));
  }

  clear(): void {
    this.#noted.length = 0;
    this.#denied = 0;
  }
}

const knownMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]);
