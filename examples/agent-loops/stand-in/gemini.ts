import type { Content, FunctionCall, GenerateContentResponse, Part, Tool } from "@google/genai";
import { BadRequest, nextMove, Turns } from "./conversation.ts";

/** `POST /v1/models/{model}:generateContent`: the body that the SDK makes of its parameters. */
export const generateContent = (body: {
  readonly contents: readonly Content[];
  readonly tools?: readonly Tool[];
}): Pick<GenerateContentResponse, "candidates" | "modelVersion" | "responseId" | "usageMetadata"> => {
  const turns = new Turns();
  for (const { role, parts = [] } of body.contents) {
    if (role === "model") turns.called(parts.flatMap(({ functionCall }) => (functionCall ? [identified(functionCall)] : [])));
    for (const { functionResponse } of parts) {
      if (role === "user" && functionResponse) turns.answered(functionResponse.id ?? "", JSON.stringify(functionResponse.response));
    }
  }
  const tools = (body.tools ?? []).flatMap(({ functionDeclarations = [] }) => {
    if (functionDeclarations.length === 0) throw new BadRequest("tools: an entry has no functionDeclarations");
    return functionDeclarations.map(({ name = "" }) => name);
  });
  const move = nextMove({ question: body.contents[0]?.parts?.[0]?.text ?? "", tools, turns: turns.all });
  const parts: Part[] =
    move.kind === "text"
      ? [{ text: move.text }]
      : move.calls.map(({ id, name, arguments: args }) => ({
          functionCall: { id, name, args: { ...args } },
          thoughtSignature: "c3RhbmQtaW4=",
        }));
  return {
    candidates: [{ index: 0, content: { role: "model", parts } }],
    modelVersion: "stand-in",
    responseId: "stand-in",
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 },
  };
};

const identified = ({ id = "", name = "" }: FunctionCall): { id: string; name: string } => ({ id, name });
