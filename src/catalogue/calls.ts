import { Invalid } from "../api/errors.ts";
import { compactJson, defaultJsonLimits, isJsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { ProviderFormat } from "../declaration/formats.ts";
import { answerFor, type ProviderCall, type CallAnswer as ToolAnswer, toolCallsFrom } from "../translate/provider-calls.ts";
import { type Admission, type CallRequest, faultText } from "./admission.ts";
import type { Caller } from "./caller.ts";
import { shown } from "./http.ts";
import type { Offers } from "./offers.ts";

export interface CallContext {
  readonly admission: Admission;
  readonly caller: Caller;
  readonly offers: Offers;
  /** Hears of faults of the catalogue itself. */
  readonly report: (fault: unknown) => void;
}

/** Calls of one turn that run at a time, so that a turn does not fill a host's queue. */
const turnConcurrency = 8;

/** A body holds the arguments this many levels down: in a call, in a block of a list. */
const levelsAbove = { call: 1, turn: 2 } as const;

const parseBody = (text: string, form: keyof typeof levelsAbove): JsonValue =>
  parseJson(text, { maxLength: text.length, maxDepth: defaultJsonLimits.maxDepth + levelsAbove[form] });

const knownKeys = new Set(["name", "arguments", "labels", "session"]);
const longestSession = 128;

/** Reads `{"name", "arguments", "labels"?, "session"?}`. Throws `Invalid`: `CallMalformed`, or as `parseJson`. */
export const callRequestIn = (text: string): CallRequest => {
  const body = parseBody(text, "call");
  if (!isJsonObject(body)) throw new Invalid("CallMalformed", 'a call is an object: {"name": …, "arguments": {…}}', "");
  const stray = Object.keys(body).find((key) => !knownKeys.has(key));
  if (stray !== undefined)
    throw new Invalid("CallMalformed", `a call has no '${shown(stray)}'; it has name, arguments, labels and session`, "");
  const { name, arguments: given = {}, labels, session = null } = body;
  if (typeof name !== "string") throw new Invalid("CallMalformed", "name is the name of a declared tool", "/name");
  if (session !== null && (typeof session !== "string" || session.length > longestSession)) {
    throw new Invalid("CallMalformed", `session is a text of at most ${longestSession} characters`, "/session");
  }
  return { name, arguments: given, labels, session };
};

/** `{"content", "structuredContent"?, "isError", "outcome"}`, and `reason` for those who may know why a call did not come to its end. */
export const answerCall = async ({ admission, caller, offers }: CallContext, request: CallRequest, explain: boolean): Promise<string> => {
  const answer = await admission.call(caller, offers, request);
  const body: Record<string, JsonValue> = { content: [{ type: "text", text: answer.text }] };
  if (answer.outcome === "ok" && answer.structured !== undefined) body.structuredContent = answer.structured;
  body.isError = answer.outcome !== "ok";
  body.outcome = answer.outcome;
  if (explain && answer.reason) body.reason = { ...answer.reason };
  return compactJson(body);
};

/**
 * Answers every call of a turn, in order, whatever becomes of each: a call left without an answer makes the provider refuse the conversation. Throws
 * `Invalid` only when the body holds no calls to answer.
 */
export const answerTurn = async (context: CallContext, format: ProviderFormat, text: string): Promise<string> => {
  const calls = toolCallsFrom(format, parseBody(text, "turn"));
  const answers: ToolAnswer[] = [];
  let next = 0;
  const work = async () => {
    for (let index = next++; index < calls.length; index = next++) {
      const call = calls[index];
      if (call) answers[index] = await answerOne(context, call);
    }
  };
  await Promise.all(Array.from({ length: Math.min(turnConcurrency, calls.length) }, work));
  return compactJson(answerFor(format, answers));
};

const answerOne = async (
  { admission, caller, offers, report }: CallContext,
  { id, name, arguments: given }: ProviderCall,
): Promise<ToolAnswer> => {
  try {
    const { outcome, text } = await admission.call(caller, offers, { name, arguments: given, labels: undefined, session: null });
    return { id, text, isError: outcome !== "ok" };
  } catch (fault) {
    report(fault);
    return { id, text: faultText, isError: true };
  }
};
