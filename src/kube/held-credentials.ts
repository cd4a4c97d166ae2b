import type { Credentials } from "./access.ts";
import type { Clock } from "./clock.ts";

/** Tokens and certificates on disk are replaced while we run; they are read again as often. */
const holdMs = 10_000;

/** Credentials that are made anew after a while, and at once when fresh ones are asked for. */
export const held = (clock: Clock, make: () => Promise<Credentials>): ((fresh?: boolean) => Promise<Credentials>) => {
  let kept: { readonly credentials: Credentials; readonly at: number } | undefined;
  return async (fresh = false) => {
    if (!fresh && kept !== undefined && clock.elapsed() - kept.at < holdMs) return kept.credentials;
    kept = { credentials: await make(), at: clock.elapsed() };
    return kept.credentials;
  };
};
