import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import type { ContentBlock as BedrockBlock, Message as BedrockMessage } from "@aws-sdk/client-bedrock-runtime";
import type { FunctionCall as GeminiCall, Content as GeminiContent, Part as GeminiPart } from "@google/genai";
import type OpenAI from "openai";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson, type JsonValue, parseJson } from "../../../src/api/json.ts";
import type { TurnFormat } from "../../../src/declaration/formats.ts";
import { answerFor, type CallAnswer, toolCallsFrom } from "../../../src/translate/provider-calls.ts";

const spelled = (format: TurnFormat, body: JsonValue): string[] =>
  toolCallsFrom(format, body).map(
    ({ id, name, arguments: given }) => `${id} ${name} ${given instanceof Invalid ? given.code : compactJson(given)}`,
  );

const anthropicMessage: Anthropic.ContentBlockParam[] = [
  { type: "text", text: "Let me look." },
  { type: "tool_use", id: "toolu_1", name: "list_issues", input: { repo: "o/r" } },
  { type: "tool_use", id: "toolu_2", name: "now", input: {} },
];
const chatCalls: OpenAI.ChatCompletionMessageToolCall[] = [
  { id: "call_1", type: "function", function: { name: "list_issues", arguments: '{"repo":"o/r"}' } },
  { id: "call_2", type: "function", function: { name: "now", arguments: "" } },
  { id: "call_3", type: "function", function: { name: "now", arguments: '{"a":' } },
  { id: "call_4", type: "function", function: { name: "now", arguments: "[1]" } },
];
const chatMessage: OpenAI.ChatCompletionMessage = { role: "assistant", content: null, refusal: null, tool_calls: chatCalls };
const responsesItems: (OpenAI.Responses.ResponseFunctionToolCall | OpenAI.Responses.ResponseReasoningItem)[] = [
  { type: "reasoning", id: "rs_1", summary: [] },
  {
    type: "function_call",
    id: "fc_1",
    call_id: "call_1",
    name: "list_issues",
    arguments: '{"n":18446744073709551615}',
    status: "completed",
  },
];
const geminiParts: GeminiPart[] = [
  { text: "Let me look.", thought: true },
  { functionCall: { name: "list_issues", args: { repo: "o/r" } }, thoughtSignature: "c2ln" },
  { functionCall: { id: "fc-2", name: "now" } },
];
const geminiCalls: GeminiCall[] = [
  { id: "fc-1", name: "list_issues", args: { repo: "o/r" } },
  { name: "now", args: {} },
];
const bedrockBlocks: BedrockBlock[] = [
  { text: "Let me look." },
  { toolUse: { toolUseId: "tooluse_1", name: "list_issues", input: { repo: "o/r" } } },
  { toolUse: { toolUseId: "tooluse_2", name: "now", input: {} } },
];
const bothCalls = ['1 list_issues {"repo":"o/r"}', "2 now {}"];

