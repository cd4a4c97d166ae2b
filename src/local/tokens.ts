import { createHash, timingSafeEqual } from "node:crypto";
import type { Authenticate, Caller } from "../catalogue/caller.ts";

/** Fixed bearer tokens, compared in a time that tells nothing of them. */
export const fixedTokens = (callers: ReadonlyMap<string, Caller>): Authenticate => {
  const known = [...callers].map(([token, caller]) => ({ digest: digestOf(token), caller }));
  return async (token) => {
    if (token === null) return null;
    const digest = digestOf(token);
    return known.find((one) => timingSafeEqual(one.digest, digest))?.caller ?? null;
  };
};

/** Whoever reaches the port is this caller. */
export const everyoneIs =
  (caller: Caller): Authenticate =>
  async () =>
    caller;

const digestOf = (token: string): Buffer => createHash("sha256").update(token).digest();
