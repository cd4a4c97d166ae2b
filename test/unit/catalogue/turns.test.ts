import assert from "node:assert/strict";
import { test } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import type { Message as BedrockMessage } from "@aws-sdk/client-bedrock-runtime";
import type { Content as GeminiContent } from "@google/genai";
import type OpenAI from "openai";
import { refusalText } from "../../../src/catalogue/call-end.ts";
import { serving } from "./serving.ts";

/** A turn with a good call, one that fits no schema, one of an unknown tool: written in the types of the providers' own SDKs. */
const anthropicTurn: Anthropic.ContentBlockParam[] = [
  { type: "text", text: "I'll look." },
  { type: "tool_use", id: "toolu_1", name: "list_issues", input: { repo: "octo/app" } },
  { type: "tool_use", id: "toolu_2", name: "list_issues", input: { repo: 7 } },
  { type: "tool_use", id: "toolu_3", name: "delete_everything", input: {} },
];

test("a turn of Anthropic's gets the user message that answers each of its calls, in order", async () => {
  await using served = await serving();
  const answer = await served.post("/v1/calls?format=anthropic", JSON.stringify(anthropicTurn));
  assert.equal(answer.status, 200);
  const message: Anthropic.MessageParam = JSON.parse(answer.text);
  assert.equal(message.role, "user");
  const [good, misfit, unknown] = message.content as Anthropic.ToolResultBlockParam[];
  assert.deepEqual(good, { type: "tool_result", tool_use_id: "toolu_1", content: '["an issue"]' });
  assert.equal(misfit?.tool_use_id, "toolu_2");
  assert.equal(misfit?.is_error, true);
  assert.match(String(misfit?.content), /\/repo/);
  assert.deepEqual(unknown, { type: "tool_result", tool_use_id: "toolu_3", content: refusalText, is_error: true });
  assert.equal(served.sent.length, 1);
  assert.deepEqual(served.journal.map((entry) => entry.outcome).sort(), ["failed", "ok", "refused"]);
});

test("a single block is answered like a turn of one", async () => {
  await using served = await serving();
  const answer = await served.post("/v1/calls?format=anthropic", JSON.stringify(anthropicTurn[1]));
  assert.equal(answer.text, '{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"[\\"an issue\\"]"}]}');
});

test("OpenAI's tool calls get one tool message each; text that is no JSON is that call's error alone", async () => {
  await using served = await serving();
  const turn: OpenAI.ChatCompletionMessageToolCall[] = [
    { type: "function", id: "call_1", function: { name: "list_issues", arguments: '{"repo": "octo/' } },
    { type: "function", id: "call_2", function: { name: "list_issues", arguments: '{"repo": "octo/app"}' } },
  ];
  const answer = await served.post("/v1/calls?format=openai-chat", JSON.stringify(turn));
  assert.equal(answer.status, 200);
  const [broken, good]: OpenAI.ChatCompletionToolMessageParam[] = JSON.parse(answer.text);
  assert.equal(broken?.tool_call_id, "call_1");
  assert.match(String(broken?.content), /^Error: not JSON/);
  assert.deepEqual(good, { role: "tool", tool_call_id: "call_2", content: '["an issue"]' });
});

test("OpenAI's response items get one output each", async () => {
  await using served = await serving();
  const turn: OpenAI.Responses.ResponseFunctionToolCall[] = [
    { type: "function_call", call_id: "call_1", name: "list_issues", arguments: '{"repo": "octo/app"}' },
  ];
  const answer = await served.post("/v1/calls?format=openai-responses", JSON.stringify(turn));
  assert.deepEqual(JSON.parse(answer.text), [{ type: "function_call_output", call_id: "call_1", output: '["an issue"]' }]);
});

test("Gemini's calls get one content with a part each, with their ids where they have one", async () => {
  await using served = await serving();
  const turn: GeminiContent = {
    role: "model",
    parts: [
      { text: "I'll look." },
      { functionCall: { name: "list_issues", args: { repo: "octo/app" } } },
      { functionCall: { id: "fc-2", name: "list_issues", args: { repo: 7 } } },
    ],
  };
  const answer = await served.post("/v1/calls?format=gemini", JSON.stringify(turn));
  assert.equal(answer.status, 200);
  const content: GeminiContent = JSON.parse(answer.text);
  assert.equal(content.role, "user");
  const [good, misfit] = content.parts ?? [];
  assert.deepEqual(good, { functionResponse: { name: "list_issues", response: { output: '["an issue"]' } } });
  assert.equal(misfit?.functionResponse?.id, "fc-2");
  assert.match(String(misfit?.functionResponse?.response?.error), /\/repo/);
});

