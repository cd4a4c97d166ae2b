import { Invalid } from "../api/errors.ts";
import { compactJson, isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { TurnFormat } from "../declaration/formats.ts";
import {
  type Answered,
  type AnswerPart,
  allowanceOf,
  answerParts,
  answerText,
  type MediaAllowance,
  type MediaRules,
} from "./answer-parts.ts";
import { parseArguments } from "./arguments.ts";
import { inShort } from "./wording.ts";

/** One call as the model made it. `arguments` is the error of that call alone where the model's text isn't a JSON object. */
export interface ProviderCall {
  /** Null where the provider gave none: then the order of answers tells which is whose. */
  readonly id: string | null;
  readonly name: string;
  readonly arguments: JsonObject | Invalid;
}

/** What became of a call, for the model. */
export interface CallAnswer extends Answered {
  readonly id: string | null;
  readonly name: string;
  readonly structured?: JsonValue;
}

/** More calls than any model makes in a turn. */
const mostCalls = 128;
const longestId = 256;

/**
 * The calls in what a model returned: one tool-call block, an array of what came in a turn, or the whole message that holds it. Everything but tool calls (text,
 * reasoning) is skipped. In order.
 *
 *   anthropic         { "type": "tool_use", "id": …, "name": …, "input": { … } }                        in content
 *   openai-chat       { "type": "function", "id": …, "function": { "name": …, "arguments": "{…}" } }   in tool_calls
 *   openai-responses  { "type": "function_call", "call_id": …, "name": …, "arguments": "{…}" }         in output
 *   gemini            { "functionCall": { "id"?: …, "name": …, "args": { … } } }, or what is in it     in parts
 *   bedrock           { "toolUse": { "toolUseId": …, "name": …, "input": { … } } }, or what is in it   in content
 *
 * Throws `Invalid` with code `CallBlockInvalid` where there is no call or one can't be answered (it has no id or no name); `at` is the JSON pointer.
 */
export const toolCallsFrom = (format: TurnFormat, body: JsonValue): ProviderCall[] => {
  const shape = shapes[format];
  const list = isJsonObject(body) ? body[shape.listKey] : body;
  const at = Array.isArray(list) && !Array.isArray(body) ? `/${shape.listKey}` : "";
  const blocks: readonly JsonValue[] = Array.isArray(list) ? list : [body];
  const calls: ProviderCall[] = [];
  for (const [index, block] of blocks.entries()) {
    const blockAt = Array.isArray(list) ? `${at}/${index}` : "";
    if (!isJsonObject(block)) throw invalid(blockAt, `expected a ${shape.callName} block; got ${inShort(block)}`);
    const call = shape.read(block, blockAt);
    if (!call) continue;
    if (calls.length >= mostCalls) throw invalid(blockAt, `there are more than ${mostCalls} calls`);
    calls.push(call);
  }
  if (calls.length === 0) throw invalid("", `there is no ${shape.callName} block`);
  return calls;
};

/**
 * The message that answers a turn's calls, one answer a call, in the order given: to append to the conversation as it is.
 *
 *   anthropic         { "role": "user", "content": [{ "type": "tool_result", … }] }
 *   openai-chat       [{ "role": "tool", "tool_call_id": …, "content": … }]
 *   openai-responses  [{ "type": "function_call_output", "call_id": …, "output": … }]
 *   gemini            { "role": "user", "parts": [{ "functionResponse": { "id"?: …, "name": …, "response": { "output" | "error": … } } }] }
 *   bedrock           { "role": "user", "content": [{ "toolResult": { "toolUseId": …, "content": [{ "text": … }] } }] }
 *
 * Where a provider, or some model of it, has no mark for an error, the text says `Error: ` first. docs/catalogue.md has what becomes of pictures and files.
 */
export const answerFor = (format: TurnFormat, answers: readonly CallAnswer[]): JsonValue => shapes[format].answer(answers);

interface Shape {
  /** What the provider calls a call. */
  readonly callName: string;
  /** Where in a message the blocks are. */
  readonly listKey: string;
  /** Null for a block that is no call. */
  readonly read: (block: JsonObject, at: string) => ProviderCall | null;
  readonly answer: (answers: readonly CallAnswer[]) => JsonValue;
}

const mebibyte = 1024 * 1024;

/** From the providers' documents; where a limit is on base64, what fits in it, and of a whole request something less. */
const media = {
  anthropic: {
    images: ["png", "jpeg", "gif", "webp"],
    largestImage: 3.75 * mebibyte,
    largestPdf: 20 * mebibyte,
    longestSide: 8000,
    mostImages: 20,
    mostPdfs: 5,
    mostBytes: 20 * mebibyte,
  },
  "openai-responses": {
    images: ["png", "jpeg", "gif", "webp"],
    largestImage: 20 * mebibyte,
    largestPdf: 20 * mebibyte,
    longestSide: 16_000,
    mostImages: 50,
    mostPdfs: 5,
    mostBytes: 30 * mebibyte,
  },
  gemini: {
    images: ["png", "jpeg", "webp"],
    largestImage: 7 * mebibyte,
    largestPdf: 13 * mebibyte,
    longestSide: 16_000,
    mostImages: 50,
    mostPdfs: 5,
    mostBytes: 13 * mebibyte,
  },
  bedrock: {
    images: ["png", "jpeg", "gif", "webp"],
    largestImage: 3.75 * mebibyte,
    largestPdf: 4.5 * mebibyte,
    longestSide: 8000,
    mostImages: 20,
    mostPdfs: 5,
    mostBytes: 18 * mebibyte,
  },
} as const satisfies Readonly<Partial<Record<TurnFormat, MediaRules>>>;

const shapes: Readonly<Record<TurnFormat, Shape>> = {
  anthropic: {
    callName: "tool_use",
    listKey: "content",
    read: (block, at) =>
      block.type === "tool_use" ? { id: idOf(block, "id", at), name: nameOf(block, at), arguments: givenObject(block.input) } : null,
    answer: (answers) => {
      const allowance = allowanceOf(media.anthropic);
      return { role: "user", content: answers.map((answer) => anthropicResult(answer, allowance)) };
    },
  },
  "openai-chat": {
    callName: "function",
    listKey: "tool_calls",
    read: (block, at) => {
      if (block.type !== "function") return null;
      const called = block.function;
      if (!isJsonObject(called)) throw invalid(`${at}/function`, `expected an object; got ${inShort(called)}`);
      return { id: idOf(block, "id", at), name: nameOf(called, `${at}/function`), arguments: writtenObject(called.arguments) };
    },
    answer: (answers) => answers.map((one) => ({ role: "tool", tool_call_id: one.id, content: marked(one, answerText(one)) })),
  },
  "openai-responses": {
    callName: "function_call",
    listKey: "output",
    read: (block, at) =>
      block.type === "function_call"
        ? { id: idOf(block, "call_id", at), name: nameOf(block, at), arguments: writtenObject(block.arguments) }
        : null,
    answer: (answers) => {
      const allowance = allowanceOf(media["openai-responses"]);
      return answers.map((answer) => ({ type: "function_call_output", call_id: answer.id, output: responsesOutput(answer, allowance) }));
    },
  },
  gemini: {
    callName: "functionCall",
    listKey: "parts",
    read: (part, at) => {
      const [call, callAt] = part.functionCall === undefined ? [part, at] : [part.functionCall, `${at}/functionCall`];
      if (!isJsonObject(call)) throw invalid(callAt, `expected an object; got ${inShort(call)}`);
      if (call === part && !isBareCall(part, ["id", "name", "args"])) return null;
      const id = call.id === undefined || call.id === null || call.id === "" ? null : idOf(call, "id", callAt);
      return { id, name: nameOf(call, callAt), arguments: givenObject(call.args) };
    },
    answer: (answers) => {
      const allowance = allowanceOf(media.gemini);
      return { role: "user", parts: answers.map((answer) => ({ functionResponse: geminiResponse(answer, allowance) })) };
    },
  },
  bedrock: {
    callName: "toolUse",
    listKey: "content",
    read: (block, at) => {
      const [call, callAt] = block.toolUse === undefined ? [block, at] : [block.toolUse, `${at}/toolUse`];
      if (!isJsonObject(call)) throw invalid(callAt, `expected an object; got ${inShort(call)}`);
      if (call === block && !isBareCall(block, ["toolUseId", "name", "input"])) return null;
      return { id: idOf(call, "toolUseId", callAt), name: nameOf(call, callAt), arguments: givenObject(call.input) };
    },
    answer: (answers) => {
      const allowance = allowanceOf(media.bedrock);
      return { role: "user", content: answers.map((answer) => ({ toolResult: bedrockResult(answer, allowance) })) };
    },
  },
};

/** SDKs hand out the call itself, without the block around it. */
const isBareCall = (block: JsonObject, keys: readonly string[]): boolean =>
  typeof block.name === "string" && Object.keys(block).every((key) => keys.includes(key) || key === "type");

const marked = ({ isError }: CallAnswer, text: string): string => (isError ? `Error: ${text}` : text);

/** Anthropic takes nothing but text in an error. */
const anthropicResult = (answer: CallAnswer, allowance: MediaAllowance): JsonObject => ({
  type: "tool_result",
  tool_use_id: answer.id,
  content: answer.isError ? answerText(answer) : textAlone(answerParts(answer, media.anthropic, allowance), anthropicPart),
  ...(answer.isError ? { is_error: true } : {}),
});

const anthropicPart = (part: AnswerPart): JsonObject => {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "image":
      return { type: "image", source: { type: "base64", media_type: `image/${part.format}`, data: part.data } };
    case "pdf":
      return { type: "document", source: { type: "base64", media_type: "application/pdf", data: part.data } };
  }
};

