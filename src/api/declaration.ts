import type { JsonObject } from "./json.ts";

/**
 * A tool as the model is told of it, in no provider's shape.
 *
 *   { "name": "list_issues", "description": "List the issues in a repository.", "parameters": { "type": "object", … } }
 *
 * `tool` is the catalogue id (`namespace/grant`); it is never sent to a provider and no cache key depends on it.
 */
export interface Declaration {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly cache?: CacheTtl;
  readonly tool?: string;
  /** What a success gives as structured data (JSON Schema), where that is known. Told in MCP's form alone. */
  readonly outputSchema?: JsonObject;
  /** MCP's hints, as they follow from the review. Told in MCP's form alone. */
  readonly annotations?: JsonObject;
}

export type CacheTtl = "5m" | "1h";
