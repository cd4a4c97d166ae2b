import type { ContentBlock } from "../api/content.ts";
import type { HostReply } from "../api/host.ts";
import type { JsonValue } from "../api/json.ts";
import type { Judgement } from "./admission.ts";
import type { Dispatched } from "./dispatch.ts";
import type { CallOutcome } from "./journal.ts";
import type { Endpoint } from "./state.ts";

/** The one sentence for every refusal by policy: which rule refused tells a model what to try next. */
export const refusalText = "This call is not permitted.";
export const inDoubtText = "Whether the call took effect is not known. Do not repeat it blindly; check its effect first.";
export const faultText = "The catalogue failed at this call.";
export const tooSoonText = (retryAfterMs: number): string =>
  `This tool was called too often; it may be called again in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s.`;
export const uncountedText = "The call was not run, since it cannot be told at the moment how often the tool was called. Try again later.";
export const unavailableText = "The tool cannot be reached at the moment; the call was not run.";

/** What a call came to, and on the way to what. */
export interface Ran {
  readonly outcome: CallOutcome;
  readonly text: string;
  readonly content?: readonly ContentBlock[];
  readonly structured?: JsonValue;
  readonly found?: readonly string[];
  readonly code: string | null;
  readonly reason: string | null;
  readonly endpoint: Endpoint | null;
  readonly reply: HostReply | null;
  readonly retryAfterMs: number | null;
  readonly attempts: number;
  /** Whether a host was sent the arguments. */
  readonly wasSent: boolean;
  readonly hostMs: number | null;
}

/** Of a call that has come nowhere yet. */
export const nothing = { endpoint: null, reply: null, retryAfterMs: null, attempts: 0, wasSent: false, hostMs: null } as const;

export const failed = (code: string, reason: string, text: string): Ran => ({ ...nothing, outcome: "failed", text, code, reason });

/** What a call came to that was sent to nobody. */
export const notRun = (judgement: Exclude<Judgement, { verdict: "admitted" }>): Ran => {
  if (judgement.verdict === "unjudged") return failed(judgement.code, judgement.reason, judgement.text);
  const { refusal } = judgement;
  const { code, reason } = refusal;
  switch (refusal.kind) {
    case "validation":
      return failed(code, reason, reason);
    case "policy":
      return { ...nothing, outcome: "refused", text: refusalText, code, reason };
    case "rate": {
      const { retryAfterMs } = refusal;
      return { ...nothing, outcome: "refused", text: tooSoonText(retryAfterMs), code, reason, retryAfterMs };
    }
  }
};

/** What a host's answer means for the call, and whether another host may have it. */
export const outcomeOf = (dispatched: Dispatched, mutates: boolean): Ran & { readonly again: boolean } => {
  switch (dispatched.kind) {
    case "replied":
      return replied(dispatched.reply, mutates);
    case "refused": {
      const { code, message } = dispatched.refusal;
      return { ...failed(code, `the host refused the call: ${message}`, unavailableText), again: true };
    }
    case "unreachable":
      return { ...failed("HostUnreachable", `the host could not be reached: ${dispatched.message}`, unavailableText), again: true };
    case "lost":
      return {
        ...unknown(mutates, "HostLost", `no answer came from the host: ${dispatched.message}`, "The tool did not answer."),
        again: false,
      };
  }
};

const replied = (reply: HostReply, mutates: boolean): Ran & { readonly again: boolean } => {
  if (reply.outcome === "failed") {
    const ran = reply.ran ? unknown(mutates, reply.code, reply.text, reply.text) : failed(reply.code, reply.text, reply.text);
    return { ...ran, reply, again: !reply.ran };
  }
  const told = {
    ...nothing,
    outcome: reply.outcome,
    text: reply.text,
    ...(reply.content !== undefined && { content: reply.content }),
    code: null,
    reason: null,
    reply,
    again: false,
  };
  return reply.outcome === "ok" && reply.structured !== undefined ? { ...told, structured: reply.structured } : told;
};

/** Something may have run to no known end: of a tool that changes nothing that is a failure, of any other nobody may say that it failed. */
export const unknown = (mutates: boolean, code: string, reason: string, text: string): Ran =>
  mutates ? { ...nothing, outcome: "in-doubt", text: `${text} ${inDoubtText}`, code, reason } : failed(code, reason, text);
