/**
 * A part of what a tool answers, in MCP's shape of a content block (specification 2025-11-25, "Tool Result"). `data` and `blob` are base64. Typed tools answer
 * with one text; untyped ones with any of these.
 */
export type ContentBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image" | "audio"; readonly data: string; readonly mimeType: string }
  | {
      readonly type: "resource_link";
      readonly uri: string;
      readonly name: string;
      readonly description?: string;
      readonly mimeType?: string;
    }
  | { readonly type: "resource"; readonly resource: EmbeddedResource };

export type EmbeddedResource =
  | { readonly uri: string; readonly mimeType?: string; readonly text: string }
  | { readonly uri: string; readonly mimeType?: string; readonly blob: string };
