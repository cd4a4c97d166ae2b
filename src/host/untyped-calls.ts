import { compactJson } from "../api/json.ts";
import type { ListedDefinition, ListedServer } from "../grants/listing.ts";
import { type LiftedAnswer, untypedAnswer } from "../translate/untyped-answer.ts";
import type { WorkerReply } from "./worker-protocol.ts";

/** A page of tools, as jco lifts it (wit/untyped.wit, `page`). */
export interface LiftedPage extends ListedServer {
  readonly ttlMs?: number | undefined;
  readonly tools: readonly ListedDefinition[];
  readonly nextCursor?: string | undefined;
}

/** `call-tool`'s `failure`, as jco lifts it. */
type LiftedFailure = { readonly tag: "unknown-tool" } | { readonly tag: "unavailable" | "in-doubt"; readonly val: string };

/** How an export that returns a result ended. */
export type Returned = { readonly ok: unknown } | { readonly err: unknown };

/** What a component says of a failure is cut to this: it is for a person's or a model's eyes. */
const longestWhy = 500;

/** Throws what `untypedAnswer` throws. Whether a structured value fits its schema is for the catalogue to see: a host makes no code from strings. */
export const callReply = (returned: Returned, resultBytes: number): WorkerReply => {
  if ("err" in returned) return failureReply(returned.err as LiftedFailure);
  const { outcome, text, content, structured } = untypedAnswer(returned.ok as LiftedAnswer, resultBytes);
  const head = compactJson({ outcome, text }).slice(0, -1);
  const blocks = content === undefined ? "" : `,"content":${JSON.stringify(content)}`;
  const value = structured === undefined ? "" : `,"structured":${compactJson(structured)}`;
  return { kind: "answer", json: `${head}${blocks}${value}` };
};

const failureReply = (failure: LiftedFailure): WorkerReply => {
  switch (failure.tag) {
    case "unknown-tool":
      return { kind: "failed", code: "ToolGone", text: "The tool is not there any more; nothing was run.", ran: false };
    case "unavailable":
      return { kind: "failed", code: "FarSideUnavailable", text: `The tool can't be reached: ${why(failure.val)}`, ran: false };
    case "in-doubt":
      return { kind: "failed", code: "FarSideLost", text: `The tool did not answer: ${why(failure.val)}`, ran: true };
  }
};

const why = (text: string): string => text.slice(0, longestWhy).toWellFormed();

export const pageReply = (returned: Returned): WorkerReply =>
  "err" in returned ? { kind: "unlisted", why: why(String(returned.err)) } : { kind: "page", page: returned.ok as LiftedPage };

export const newsReply = (returned: Returned): WorkerReply =>
  "err" in returned ? { kind: "unlisted", why: why(String(returned.err)) } : { kind: "news", hasChanged: returned.ok === "changed" };
