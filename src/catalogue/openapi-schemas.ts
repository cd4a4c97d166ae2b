import type { DeclarationFormat, TurnFormat } from "../declaration/formats.ts";

/** JSON Schemas of what the catalogue takes and gives: the components of its OpenAPI document. */

export const ref = (name: string): { readonly $ref: string } => ({ $ref: `#/components/schemas/${name}` });

type Properties = Readonly<Record<string, object>>;

/** An object of exactly these members. */
const closed = (properties: Properties, required: readonly string[]): object => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

const text = (description?: string): object => ({ type: "string", ...(description !== undefined && { description }) });
const schemaObject = { type: "object", description: "A JSON Schema in the dialect that the provider takes." };
const ttl = { enum: ["5m", "1h"] };
const words = { name: text(), description: text() };
const strict = { type: "boolean" };
const deferLoading = { const: true, description: "To be found by the provider's own search." };
const base64 = { type: "string", contentEncoding: "base64" };

/** The name of the schema of one entry in a list of declarations. */
export const toolSchemas: Readonly<Record<DeclarationFormat, string>> = {
  neutral: "Declaration",
  anthropic: "AnthropicTool",
  "openai-chat": "OpenAiChatTool",
  "openai-responses": "OpenAiResponsesTool",
  gemini: "GeminiTool",
  bedrock: "BedrockTool",
  mcp: "McpTool",
};

/** The name of the schema of one declaration by itself: Gemini has several in one tool. */
export const declarationSchemas: typeof toolSchemas = { ...toolSchemas, gemini: "GeminiFunction" };

const tools = {
  Declaration: closed(
    {
      ...words,
      parameters: { type: "object", description: "JSON Schema 2020-12." },
      cache: ttl,
      tool: text("Catalogue id, `namespace/grant`; not for the provider."),
      outputSchema: { type: "object", description: "Of `structuredContent`, where the tool says so." },
      annotations: { type: "object", description: "What the tool says of its effects, as reviewed." },
    },
    ["name", "description", "parameters"],
  ),
  AnthropicTool: {
    anyOf: [
      closed(
        {
          ...words,
          input_schema: schemaObject,
          strict,
          cache_control: closed({ type: { const: "ephemeral" }, ttl }, ["type"]),
          defer_loading: deferLoading,
        },
        ["name", "input_schema"],
      ),
      closed({ type: { type: "string", pattern: "^tool_search_tool_(bm25|regex)_[0-9]{8}$" }, name: text() }, ["type", "name"]),
    ],
  },
  OpenAiChatTool: closed(
    { type: { const: "function" }, function: closed({ ...words, parameters: schemaObject, strict }, ["name", "parameters", "strict"]) },
    ["type", "function"],
  ),
  OpenAiResponsesTool: {
    anyOf: [
      closed({ type: { const: "function" }, ...words, parameters: schemaObject, strict, defer_loading: deferLoading }, [
        "type",
        "name",
        "parameters",
        "strict",
      ]),
      closed({ type: { const: "tool_search" } }, ["type"]),
    ],
  },
  GeminiFunction: closed({ ...words, parametersJsonSchema: schemaObject }, ["name"]),
  GeminiTool: closed({ functionDeclarations: { type: "array", items: ref("GeminiFunction"), minItems: 1 } }, ["functionDeclarations"]),
  BedrockTool: {
    anyOf: [
      closed({ toolSpec: closed({ ...words, inputSchema: closed({ json: schemaObject }, ["json"]), strict }, ["name", "inputSchema"]) }, [
        "toolSpec",
      ]),
      closed({ cachePoint: closed({ type: { const: "default" }, ttl }, ["type"]) }, ["cachePoint"]),
    ],
  },
  McpTool: closed({ ...words, inputSchema: { type: "object" }, outputSchema: { type: "object" }, annotations: { type: "object" } }, [
    "name",
    "inputSchema",
  ]),
};