describe("calls are read", () => {
  const cases: Record<string, { format: TurnFormat; body: unknown; calls: string[] }> = {
    "from Anthropic's content, skipping the rest": {
      format: "anthropic",
      body: anthropicMessage,
      calls: bothCalls.map((call) => `toolu_${call}`),
    },
    "from Anthropic's message": {
      format: "anthropic",
      body: { role: "assistant", content: anthropicMessage },
      calls: bothCalls.map((call) => `toolu_${call}`),
    },
    "from one of Anthropic's blocks": { format: "anthropic", body: anthropicMessage[1], calls: ['toolu_1 list_issues {"repo":"o/r"}'] },
    "from Chat Completions, with the error of each text that is no object": {
      format: "openai-chat",
      body: chatCalls,
      calls: ['call_1 list_issues {"repo":"o/r"}', "call_2 now {}", "call_3 now JsonSyntax", "call_4 now ArgumentsNotObject"],
    },
    "from a message of Chat Completions": {
      format: "openai-chat",
      body: chatMessage,
      calls: ['call_1 list_issues {"repo":"o/r"}', "call_2 now {}", "call_3 now JsonSyntax", "call_4 now ArgumentsNotObject"],
    },
    "from Responses, skipping the rest": {
      format: "openai-responses",
      body: responsesItems,
      calls: ['call_1 list_issues {"n":18446744073709551615}'],
    },
    "from a whole response": {
      format: "openai-responses",
      body: { id: "resp_1", object: "response", output: responsesItems },
      calls: ['call_1 list_issues {"n":18446744073709551615}'],
    },
    "from Gemini's parts, with an id and without": {
      format: "gemini",
      body: geminiParts,
      calls: ['null list_issues {"repo":"o/r"}', "fc-2 now {}"],
    },
    "from Gemini's content": {
      format: "gemini",
      body: { role: "model", parts: geminiParts },
      calls: ['null list_issues {"repo":"o/r"}', "fc-2 now {}"],
    },
    "from what Gemini's SDK calls functionCalls": {
      format: "gemini",
      body: geminiCalls,
      calls: ['fc-1 list_issues {"repo":"o/r"}', "null now {}"],
    },
    "from Bedrock's content": { format: "bedrock", body: bedrockBlocks, calls: bothCalls.map((call) => `tooluse_${call}`) },
    "from Bedrock's message": {
      format: "bedrock",
      body: { role: "assistant", content: bedrockBlocks },
      calls: bothCalls.map((call) => `tooluse_${call}`),
    },
    "from Bedrock's call without the block around it": {
      format: "bedrock",
      body: { toolUseId: "tooluse_1", name: "now", input: { n: 1 } },
      calls: ['tooluse_1 now {"n":1}'],
    },
    "with any name, for the grants to refuse": {
      format: "anthropic",
      body: { type: "tool_use", id: "a", name: "__proto__", input: [1] },
      calls: ["a __proto__ ArgumentsNotObject"],
    },
  };
  for (const [name, { format, body, calls }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(spelled(format, parseJson(JSON.stringify(body))), calls));
  }
});

describe("a body is refused where a call could not be answered:", () => {
  const cases: Record<string, { format: TurnFormat; body: JsonValue; at: string }> = {
    "nothing in it is a call": { format: "anthropic", body: [{ type: "text", text: "Hello." }], at: "" },
    "it is empty": { format: "openai-chat", body: [], at: "" },
    "it is text": { format: "openai-responses", body: "call", at: "" },
    "a call has no id": { format: "anthropic", body: [{ type: "tool_use", name: "t", input: {} }], at: "/0/id" },
    "a call in a message has no id": {
      format: "bedrock",
      body: { role: "assistant", content: [{ toolUse: { name: "t", input: {} } }] },
      at: "/content/0/toolUse/toolUseId",
    },
    "an id is no text": { format: "openai-responses", body: { type: "function_call", call_id: 7, name: "t" }, at: "/call_id" },
    "Gemini's id is no text": { format: "gemini", body: [{ functionCall: { id: 7, name: "t" } }], at: "/0/functionCall/id" },
    "Gemini's call is no object": { format: "gemini", body: { functionCall: "t" }, at: "/functionCall" },
    "Gemini's call has no name": { format: "gemini", body: { functionCall: { args: {} } }, at: "/functionCall/name" },
    "an id is endless": { format: "anthropic", body: { type: "tool_use", id: "x".repeat(257), name: "t" }, at: "/id" },
    "a call has no name": { format: "openai-chat", body: { type: "function", id: "a", function: {} }, at: "/function/name" },
    "a call names no function": { format: "openai-chat", body: [{ type: "function", id: "a", name: "t" }], at: "/0/function" },
    "there are 129 calls": { format: "anthropic", body: Array(129).fill({ type: "tool_use", id: "a", name: "t", input: {} }), at: "/128" },
  };
  for (const [name, { format, body, at }] of Object.entries(cases)) {
    it(name, () => {
      assert.throws(
        () => toolCallsFrom(format, body),
        (thrown) => thrown instanceof Invalid && thrown.code === "CallBlockInvalid" && thrown.at === at,
      );
    });
  }
});

