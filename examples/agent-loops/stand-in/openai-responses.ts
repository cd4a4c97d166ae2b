import type OpenAI from "openai";
import { BadRequest, nextMove, Turns } from "./conversation.ts";

type ApiResponse = Omit<OpenAI.Responses.Response, "output_text">;

/** `POST /v1/responses`. */
export const responses = (body: OpenAI.Responses.ResponseCreateParamsNonStreaming): ApiResponse => {
  const items = typeof body.input === "string" ? [{ role: "user" as const, content: body.input }] : (body.input ?? []);
  const turns = new Turns();
  let calls: { readonly id: string; readonly name: string }[] = [];
  for (const item of items) {
    if (!("type" in item)) continue;
    if (item.type === "function_call") {
      calls.push({ id: item.call_id, name: item.name });
    } else if (item.type === "function_call_output") {
      if (calls.length > 0) turns.called(calls);
      calls = [];
      turns.answered(item.call_id, typeof item.output === "string" ? item.output : "");
    }
  }
  if (calls.length > 0) turns.called(calls);
  const tools = (body.tools ?? []).map((tool) => {
    if (tool.type !== "function" || tool.parameters?.type !== "object" || typeof tool.strict !== "boolean") {
      throw new BadRequest("tools: no function with parameters and strict");
    }
    return tool.name;
  });
  const [first] = items;
  const question = first && "content" in first && typeof first.content === "string" ? first.content : "";
  const move = nextMove({ question, tools, turns: turns.all });
  return {
    id: "resp_StandIn",
    object: "response",
    created_at: 1_800_000_000,
    status: "completed",
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: null,
    model: body.model ?? "",
    output: [
      { type: "reasoning", id: "rs_1", summary: [] },
      ...(move.kind === "text"
        ? [
            {
              type: "message" as const,
              id: "msg_1",
              role: "assistant" as const,
              status: "completed" as const,
              content: [{ type: "output_text" as const, text: move.text, annotations: [] }],
            },
          ]
        : move.calls.map(({ id, name, arguments: given }) => ({
            type: "function_call" as const,
            id: `fc_${id}`,
            call_id: id,
            name,
            arguments: JSON.stringify(given),
            status: "completed" as const,
          }))),
    ],
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: "auto",
    tools: body.tools ?? [],
    top_p: 1,
  };
};
