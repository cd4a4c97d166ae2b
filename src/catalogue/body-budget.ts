import { HttpError } from "./http.ts";

/** Bytes of request bodies held at one time, over all requests: what many callers send at once must not fill the memory. */
export class BodyBudget {
  readonly #most: number;
  #held = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** For one request; `end` gives back all that it took. */
  lease(): BodyLease {
    let taken = 0;
    return {
      take: (bytes) => {
        if (this.#held + bytes > this.#most)
          throw new HttpError(503, "Busy", "too many calls are under way; try again shortly", { "retry-after": "1" });
        this.#held += bytes;
        taken += bytes;
      },
      end: () => {
        this.#held -= taken;
        taken = 0;
      },
    };
  }
}

export interface BodyLease {
  /** Throws `HttpError` 503 `Busy`. */
  readonly take: (bytes: number) => void;
  readonly end: () => void;
}
