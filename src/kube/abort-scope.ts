/** A signal for one piece of work within a longer one. */
export interface AbortScope {
  /** Aborts with the outer signal, for its reason, or by `abort`. */
  readonly signal: AbortSignal;
  readonly abort: (reason?: unknown) => void;
  /** The work is over: the outer signal lets go of this one. */
  readonly release: () => void;
}

/**
 * As `AbortSignal.any`, but nothing is kept once the scope is released: that one keeps each signal it made, with everything that listens to it, for as long as the outer signal lives,
 * which is as long as the process.
 */
export const abortScope = (outer: AbortSignal | undefined): AbortScope => {
  const inner = new AbortController();
  const follow = (): void => inner.abort(outer?.reason);
  if (outer?.aborted) follow();
  outer?.addEventListener("abort", follow, { once: true });
  return {
    signal: inner.signal,
    abort: (reason) => inner.abort(reason),
    release: () => outer?.removeEventListener("abort", follow),
  };
};