describe("an answer has one result a call, in order, in the shape of", () => {
  const answers: CallAnswer[] = [
    { id: "a", name: "x", text: "fine", structured: { result: "fine" }, isError: false },
    { id: "b", name: "y", text: "no such file", isError: true },
    { id: "c", name: "z", text: " ", isError: false },
  ];
  it("Anthropic's message", () => {
    const message: Anthropic.MessageParam = {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "a", content: "fine" },
        { type: "tool_result", tool_use_id: "b", content: "no such file", is_error: true },
        { type: "tool_result", tool_use_id: "c", content: "Done." },
      ],
    };
    assert.deepEqual(answerFor("anthropic", answers), message);
  });
  it("Chat Completions' messages", () => {
    const messages: OpenAI.ChatCompletionToolMessageParam[] = [
      { role: "tool", tool_call_id: "a", content: "fine" },
      { role: "tool", tool_call_id: "b", content: "Error: no such file" },
      { role: "tool", tool_call_id: "c", content: "Done." },
    ];
    assert.deepEqual(answerFor("openai-chat", answers), messages);
  });
  it("Responses' items", () => {
    const items: OpenAI.Responses.ResponseInputItem.FunctionCallOutput[] = [
      { type: "function_call_output", call_id: "a", output: "fine" },
      { type: "function_call_output", call_id: "b", output: "Error: no such file" },
      { type: "function_call_output", call_id: "c", output: "Done." },
    ];
    assert.deepEqual(answerFor("openai-responses", answers), items);
  });
  it("Gemini's content", () => {
    const content: GeminiContent = {
      role: "user",
      parts: [
        { functionResponse: { id: "a", name: "x", response: { output: "fine" } } },
        { functionResponse: { id: "b", name: "y", response: { error: "no such file" } } },
        { functionResponse: { id: "c", name: "z", response: { output: "Done." } } },
      ],
    };
    assert.deepEqual(answerFor("gemini", answers), content);
  });
  it("Bedrock's message", () => {
    const message: BedrockMessage = {
      role: "user",
      content: [
        { toolResult: { toolUseId: "a", content: [{ text: "fine" }] } },
        { toolResult: { toolUseId: "b", content: [{ text: "Error: no such file" }] } },
        { toolResult: { toolUseId: "c", content: [{ text: "Done." }] } },
      ],
    };
    assert.deepEqual(answerFor("bedrock", answers), message);
  });
});

describe("Gemini's answer", () => {
  const answered = (answer: Partial<CallAnswer>): JsonValue => {
    const message = answerFor("gemini", [{ id: null, name: "t", text: "", isError: false, ...answer }]);
    return JSON.parse(compactJson(message)).parts[0].functionResponse;
  };
  const cases: Record<string, { answer: Partial<CallAnswer>; response: JsonValue }> = {
    "has no id where the call had none": { answer: { text: "x" }, response: { output: "x" } },
    "holds an object as it is": {
      answer: { text: '{"n":1,"s":"x"}', structured: { n: 1, s: "x" } },
      response: { output: { n: 1, s: "x" } },
    },
    "holds a list without what was put around it": {
      answer: { text: '["a"]', structured: { result: ["a"] } },
      response: { output: ["a"] },
    },
    "holds an object with a field called result as it is": {
      answer: { text: '{"result":["a"]}', structured: { result: ["a"] } },
      response: { output: { result: ["a"] } },
    },
    "is text where the text says something else than the value": {
      answer: { text: "It is warm.", structured: { celsius: 25 } },
      response: { output: "It is warm." },
    },
    "is text where a number would be rounded": {
      answer: { text: '{"n":18446744073709551615}', structured: { n: 18446744073709551615n } },
      response: { output: '{"n":18446744073709551615}' },
    },
  };
  for (const [name, { answer, response }] of Object.entries(cases)) {
    it(name, () => assert.deepEqual(answered(answer), { name: "t", response }));
  }
});