/** The name of the schema of what answers a turn. */
export const answerSchemas: Readonly<Record<TurnFormat, string>> = {
  anthropic: "AnthropicAnswer",
  "openai-chat": "OpenAiChatAnswer",
  "openai-responses": "OpenAiResponsesAnswer",
  gemini: "GeminiAnswer",
  bedrock: "BedrockAnswer",
};

const list = (items: object): object => ({ type: "array", items, minItems: 1 });
const source = (mediaTypes: object): object =>
  closed({ type: { const: "base64" }, media_type: mediaTypes, data: base64 }, ["type", "media_type", "data"]);
const imageFormats = ["png", "jpeg", "gif", "webp"];

const answers = {
  AnthropicAnswer: closed(
    {
      role: { const: "user" },
      content: list(
        closed(
          {
            type: { const: "tool_result" },
            tool_use_id: text(),
            content: {
              anyOf: [
                text(),
                list({
                  anyOf: [
                    closed({ type: { const: "text" }, text: text() }, ["type", "text"]),
                    closed({ type: { const: "image" }, source: source({ enum: imageFormats.map((kind) => `image/${kind}`) }) }, [
                      "type",
                      "source",
                    ]),
                    closed({ type: { const: "document" }, source: source({ const: "application/pdf" }) }, ["type", "source"]),
                  ],
                }),
              ],
            },
            is_error: { const: true },
          },
          ["type", "tool_use_id", "content"],
        ),
      ),
    },
    ["role", "content"],
  ),
  OpenAiChatAnswer: list(closed({ role: { const: "tool" }, tool_call_id: text(), content: text() }, ["role", "tool_call_id", "content"])),
  OpenAiResponsesAnswer: list(
    closed(
      {
        type: { const: "function_call_output" },
        call_id: text(),
        output: {
          anyOf: [
            text(),
            list({
              anyOf: [
                closed({ type: { const: "input_text" }, text: text() }, ["type", "text"]),
                closed({ type: { const: "input_image" }, image_url: text("A data URL.") }, ["type", "image_url"]),
                closed({ type: { const: "input_file" }, filename: text(), file_data: text("A data URL.") }, [
                  "type",
                  "filename",
                  "file_data",
                ]),
              ],
            }),
          ],
        },
      },
      ["type", "call_id", "output"],
    ),
  ),
  GeminiAnswer: closed(
    {
      role: { const: "user" },
      parts: list(
        closed(
          {
            functionResponse: closed(
              {
                id: text(),
                name: text(),
                response: { type: "object", description: "`output`, or `error`.", minProperties: 1 },
                parts: list(closed({ inlineData: closed({ mimeType: text(), data: base64 }, ["mimeType", "data"]) }, ["inlineData"])),
              },
              ["name", "response"],
            ),
          },
          ["functionResponse"],
        ),
      ),
    },
    ["role", "parts"],
  ),
  BedrockAnswer: closed(
    {
      role: { const: "user" },
      content: list(
        closed(
          {
            toolResult: closed(
              {
                toolUseId: text(),
                content: list({
                  anyOf: [
                    closed({ text: text() }, ["text"]),
                    closed(
                      {
                        image: closed({ format: { enum: imageFormats }, source: closed({ bytes: base64 }, ["bytes"]) }, [
                          "format",
                          "source",
                        ]),
                      },
                      ["image"],
                    ),
                    closed(
                      {
                        document: closed({ format: { const: "pdf" }, name: text(), source: closed({ bytes: base64 }, ["bytes"]) }, [
                          "format",
                          "name",
                          "source",
                        ]),
                      },
                      ["document"],
                    ),
                  ],
                }),
                status: { enum: ["success", "error"] },
              },
              ["toolUseId", "content"],
            ),
          },
          ["toolResult"],
        ),
      ),
    },
    ["role", "content"],
  ),
};

const session = { type: ["string", "null"], maxLength: 128, description: "Budgets and rates are counted for it by itself as well." };
const label = {
  sources: { type: "array", items: text(), description: "What it comes from, such as `tool:namespace/grant`." },
  trusted: { type: "boolean" },
  sensitivity: { enum: ["Public", "Internal", "Confidential", "Secret"] },
};

