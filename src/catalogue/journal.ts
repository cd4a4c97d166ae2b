import type { DefinitionDigest } from "../api/definition.ts";
import type { Sha256Digest } from "../api/digest.ts";
import type { HostUse } from "../api/host.ts";
import type { JsonObject } from "../api/json.ts";
import type { CatalogueId } from "./state.ts";

/**
 * What a call came to.
 *
 * - `ok`, `tool-error`: it ran; the function returned its value, or its own error.
 * - `refused`: a gate said no. Nothing ran.
 * - `failed`: it did nothing: the arguments are wrong, no host took it, or a tool that changes nothing did not finish.
 * - `in-doubt`: a tool that may change things was given the call and no answer tells whether it did.
 */
export type CallOutcome = "ok" | "tool-error" | "refused" | "failed" | "in-doubt";

/** One decision about one call: the line that docs/catalogue.md describes. Never holds a value of an argument or of a result. */
export interface JournalEntry {
  readonly time: string;
  readonly event: "call";
  /** Says which call in an answer to an operator; random, 96 bits. */
  readonly id: string;
  /** The trace that it is part of, 32 hexadecimal digits; absent where none is kept. */
  readonly trace?: string;
  readonly subject: string;
  readonly session: string | null;
  /** The name as it was asked for, cut at 128 characters. */
  readonly name: string;
  /** Null where no offer of the caller has that name. */
  readonly tool: CatalogueId | null;
  /** The Workload of that tool, in the namespace that `tool` names. */
  readonly workload: string | null;
  readonly grant: Sha256Digest | null;
  readonly definition: DefinitionDigest | null;
  /** The code that was asked to run it, null where none was. */
  readonly component: Sha256Digest | null;
  readonly pod: string | null;
  /** Digest and size of the canonical argument bytes that were judged, null where they could not be read. */
  readonly arguments: Sha256Digest | null;
  readonly argumentBytes: number | null;
  readonly labels: JsonObject | null;
  /** The label of the answer, null where no tool gave one. */
  readonly resultLabel: JsonObject | null;
  /** The gate that decided against the call, null where all admitted it. */
  readonly gate: string | null;
  readonly outcome: CallOutcome;
  /** Why, for anything but `ok` and `tool-error`: a stable code and its sentence. */
  readonly code: string | null;
  readonly reason: string | null;
  /** Hosts that a ticket was made for. */
  readonly attempts: number;
  readonly resultBytes: number | null;
  /** What the tool asked of other hosts and wrote, as its host said; null where nothing, or nothing was said. */
  readonly use: Omit<HostUse, "exchanges"> | null;
  readonly durations: {
    readonly totalMs: number;
    readonly hostMs: number | null;
    readonly queueMs: number | null;
    readonly runMs: number | null;
  };
}

export type Journal = (entry: JournalEntry) => void;