const responsesOutput = (answer: CallAnswer, allowance: MediaAllowance): JsonValue =>
  textAlone(withMark(answer, answerParts(answer, media["openai-responses"], allowance)), (part) => {
    switch (part.type) {
      case "text":
        return { type: "input_text", text: part.text };
      case "image":
        return { type: "input_image", image_url: `data:image/${part.format};base64,${part.data}` };
      case "pdf":
        return { type: "input_file", filename: "document.pdf", file_data: `data:application/pdf;base64,${part.data}` };
    }
  });

/** One text is written as it is, anything else as the list of its parts. */
const textAlone = (parts: readonly AnswerPart[], express: (part: AnswerPart) => JsonObject): JsonValue => {
  const [first] = parts;
  return parts.length === 1 && first?.type === "text" ? first.text : parts.map(express);
};

const withMark = (answer: CallAnswer, parts: readonly AnswerPart[]): readonly AnswerPart[] => {
  if (!answer.isError) return parts;
  const [first, ...rest] = parts;
  return first?.type === "text"
    ? [{ type: "text", text: marked(answer, first.text) }, ...rest]
    : [{ type: "text", text: "Error:" }, ...parts];
};

/**
 * Gemini reads an object: the value itself where the text says nothing else. Google carries numbers as doubles, so that a value with an integer which is none stays
 * the text.
 */
