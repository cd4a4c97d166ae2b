import { Invalid } from "../api/errors.ts";
import { compactJson, defaultJsonLimits, isJsonObject, type JsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { TurnFormat } from "../declaration/formats.ts";
import { answerFor, type ProviderCall, toolCallsFrom } from "../translate/provider-calls.ts";
import type { Admission, CallAnswer, CallRequest } from "./admission.ts";
import { faultText } from "./call-end.ts";
import type { Caller } from "./caller.ts";
import { shownLabel } from "./claimed-labels.ts";
import { shown } from "./http.ts";
import type { Offers } from "./offers.ts";

export interface CallContext {
  readonly admission: Admission;
  readonly caller: Caller;
  readonly offers: Offers;
  /** Whether the caller may know why a call was refused. */
  readonly explain: boolean;
  /** Hears of faults of the catalogue itself. */
  readonly report: (fault: unknown) => void;
}

/** Calls of one turn that run at a time, so that a turn does not fill a host's queue. */
const turnConcurrency = 8;

/** A body holds the arguments this many levels down: in a call, in a block of a message's list of a turn with its labels. */
const levelsAbove = { call: 1, turn: 5 } as const;

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
  return { name, arguments: given, labels, session: sessionIn(session) };
};

const sessionIn = (session: JsonValue): string | null => {
  if (session === null || (typeof session === "string" && session.length <= longestSession)) return session;
  throw new Invalid("CallMalformed", `session is a text of at most ${longestSession} characters`, "/session");
};

/** What was answered, and what is to be told beside the body. */
export interface Answered {
  readonly body: string;
  /** When the call, or the last of a turn's, may be tried again; null where none came too soon. */
  readonly retryAfterMs: number | null;
}

const blocksOf = ({ text, content }: CallAnswer): JsonValue => (content ?? [{ type: "text", text }]) as unknown as JsonValue;

/** `{"content", "structuredContent"?, "isError", "outcome", "found"?, "label"?, "retryAfterMs"?, "reason"?}`; `reason` only for those who may know it. */
export const answerCall = async (context: CallContext, request: CallRequest): Promise<Answered> => {
  const { admission, caller, offers } = context;
  const answer = await admission.call(caller, offers, request);
  const body: Record<string, JsonValue> = { content: blocksOf(answer) };
  if (answer.outcome === "ok" && answer.structured !== undefined) body.structuredContent = answer.structured;
  body.isError = answer.outcome !== "ok";
  return { body: compactJson({ ...body, ...toldOf(context, answer) }), retryAfterMs: answer.retryAfterMs ?? null };
};

/** What is told of a call besides what a model reads. */
const toldOf = ({ explain }: CallContext, { outcome, found, label, retryAfterMs, reason }: CallAnswer): JsonObject => ({
  outcome,
  ...(found && { found }),
  ...(label && { label: shownLabel(label) }),
  ...(retryAfterMs !== undefined && { retryAfterMs: Math.ceil(retryAfterMs) }),
  ...(explain && reason && { reason: { ...reason } }),
});

/**
 * Answers every call of a turn, in order, whatever becomes of each: a call left without an answer makes the provider refuse the conversation. The body is the
 * provider's own, or `{"turn": …, "labels"?, "session"?}`, which has room for what is known of the arguments; then the answer is `{"answer": …, "calls": […]}`.
 * Throws `Invalid` only when the body holds no calls to answer, or what is said of them is malformed.
 */
export const answerTurn = async (context: CallContext, format: TurnFormat, text: string): Promise<Answered> => {
  const { turn, labels, session, isWrapped } = turnIn(parseBody(text, "turn"));
  const calls = callsIn(format, turn, isWrapped ? "/turn" : "");
  if (labels !== null && labels.length !== calls.length)
    throw new Invalid("CallMalformed", `labels has ${labels.length} entries, and the turn has ${calls.length} calls`, "/labels");
  const answers: CallAnswer[] = [];
  let next = 0;
  const work = async () => {
    for (let index = next++; index < calls.length; index = next++) {
      const call = calls[index];
      if (call) answers[index] = await answerOne(context, call, { labels: labels?.[index], session, format });
    }
  };
  await Promise.all(Array.from({ length: Math.min(turnConcurrency, calls.length) }, work));
  const answer = answerFor(
    format,
    calls.flatMap(({ id, name }, index) => {
      const answered = answers[index];
      return answered ? [{ ...answered, id, name, isError: answered.outcome !== "ok" }] : [];
    }),
  );
  const waits = answers.flatMap(({ retryAfterMs }) => (retryAfterMs === undefined ? [] : [retryAfterMs]));
  return {
    body: compactJson(isWrapped ? { answer, calls: answers.map((one) => toldOf(context, one)) } : answer),
    retryAfterMs: waits.length > 0 ? Math.max(...waits) : null,
  };
};

/** As `toolCallsFrom`, for a turn that is at `at` in its body. */
const callsIn = (format: TurnFormat, turn: JsonValue, at: string): ProviderCall[] => {
  try {
    return toolCallsFrom(format, turn);
  } catch (thrown) {
    if (!(thrown instanceof Invalid) || thrown.at === undefined) throw thrown;
    throw new Invalid(thrown.code, thrown.message, `${at}${thrown.at}`, { cause: thrown });
  }
};

const turnKeys = new Set(["turn", "labels", "session"]);

/** No provider's block has a member `turn`. */
const turnIn = (body: JsonValue) => {
  if (!isJsonObject(body) || body.turn === undefined) return { turn: body, labels: null, session: null, isWrapped: false };
  const stray = Object.keys(body).find((key) => !turnKeys.has(key));
  if (stray !== undefined)
    throw new Invalid("CallMalformed", `beside a turn there is no '${shown(stray)}'; there are labels and session`, "");
  const { turn, labels = null, session = null } = body;
  if (labels !== null && !Array.isArray(labels))
    throw new Invalid("CallMalformed", "labels is a list with the labels of each of the turn's calls, or null", "/labels");
  return { turn, labels: labels as readonly JsonValue[] | null, session: sessionIn(session), isWrapped: true };
};

const answerOne = async (
  { admission, caller, offers, report }: CallContext,
  { name, arguments: given }: ProviderCall,
  about: Pick<CallRequest, "labels" | "session" | "format">,
): Promise<CallAnswer> => {
  try {
    return await admission.call(caller, offers, { name, arguments: given, ...about });
  } catch (fault) {
    report(fault);
    return { outcome: "failed", text: faultText };
  }
};
