import { Stalled, Waiting } from "../api/errors.ts";
import type { ObjectKey } from "./object.ts";

/** What came of looking at one object. */
export type Outcome =
  /** As it should be; a change of what it depends on brings it back. */
  | { readonly kind: "done" }
  /** Something will change by itself, maybe without an event: look again then. */
  | { readonly kind: "waiting"; readonly retryAfterMs: number; readonly on: string }
  /** A person must act, which changes an object and so brings it back. */
  | { readonly kind: "stalled"; readonly reason: string; readonly message: string };

export const done: Outcome = { kind: "done" };

/**
 * Brings the object of a key to what its spec asks. Level-based: sees the key, never the event; looks at what is there now and may be called at any time. Ends soon after
 * the signal aborts. What it throws is told and tried again, later each time; `Waiting` and `Stalled` are outcomes, thrown or returned.
 */
export type Reconciler = (key: ObjectKey, signal: AbortSignal) => Promise<Outcome>;

/** The outcome that an error stands for, if it does. */
export const outcomeOf = (thrown: unknown): Outcome | undefined => {
  if (thrown instanceof Waiting) return { kind: "waiting", retryAfterMs: thrown.retryAfterMs, on: thrown.message };
  if (thrown instanceof Stalled) return { kind: "stalled", reason: thrown.code, message: thrown.message };
  return undefined;
};