test("Bedrock's calls get one message with a result each", async () => {
  await using served = await serving();
  const turn: BedrockMessage = {
    role: "assistant",
    content: [
      { text: "I'll look." },
      { toolUse: { toolUseId: "tooluse_1", name: "list_issues", input: { repo: "octo/app" } } },
      { toolUse: { toolUseId: "tooluse_2", name: "delete_everything", input: {} } },
    ],
  };
  const answer = await served.post("/v1/calls?format=bedrock", JSON.stringify(turn));
  assert.equal(answer.status, 200);
  const message: BedrockMessage = {
    role: "user",
    content: [
      { toolResult: { toolUseId: "tooluse_1", content: [{ text: '["an issue"]' }] } },
      { toolResult: { toolUseId: "tooluse_2", content: [{ text: `Error: ${refusalText}` }] } },
    ],
  };
  assert.deepEqual(JSON.parse(answer.text), message);
});

test("what a tool shows besides words reaches the model's next turn", async () => {
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const content = [
    { type: "text", text: "Here." },
    { type: "image", data: png, mimeType: "image/png" },
  ] as const;
  const dispatch = async () =>
    ({ kind: "replied", reply: { outcome: "ok", text: "Here.", content, stats: { queueMs: 0, runMs: 0 } } }) as const;
  await using served = await serving({ dispatch });
  const answer = await served.post("/v1/calls?format=anthropic", JSON.stringify(anthropicTurn[1]));
  const message: Anthropic.MessageParam = {
    role: "user",
    content: [
      {
        type: "tool_result",
        tool_use_id: "toolu_1",
        content: [
          { type: "text", text: "Here." },
          { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
        ],
      },
    ],
  };
  assert.deepEqual(JSON.parse(answer.text), message);
});

test("arguments may nest as deeply in a provider's message as by themselves", async () => {
  await using served = await serving();
  const nested = (depth: number): unknown => (depth === 0 ? 7 : [nested(depth - 1)]);
  const turn = { role: "model", parts: [{ functionCall: { name: "list_issues", args: { repo: nested(60) } } }] };
  const answer = await served.post("/v1/calls?format=gemini", JSON.stringify(turn));
  assert.equal(answer.status, 200);
  assert.match(answer.text, /\/repo/);
});

test("MCP's calls have an endpoint of their own", async () => {
  await using served = await serving();
  const answer = await served.post("/v1/calls?format=mcp", JSON.stringify({ name: "list_issues" }));
  assert.equal(answer.status, 400);
  assert.match(answer.text, /\/mcp/);
});

test("a call that a fault of ours ends is answered too, and so are the others of its turn", async () => {
  let calls = 0;
  const dispatch = async () => {
    calls++;
    if (calls === 1) throw new Error("a fault with /secret/paths");
    return { kind: "replied", reply: { outcome: "ok", text: "fine", stats: { queueMs: 0, runMs: 0 } } } as const;
  };
  await using served = await serving({ dispatch });
  const turn = ["toolu_1", "toolu_2"].map((id) => ({ type: "tool_use", id, name: "list_issues", input: { repo: "octo/app" } }));
  const answer = await served.post("/v1/calls?format=anthropic", JSON.stringify(turn));
  assert.equal(answer.status, 200);
  const { content } = JSON.parse(answer.text) as { content: Anthropic.ToolResultBlockParam[] };
  assert.deepEqual(
    content.map((result) => [result.tool_use_id, result.is_error ?? false]),
    [
      ["toolu_1", true],
      ["toolu_2", false],
    ],
  );
  assert.ok(!answer.text.includes("secret"));
  assert.equal(served.faults.length, 1);
  assert.deepEqual(
    served.journal.map((entry) => [entry.outcome, entry.code]),
    [
      ["failed", "Internal"],
      ["ok", null],
    ],
  );
});

test("more calls than are let run at a time are all answered, in order", async () => {
  await using served = await serving();
  const turn = Array.from({ length: 40 }, (_, index) => ({
    type: "tool_use",
    id: `toolu_${index}`,
    name: "list_issues",
    input: { repo: `octo/${index}` },
  }));
  const answer = await served.post("/v1/calls?format=anthropic", JSON.stringify(turn));
  const { content } = JSON.parse(answer.text) as { content: { tool_use_id: string }[] };
  assert.deepEqual(
    content.map((result) => result.tool_use_id),
    turn.map((call) => call.id),
  );
});

const noTurns: Record<string, string> = {
  "a list without calls": '[{"type":"text","text":"hello"}]',
  "nothing in it": "[]",
  "a call without an id": '[{"type":"tool_use","name":"list_issues","input":{}}]',
  "a turn past all bounds": JSON.stringify(
    Array.from({ length: 129 }, (_, index) => ({ type: "tool_use", id: `t${index}`, name: "x", input: {} })),
  ),
};
for (const [what, body] of Object.entries(noTurns)) {
  test(`what holds no calls to answer is told so: ${what}`, async () => {
    await using served = await serving();
    const answer = await served.post("/v1/calls?format=anthropic", body);
    assert.equal(answer.status, 400);
    assert.equal(JSON.parse(answer.text).error.code, "CallBlockInvalid");
  });
}
