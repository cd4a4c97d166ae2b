import { Invalid } from "../api/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { UntypedTool } from "../api/untyped.ts";

/**
 * Everything that the far side of an untyped tool says of it, as canonical JSON (RFC 8785): key order and white space don't count, all else does. What is not said is
 * left out.
 *
 *   { "server": "issues", "name": "list_issues", "title": "List issues", "description": "…", "inputSchema": {…}, "outputSchema": {…}, "annotations": {…},
 *     "instructions": "…" }
 */
export const untypedText = (tool: UntypedTool): string => canonicalJson(untypedObject(tool));

const members = ["server", "name", "title", "description", "inputSchema", "outputSchema", "annotations", "instructions"] as const;

const untypedObject = (tool: UntypedTool): JsonObject =>
  jsonObject(members.flatMap((member) => (tool[member] === null ? [] : [[member, tool[member]] as const])));

/** The tool whose text this object is; null where it is none. */
export const untypedIn = (said: JsonObject): UntypedTool | null => {
  const { name, inputSchema } = said;
  if (typeof name !== "string" || !isJsonObject(inputSchema)) return null;
  return {
    form: "untyped",
    name,
    inputSchema,
    title: textOrNull(said.title),
    description: textOrNull(said.description),
    outputSchema: objectOrNull(said.outputSchema),
    annotations: objectOrNull(said.annotations),
    server: textOrNull(said.server),
    instructions: textOrNull(said.instructions),
  };
};

const textOrNull = (value: JsonValue | undefined): string | null => {
  if (value === undefined || typeof value === "string") return value ?? null;
  throw new Invalid("DefinitionMalformed", "the text is no definition of a tool: a text is missing");
};

const objectOrNull = (value: JsonValue | undefined): JsonObject | null => {
  if (value === undefined) return null;
  if (isJsonObject(value)) return value;
  throw new Invalid("DefinitionMalformed", "the text is no definition of a tool: an object is missing");
};
