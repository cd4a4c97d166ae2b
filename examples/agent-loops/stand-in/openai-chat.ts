import type OpenAI from "openai";
import { BadRequest, nextMove, Turns } from "./conversation.ts";

/** `POST /v1/chat/completions`. */
export const chatCompletions = (body: OpenAI.ChatCompletionCreateParamsNonStreaming): OpenAI.ChatCompletion => {
  const turns = new Turns();
  for (const message of body.messages) {
    if (message.role === "assistant") {
      turns.called((message.tool_calls ?? []).map((call) => ({ id: call.id, name: call.type === "function" ? call.function.name : "" })));
    } else if (message.role === "tool") {
      turns.answered(message.tool_call_id, typeof message.content === "string" ? message.content : "");
    }
  }
  const tools = (body.tools ?? []).map((tool) => {
    if (tool.type !== "function" || tool.function.parameters?.type !== "object") throw new BadRequest("tools: no function with parameters");
    return tool.function.name;
  });
  const [first] = body.messages;
  const question = typeof first?.content === "string" ? first.content : "";
  const move = nextMove({ question, tools, turns: turns.all });
  return {
    id: "chatcmpl-StandIn",
    object: "chat.completion",
    created: 1_800_000_000,
    model: body.model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: move.kind === "text" ? move.text : null,
          refusal: null,
          ...(move.kind === "calls" && {
            tool_calls: move.calls.map(({ id, name, arguments: given }) => ({
              id,
              type: "function" as const,
              function: { name, arguments: JSON.stringify(given) },
            })),
          }),
        },
        logprobs: null,
        finish_reason: move.kind === "text" ? "stop" : "tool_calls",
      },
    ],
    usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
  };
};
