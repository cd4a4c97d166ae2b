import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson, type JsonValue, parseJson } from "../../../src/api/json.ts";
import type { ProviderFormat } from "../../../src/declaration/formats.ts";
import { answerFor, toolCallsFrom } from "../../../src/translate/provider-calls.ts";

const spelled = (format: ProviderFormat, body: JsonValue): string[] =>
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

describe("calls are read", () => {
  const cases: Record<string, { format: ProviderFormat; body: unknown; calls: string[] }> = {
    "from Anthropic's content, skipping the rest": {
      format: "anthropic",
      body: anthropicMessage,
      calls: ['toolu_1 list_issues {"repo":"o/r"}', "toolu_2 now {}"],
    },
    "from one of Anthropic's blocks": { format: "anthropic", body: anthropicMessage[1], calls: ['toolu_1 list_issues {"repo":"o/r"}'] },
    "from Chat Completions, with the error of each text that is no object": {
      format: "openai-chat",
      body: chatCalls,
      calls: ['call_1 list_issues {"repo":"o/r"}', "call_2 now {}", "call_3 now JsonSyntax", "call_4 now ArgumentsNotObject"],
    },
    "from Responses, skipping the rest": {
      format: "openai-responses",
      body: responsesItems,
      calls: ['call_1 list_issues {"n":18446744073709551615}'],
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
  const cases: Record<string, { format: ProviderFormat; body: JsonValue; at: string }> = {
    "nothing in it is a call": { format: "anthropic", body: [{ type: "text", text: "Hello." }], at: "" },
    "it is empty": { format: "openai-chat", body: [], at: "" },
    "it is text": { format: "openai-responses", body: "call", at: "" },
    "a call has no id": { format: "anthropic", body: [{ type: "tool_use", name: "t", input: {} }], at: "/0/id" },
    "an id is no text": { format: "openai-responses", body: { type: "function_call", call_id: 7, name: "t" }, at: "/call_id" },
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

describe("an answer has one result an id, in order, in the shape of", () => {
  const answers = [
    { id: "a", text: "fine", isError: false },
    { id: "b", text: "no such file", isError: true },
    { id: "c", text: "", isError: false },
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
});
