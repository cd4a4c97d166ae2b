import { Invalid } from "../api/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { ProviderFormat } from "../declaration/formats.ts";
import { parseArguments } from "./arguments.ts";
import { nothingText } from "./result.ts";
import { inShort } from "./wording.ts";

/** One call as the model made it. `arguments` is the error of that call alone where the model's text isn't a JSON object. */
export interface ProviderCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject | Invalid;
}

/** What became of a call, for the model. */
export interface CallAnswer {
  readonly id: string;
  readonly text: string;
  readonly isError: boolean;
}

/** More calls than any model makes in a turn. */
const mostCalls = 128;
const longestId = 256;

/**
 * The calls in what a model returned: one tool-call block, or an array of what came in a turn, from which everything but tool calls (text,
 * reasoning) is skipped. In order.
 *
 *   anthropic         { "type": "tool_use", "id": …, "name": …, "input": { … } }
 *   openai-chat       { "type": "function", "id": …, "function": { "name": …, "arguments": "{…}" } }
 *   openai-responses  { "type": "function_call", "call_id": …, "name": …, "arguments": "{…}" }
 *
 * Throws `Invalid` with code `CallBlockInvalid` where there is no call or one can't be answered (it has no id or no name); `at` is the JSON pointer.
 */
export const toolCallsFrom = (format: ProviderFormat, body: JsonValue): ProviderCall[] => {
  const { blockType, read } = shapes[format];
  const blocks: readonly JsonValue[] = Array.isArray(body) ? body : [body];
  const calls: ProviderCall[] = [];
  for (const [index, block] of blocks.entries()) {
    const at = Array.isArray(body) ? `/${index}` : "";
    if (!isJsonObject(block)) throw invalid(at, `expected a block of type "${blockType}"; got ${inShort(block)}`);
    if (block.type !== blockType) continue;
    if (calls.length >= mostCalls) throw invalid(at, `there are more than ${mostCalls} calls`);
    calls.push(read(block, at));
  }
  if (calls.length === 0) throw invalid("", `there is no block of type "${blockType}"`);
  return calls;
};

/**
 * The message that answers a turn's calls, one answer an id, in the order given: to append to the conversation as it is.
 *
 *   anthropic         { "role": "user", "content": [{ "type": "tool_result", … }] }
 *   openai-chat       [{ "role": "tool", "tool_call_id": …, "content": … }]
 *   openai-responses  [{ "type": "function_call_output", "call_id": …, "output": … }]
 *
 * OpenAI has no mark for an error: the text says `Error: ` first. Empty text becomes a short constant, since some providers refuse it.
 */
export const answerFor = (format: ProviderFormat, answers: readonly CallAnswer[]): JsonValue => shapes[format].answer(answers);

interface Shape {
  readonly blockType: string;
  readonly read: (block: JsonObject, at: string) => ProviderCall;
  readonly answer: (answers: readonly CallAnswer[]) => JsonValue;
}

const shapes: Readonly<Record<ProviderFormat, Shape>> = {
  anthropic: {
    blockType: "tool_use",
    read: (block, at) => ({ id: idOf(block, "id", at), name: nameOf(block, at), arguments: givenObject(block.input) }),
    answer: (answers) => ({
      role: "user",
      content: answers.map(({ id, text, isError }) => ({
        type: "tool_result",
        tool_use_id: id,
        content: text || nothingText,
        ...(isError ? { is_error: true } : {}),
      })),
    }),
  },
  "openai-chat": {
    blockType: "function",
    read: (block, at) => {
      const called = block.function;
      if (!isJsonObject(called)) throw invalid(`${at}/function`, `expected an object; got ${inShort(called)}`);
      return { id: idOf(block, "id", at), name: nameOf(called, `${at}/function`), arguments: writtenObject(called.arguments) };
    },
    answer: (answers) => answers.map((one) => ({ role: "tool", tool_call_id: one.id, content: plainText(one) })),
  },
  "openai-responses": {
    blockType: "function_call",
    read: (block, at) => ({ id: idOf(block, "call_id", at), name: nameOf(block, at), arguments: writtenObject(block.arguments) }),
    answer: (answers) => answers.map((one) => ({ type: "function_call_output", call_id: one.id, output: plainText(one) })),
  },
};

const plainText = ({ text, isError }: CallAnswer): string => (isError ? `Error: ${text}` : text || nothingText);

const idOf = (block: JsonObject, key: string, at: string): string => {
  const id = block[key];
  if (typeof id === "string" && id !== "" && id.length <= longestId) return id;
  throw invalid(`${at}/${key}`, `expected a string of 1 to ${longestId} characters; got ${inShort(id)}`);
};

const nameOf = (block: JsonObject, at: string): string => {
  if (typeof block.name === "string") return block.name;
  throw invalid(`${at}/name`, `expected the name of a tool; got ${inShort(block.name)}`);
};

/** Anthropic gives an object. Nothing at all is a call without arguments. */
const givenObject = (input: JsonValue | undefined): JsonObject | Invalid => {
  if (input === undefined) return jsonObject([]);
  return isJsonObject(input) ? input : notObject(input);
};

/** OpenAI gives the JSON text that the model wrote, which nobody has parsed. */
const writtenObject = (text: JsonValue | undefined): JsonObject | Invalid => {
  if (text === undefined || text === null) return jsonObject([]);
  if (typeof text !== "string") return notObject(text);
  try {
    return parseArguments(text);
  } catch (thrown) {
    if (thrown instanceof Invalid) return thrown;
    throw thrown;
  }
};

const notObject = (value: JsonValue): Invalid =>
  new Invalid("ArgumentsNotObject", `arguments must be a JSON object; got ${inShort(value)}`, "");

const invalid = (at: string, message: string): Invalid => new Invalid("CallBlockInvalid", `${at || "the body"}: ${message}`, at);
