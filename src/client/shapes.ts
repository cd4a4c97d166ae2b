import type { CacheTtl } from "../api/declaration.ts";

/** A JSON Schema whose root is an object, as every provider wants it. */
export interface ObjectSchema {
  type: "object";
  properties?: Record<string, unknown>;
  required?: string[];
  [keyword: string]: unknown;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What the catalogue serves, by format; each is what that provider's SDK takes in its list of tools. */
export interface ToolShapes {
  neutral: { name: string; description: string; parameters: ObjectSchema; cache?: CacheTtl; tool?: string };
  anthropic:
    | {
        name: string;
        description?: string;
        input_schema: ObjectSchema;
        strict?: boolean;
        cache_control?: { type: "ephemeral"; ttl?: CacheTtl };
        defer_loading?: boolean;
      }
    | { type: "tool_search_tool_bm25_20251119"; name: "tool_search_tool_bm25" }
    | { type: "tool_search_tool_regex_20251119"; name: "tool_search_tool_regex" };
  "openai-chat": {
    type: "function";
    function: { name: string; description?: string; parameters: { [keyword: string]: unknown }; strict: boolean };
  };
  "openai-responses":
    | {
        type: "function";
        name: string;
        description?: string;
        parameters: { [keyword: string]: unknown };
        strict: boolean;
        defer_loading?: boolean;
      }
    | { type: "tool_search" };
  gemini: { functionDeclarations: { name: string; description?: string; parametersJsonSchema?: unknown }[] };
  bedrock:
    | { toolSpec: { name: string; description?: string; inputSchema: { json: { [keyword: string]: Json } }; strict?: boolean } }
    | { cachePoint: { type: "default"; ttl?: CacheTtl } };
  mcp: {
    name: string;
    description?: string;
    inputSchema: ObjectSchema;
    outputSchema?: { [keyword: string]: unknown };
    annotations?: { [hint: string]: unknown };
  };
}

/** One declaration by itself: Gemini has several in one tool. */
export type OneDeclaration<Format extends ToolFormat> = Format extends "gemini"
  ? ToolShapes["gemini"]["functionDeclarations"][number]
  : ToolShapes[Format];

type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

/** A part of an answer, where it is not one text: docs/catalogue.md says what becomes of pictures and files. */
export type AnthropicPart =
  | { type: "text"; text: string }
  | { type: "image"; source: { type: "base64"; media_type: ImageType; data: string } }
  | { type: "document"; source: { type: "base64"; media_type: "application/pdf"; data: string } };

export type ResponsesPart =
  | { type: "input_text"; text: string }
  | { type: "input_image"; image_url: string }
  | { type: "input_file"; filename: string; file_data: string };

export type BedrockPart =
  | { text: string }
  | { image: { format: "png" | "jpeg" | "gif" | "webp"; source: { bytes: Uint8Array<ArrayBuffer> } } }
  | { document: { format: "pdf"; name: string; source: { bytes: Uint8Array<ArrayBuffer> } } };

/** What answers a turn's calls, by format: to append to the conversation as it is. */
export interface TurnAnswers {
  anthropic: {
    role: "user";
    content: { type: "tool_result"; tool_use_id: string; content: string | AnthropicPart[]; is_error?: boolean }[];
  };
  "openai-chat": { role: "tool"; tool_call_id: string; content: string }[];
  "openai-responses": { type: "function_call_output"; call_id: string; output: string | ResponsesPart[] }[];
  gemini: {
    role: "user";
    parts: {
      functionResponse: {
        id?: string;
        name: string;
        response: Record<string, unknown>;
        parts?: { inlineData: { mimeType: string; data: string } }[];
      };
    }[];
  };
  bedrock: { role: "user"; content: { toolResult: { toolUseId: string; content: BedrockPart[]; status?: "success" | "error" } }[] };
}

export type ToolFormat = keyof ToolShapes;
export type TurnFormat = keyof TurnAnswers;

/** What became of a call. `refused` and `failed` did nothing; `in-doubt` may have done something, and nobody knows. */
export type CallOutcome = "ok" | "tool-error" | "refused" | "failed" | "in-doubt";

/** What is known of a call besides what a model reads. */
export interface CallReport {
  outcome: CallOutcome;
  /** Names of tools that a search found. */
  found?: string[];
  /** Of what the tool answered, all of it. */
  label?: { sources: string[]; trusted: boolean; sensitivity: string };
  /** When a call that came too soon may be tried again. */
  retryAfterMs?: number;
  /** For operators only. */
  reason?: { call: string; gate: string | null; code: string; message: string };
}

/** What became of a call that was made by itself. */
export interface CallResult extends CallReport {
  /** For a model. */
  content: ({ type: "text"; text: string } | { type: string; [member: string]: unknown })[];
  /** The function's value. Integers beyond 2⁵³ are exact in `content` only. */
  structuredContent?: unknown;
  isError: boolean;
}

export interface SearchHit<Format extends ToolFormat> {
  score: number;
  declaration: OneDeclaration<Format>;
}
