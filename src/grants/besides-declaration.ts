import { type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import { isUntyped, type ToolDefinition } from "../api/untyped.ts";

/**
 * What an untyped tool says of itself besides what a grant's declaration says for it, by what it is: a client over MCP is given some of it, and its own model may read it.
 * Empty for a typed tool.
 */
export const besidesDeclaration = (tool: ToolDefinition | null): JsonObject => {
  if (tool === null || !isUntyped(tool)) return {};
  const said: readonly [string, JsonValue | null][] = [
    ["title", tool.title],
    ["output schema", tool.outputSchema],
    ["annotations", tool.annotations],
    ["server's name", tool.server],
    ["server's instructions", tool.instructions],
  ];
  return jsonObject(said.filter(([, value]) => value !== null));
};