/** What is told of a call besides what a model reads. */
const told = {
  outcome: { enum: ["ok", "tool-error", "refused", "failed", "in-doubt"] },
  found: { type: "array", items: text(), description: "Names of tools that a search found." },
  label: { ...ref("Label"), description: "Of all that the tool answered; absent where no tool did." },
  retryAfterMs: { type: "integer", minimum: 0, description: "When a call that came too soon may be tried again." },
  reason: {
    ...closed({ call: text(), gate: { type: ["string", "null"] }, code: text(), message: text() }, ["call", "gate", "code", "message"]),
    description: "For operators: the call's id in the journal, the gate, and why.",
  },
};

const resource = { uri: text(), mimeType: text() };

const calls = {
  Call: closed(
    {
      name: text(),
      arguments: { type: "object", default: {} },
      labels: {
        type: ["object", "null"],
        description: "What is known of the arguments, by JSON pointer.",
        additionalProperties: ref("ClaimedLabel"),
      },
      session,
    },
    ["name"],
  ),
  CallAnswer: closed(
    {
      content: { type: "array", items: ref("ContentBlock"), description: "For a model." },
      structuredContent: { description: "The function's value, where it gave one." },
      isError: { type: "boolean" },
      ...told,
    },
    ["content", "isError", "outcome"],
  ),
  ContentBlock: {
    description: "As MCP's.",
    anyOf: [
      closed({ type: { const: "text" }, text: text() }, ["type", "text"]),
      closed({ type: { enum: ["image", "audio"] }, data: base64, mimeType: text() }, ["type", "data", "mimeType"]),
      closed({ type: { const: "resource_link" }, uri: text(), name: text(), description: text(), mimeType: text() }, [
        "type",
        "uri",
        "name",
      ]),
      closed(
        {
          type: { const: "resource" },
          resource: {
            anyOf: [closed({ ...resource, text: text() }, ["uri", "text"]), closed({ ...resource, blob: base64 }, ["uri", "blob"])],
          },
        },
        ["type", "resource"],
      ),
    ],
  },
  Turn: {
    description: "A tool-call block as the provider returned it, an array with those of a turn, or the message that holds them.",
    type: ["object", "array"],
  },
  LabelledTurn: closed(
    {
      turn: ref("Turn"),
      labels: {
        type: ["array", "null"],
        description: "For each call of the turn, in order, what is known of its arguments, by JSON pointer; or null.",
        items: { type: ["object", "null"], additionalProperties: ref("ClaimedLabel") },
      },
      session,
    },
    ["turn"],
  ),
  TurnAnswer: {
    description: "What to append to the conversation: one result for each call, in order.",
    anyOf: Object.values(answerSchemas).map(ref),
  },
  LabelledAnswer: closed({ answer: ref("TurnAnswer"), calls: { type: "array", items: closed(told, ["outcome"]) } }, ["answer", "calls"]),
  ClaimedLabel: { type: "object", properties: label, additionalProperties: false },
  Label: closed(label, ["sources", "trusted", "sensitivity"]),
};

export const schemas: Readonly<Record<string, object>> = {
  Error: closed(
    {
      error: closed({ code: text("Stable."), message: text(), at: text("JSON pointer into the request's body.") }, ["code", "message"]),
    },
    ["error"],
  ),
  Probe: closed({ status: text() }, ["status"]),
  ...tools,
  Declarations: {
    description: "What the provider takes as `tools`.",
    anyOf: Object.values(toolSchemas).map((name) => ({ type: "array", items: ref(name) })),
  },
  AnyDeclaration: { anyOf: Object.values(declarationSchemas).map(ref) },
  Hits: closed(
    {
      hits: {
        type: "array",
        items: closed({ score: { type: "number", minimum: 0 }, declaration: ref("AnyDeclaration") }, ["score", "declaration"]),
      },
    },
    ["hits"],
  ),
  ...calls,
  ...answers,
};
