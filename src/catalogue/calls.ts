import { Invalid } from "../api/errors.ts";
import { compactJson, defaultJsonLimits, isJsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { Admission, CallAnswer, CallRequest } from "./admission.ts";
import type { Caller } from "./caller.ts";
import type { DeclarationFormat } from "./declarations.ts";
import { shown } from "./http.ts";
import type { Offers } from "./offers.ts";

export type ProviderFormat = Exclude<DeclarationFormat, "neutral">;

/** One call of a turn, as a provider's model made it. */
export interface TurnCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: CallRequest["arguments"];
}

export interface TurnResult {
  readonly id: string;
  readonly name: string;
  readonly isError: boolean;
  readonly text: string;
  readonly structured?: JsonValue;
}

/** How one provider writes tool calls and their answers. */
export interface ProviderTurns {
  /** The calls in what a model returned. Throws `Invalid` when it is no such thing. */
  readonly callsIn: (format: ProviderFormat, body: JsonValue) => readonly TurnCall[];
  /** The message, as JSON text, that answers all of them. */
  readonly answerTo: (format: ProviderFormat, results: readonly TurnResult[]) => string;
}

export interface CallContext {
  readonly admission: Admission;
  readonly caller: Caller;
  readonly offers: Offers;
}

/** Calls of one turn: more than any model makes. */
export const maxTurnCalls = 128;

/** Calls of one turn that run at a time, so that a turn does not fill a host's queue. */
const turnConcurrency = 8;

/** A body holds the arguments some levels down. */
const bodyDepth = defaultJsonLimits.maxDepth + 8;

const parseBody = (text: string): JsonValue => parseJson(text, { maxLength: text.length, maxDepth: bodyDepth });

const knownKeys = new Set(["name", "arguments", "labels", "session"]);
const longestSession = 128;

/** Reads `{"name", "arguments", "labels"?, "session"?}`. Throws `Invalid`: `CallMalformed`, or as `parseJson`. */
export const callRequestIn = (text: string): CallRequest => {
  const body = parseBody(text);
  if (!isJsonObject(body)) throw new Invalid("CallMalformed", 'a call is an object: {"name": …, "arguments": {…}}', "");
  const stray = Object.keys(body).find((key) => !knownKeys.has(key));
  if (stray !== undefined)
    throw new Invalid("CallMalformed", `a call has no '${shown(stray)}'; it has name, arguments, labels and session`, "");
  const { name, arguments: value = {}, labels, session = null } = body;
  if (typeof name !== "string") throw new Invalid("CallMalformed", "name is the name of a declared tool", "/name");
  if (session !== null && (typeof session !== "string" || session.length > longestSession)) {
    throw new Invalid("CallMalformed", `session is a text of at most ${longestSession} characters`, "/session");
  }
  return { name, arguments: { value }, labels, session };
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
export const answerTurn = async (context: CallContext, turns: ProviderTurns, format: ProviderFormat, text: string): Promise<string> => {
  const calls = turns.callsIn(format, parseBody(text));
  if (calls.length > maxTurnCalls)
    throw new Invalid("TurnTooLarge", `the turn has ${calls.length} calls, more than the ${maxTurnCalls} allowed`);
  const results: TurnResult[] = [];
  let next = 0;
  const work = async () => {
    for (let index = next++; index < calls.length; index = next++) {
      const call = calls[index];
      if (call) results[index] = await answerOne(context, call);
    }
  };
  await Promise.all(Array.from({ length: Math.min(turnConcurrency, calls.length) }, work));
  return turns.answerTo(format, results);
};

const answerOne = async ({ admission, caller, offers }: CallContext, { id, name, arguments: given }: TurnCall): Promise<TurnResult> => {
  const answer = await admission.call(caller, offers, { name, arguments: given, labels: undefined, session: null });
  return resultIn(id, name, answer);
};

const resultIn = (id: string, name: string, { outcome, text, structured }: CallAnswer): TurnResult => {
  const result = { id, name, isError: outcome !== "ok", text };
  return outcome === "ok" && structured !== undefined ? { ...result, structured } : result;
};
