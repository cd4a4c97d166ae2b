import type { ContentBlock, ConverseCommandInput, ConverseCommandOutput, Message } from "@aws-sdk/client-bedrock-runtime";
import { BadRequest, nextMove, Turns } from "./conversation.ts";

/** `POST /model/{model}/converse`. */
export const converse = (body: Omit<ConverseCommandInput, "modelId">): Omit<ConverseCommandOutput, "$metadata"> => {
  const turns = new Turns();
  for (const { role, content = [] } of body.messages ?? []) {
    if (role === "assistant") {
      turns.called(content.flatMap(({ toolUse }) => (toolUse ? [{ id: toolUse.toolUseId ?? "", name: toolUse.name ?? "" }] : [])));
    }
    for (const { toolResult } of content) {
      if (role === "user" && toolResult) turns.answered(toolResult.toolUseId ?? "", textOf(toolResult.content));
    }
  }
  const tools = (body.toolConfig?.tools ?? []).flatMap(({ toolSpec, cachePoint }) => {
    if (cachePoint) return [];
    if (!toolSpec?.name || toolSpec.inputSchema?.json === undefined) throw new BadRequest("toolConfig: a tool has no inputSchema");
    return [toolSpec.name];
  });
  const move = nextMove({ question: body.messages?.[0]?.content?.[0]?.text ?? "", tools, turns: turns.all });
  const content: ContentBlock[] =
    move.kind === "text"
      ? [{ text: move.text }]
      : move.calls.map(({ id, name, arguments: input }) => ({ toolUse: { toolUseId: id, name, input: { ...input } } }));
  const message: Message = { role: "assistant", content };
  return {
    output: { message },
    stopReason: move.kind === "text" ? "end_turn" : "tool_use",
    usage: { inputTokens: 100, outputTokens: 20, totalTokens: 120 },
    metrics: { latencyMs: 1 },
  };
};

type Results = NonNullable<NonNullable<ContentBlock["toolResult"]>["content"]>;

const textOf = (content: Results | undefined): string => (content ?? []).map(({ text }) => text ?? "[no text]").join("");
