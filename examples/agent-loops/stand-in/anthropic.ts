import type Anthropic from "@anthropic-ai/sdk";
import { BadRequest, nextMove, Turns } from "./conversation.ts";

/** `POST /v1/messages`. */
export const messages = (body: Anthropic.MessageCreateParamsNonStreaming): Anthropic.Message => {
  const turns = new Turns();
  for (const { role, content } of body.messages) {
    const blocks = typeof content === "string" ? [] : content;
    if (role === "assistant") turns.called(blocks.filter((block) => block.type === "tool_use"));
    for (const block of blocks) {
      if (role === "user" && block.type === "tool_result") turns.answered(block.tool_use_id, textOf(block.content));
    }
  }
  const tools = (body.tools ?? []).map((tool) => {
    if (!("input_schema" in tool) || tool.input_schema.type !== "object") throw new BadRequest("tools: a tool has no input_schema");
    return tool.name;
  });
  const [first] = body.messages;
  const question = typeof first?.content === "string" ? first.content : "";
  const move = nextMove({ question, tools, turns: turns.all });
  return {
    id: "msg_01StandIn",
    type: "message",
    role: "assistant",
    model: body.model,
    container: null,
    diagnostics: null,
    content:
      move.kind === "text"
        ? [{ type: "text", text: move.text, citations: null }]
        : [
            { type: "text", text: "Let me look.", citations: null },
            ...move.calls.map(({ id, name, arguments: input }) => ({
              type: "tool_use" as const,
              id,
              name,
              input,
              caller: { type: "direct" as const },
            })),
          ],
    stop_reason: move.kind === "text" ? "end_turn" : "tool_use",
    stop_sequence: null,
    stop_details: null,
    usage: usage(),
  };
};

const usage = (): Anthropic.Usage => ({
  cache_creation: null,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
  inference_geo: null,
  input_tokens: 100,
  output_tokens: 20,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: "standard",
  speed: null,
});

const textOf = (content: Anthropic.ToolResultBlockParam["content"]): string =>
  typeof content === "string" ? content : (content ?? []).map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