const geminiResponse = (answer: CallAnswer, allowance: MediaAllowance): JsonObject => {
  const { id, name, structured, content, isError } = answer;
  const parts = answerParts(answer, media.gemini, allowance);
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
  const attached = parts.flatMap((part) => {
    if (part.type === "text") return [];
    return [{ inlineData: { mimeType: part.type === "pdf" ? "application/pdf" : `image/${part.format}`, data: part.data } }];
  });
  const value = content === undefined ? valueSaid(structured, answer.text) : undefined;
  const response = isError ? { error: text } : { output: value !== undefined && isExactInDoubles(value) ? value : text };
  return { ...(id === null ? {} : { id }), name, response, ...(attached.length === 0 ? {} : { parts: attached }) };
};

/** The value that a text is the JSON of: the structured one, or what stands in its `result` only to make an object of it. */
const valueSaid = (structured: JsonValue | undefined, text: string): JsonValue | undefined => {
  const candidates = isJsonObject(structured) ? [structured.result, structured] : [structured];
  return candidates.find((value) => value !== undefined && typeof value !== "string" && compactJson(value) === text);
};

const isExactInDoubles = (value: JsonValue): boolean => {
  if (typeof value === "bigint") return false;
  if (typeof value !== "object" || value === null) return true;
  return Object.values(value).every(isExactInDoubles);
};

/** `status` is for Anthropic's and Amazon's own models; some others make Bedrock refuse the request for it. */
const bedrockResult = (answer: CallAnswer, allowance: MediaAllowance): JsonObject => ({
  toolUseId: answer.id,
  content: withMark(answer, answerParts(answer, media.bedrock, allowance)).map(bedrockPart),
});

const bedrockPart = (part: AnswerPart): JsonObject => {
  switch (part.type) {
    case "text":
      return { text: part.text };
    case "image":
      return { image: { format: part.format, source: { bytes: part.data } } };
    case "pdf":
      // Models read the name, and no two documents of a message may share it.
      return { document: { format: "pdf", name: `document-${part.number}`, source: { bytes: part.data } } };
  }
};

const idOf = (block: JsonObject, key: string, at: string): string => {
  const id = block[key];
  if (typeof id === "string" && id !== "" && id.length <= longestId) return id;
  throw invalid(`${at}/${key}`, `expected a string of 1 to ${longestId} characters; got ${inShort(id)}`);
};

const nameOf = (block: JsonObject, at: string): string => {
  if (typeof block.name === "string") return block.name;
  throw invalid(`${at}/name`, `expected the name of a tool; got ${inShort(block.name)}`);
};

/** Most providers give an object. Nothing at all is a call without arguments. */
const givenObject = (input: JsonValue | undefined): JsonObject | Invalid => {
  if (input === undefined || input === null) return jsonObject([]);
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
