import type { CacheTtl } from "../api/declaration.ts";
import type { JsonObject } from "../api/json.ts";

/** A JSON Schema whose root is an object, as every provider wants it. */
export interface ObjectSchema {
  type: "object";
  properties?: Record<string, unknown>;
  required?: string[];
  [keyword: string]: unknown;
}

/** What the catalogue serves, by format; each is what that provider's SDK takes in its list of tools. */
export interface ToolShapes {
  neutral: { name: string; description: string; parameters: ObjectSchema; cache?: CacheTtl; tool?: string };
  anthropic: {
    name: string;
    description?: string;
    input_schema: ObjectSchema;
    strict?: boolean;
    cache_control?: { type: "ephemeral"; ttl?: CacheTtl };
  };
  "openai-chat": { type: "function"; function: { name: string; description?: string; parameters: ObjectSchema; strict: boolean } };
  "openai-responses": { type: "function"; name: string; description?: string; parameters: ObjectSchema; strict: boolean };
}

/** What answers a turn's calls, by format: to append to the conversation as it is. */
export interface TurnAnswers {
  anthropic: { role: "user"; content: { type: "tool_result"; tool_use_id: string; content: string; is_error?: boolean }[] };
  "openai-chat": { role: "tool"; tool_call_id: string; content: string }[];
  "openai-responses": { type: "function_call_output"; call_id: string; output: string }[];
}

export type ToolFormat = keyof ToolShapes;
export type TurnFormat = keyof TurnAnswers;

/** What became of a call that was made by itself. */
export interface CallResult {
  /** For a model. */
  content: { type: "text"; text: string }[];
  /** The function's value. Integers beyond 2⁵³ are exact in `content` only. */
  structuredContent?: JsonObject;
  isError: boolean;
  /** `refused` and `failed` did nothing; `in-doubt` may have done something, and nobody knows. */
  outcome: "ok" | "tool-error" | "refused" | "failed" | "in-doubt";
  /** For operators only. */
  reason?: { call: string; gate: string | null; code: string; message: string };
}

export interface SearchHit<Format extends ToolFormat> {
  score: number;
  declaration: ToolShapes[Format];
}
