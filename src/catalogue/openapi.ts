import { declarationFormats } from "../declaration/formats.ts";
import { searchLimits } from "./search.ts";

/** Version of the API that the document describes; its major number is that of the paths. */
const apiVersion = "1.0.0";

const json = (schema: object) => ({ "application/json": { schema } });
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const query = (name: string, description: string, schema: object) => ({ name, in: "query", description, schema });
const failure = (description: string) => ({ description, content: json(ref("Error")) });

const format = query("format", "The shape to answer in; neutral by default.", { enum: declarationFormats });

const commonFailures = {
  "400": failure("The request is malformed; `error.code` and `error.at` say how and where."),
  "401": failure("No valid bearer token."),
  "403": failure("The request comes from a web page."),
  "421": failure("The Host header names no host of this catalogue."),
  "503": failure("Not ready, or too busy; Retry-After says when to come again."),
};

const label = {
  sources: { type: "array", items: { type: "string" }, description: "What it comes from, such as `tool:namespace/grant`." },
  trusted: { type: "boolean" },
  sensitivity: { enum: ["Public", "Internal", "Confidential", "Secret"] },
};

/** What is told of a call besides what a model reads. */
const told = {
  outcome: { enum: ["ok", "tool-error", "refused", "failed", "in-doubt"] },
  label: { ...ref("Label"), description: "Of all that the tool answered; absent where no tool did." },
  retryAfterMs: { type: "integer", minimum: 0, description: "When a call that came too soon may be tried again." },
  reason: {
    type: "object",
    description: "For operators: the call's id in the journal, the gate, and why.",
    properties: {
      call: { type: "string" },
      gate: { type: ["string", "null"] },
      code: { type: "string" },
      message: { type: "string" },
    },
    required: ["call", "gate", "code", "message"],
    additionalProperties: false,
  },
};

const documentOf = () => ({
  openapi: "3.1.0",
  info: { title: "Ambit catalogue", version: apiVersion, description: "What a caller's model may call, and the calls." },
  security: [{ token: [] }],
  paths: {
    "/v1/declarations": {
      get: {
        summary: "The declarations of all tools that the caller may call now, in the order of their names.",
        parameters: [
          format,
          query("cache", "Overrides where and for how long Anthropic caches: off sets no breakpoint.", { enum: ["off", "5m", "1h"] }),
          query("strict", "false: nothing is declared strict.", { enum: ["true", "false"] }),
          query(
            "reserve",
            "Strict tools, optional parameters and unions that the caller's own tools need of the provider's budgets: `3,10,0`.",
            {
              type: "string",
              pattern: "^[0-9]{1,3},[0-9]{1,3},[0-9]{1,3}$",
            },
          ),
          query("namespace", "Only grants of this namespace.", { type: "string" }),
          query("limit", "Declarations a page.", { type: "integer", minimum: 1, maximum: 10_000 }),
          query("cursor", "The `ambit-next-cursor` of the page before.", { type: "string" }),
          query("watch", "Present: server-sent events instead, `declarations` with the list's ETag at once and after each change.", {}),
        ],
        responses: {
          "200": {
            description: "The array that the provider takes as `tools`.",
            headers: {
              etag: { description: "Strong, over the bytes.", schema: { type: "string" } },
              "ambit-left-out": {
                description: "Tools that this provider would reject, with rule and place (RFC 8941 list).",
                schema: { type: "string" },
              },
              "ambit-next-cursor": { description: "Where the next page starts.", schema: { type: "string" } },
            },
            content: { ...json({ type: "array", items: { type: "object" } }), "text/event-stream": { schema: { type: "string" } } },
          },
          "304": { description: "The list is what If-None-Match names." },
          "429": failure("Too many watches."),
          ...commonFailures,
        },
      },
    },
    "/v1/declarations/{name}": {
      get: {
        summary: "One declaration.",
        parameters: [{ name: "name", in: "path", required: true, schema: { type: "string" } }, format],
        responses: {
          "200": { description: "The declaration.", content: json({ type: "object" }) },
          "404": failure("No such tool is offered to the caller, or the format's provider would reject it."),
          ...commonFailures,
        },
      },
    },
    "/v1/search": {
      get: {
        summary: "The caller's tools that fit a question best.",
        parameters: [
          { ...query("q", "Words to look for.", { type: "string", maxLength: searchLimits.queryLength }), required: true },
          query("limit", "Hits at most.", { type: "integer", minimum: 1, maximum: searchLimits.hits, default: searchLimits.defaultHits }),
          format,
        ],
        responses: { "200": { description: "Hits, best first.", content: json(ref("Hits")) }, ...commonFailures },
      },
    },
    "/v1/calls": {
      post: {
        summary: "Calls a tool; or, in a provider's format, answers all calls of a model's turn.",
        parameters: [format],
        requestBody: {
          required: true,
          content: json({
            anyOf: [ref("Call"), ref("LabelledTurn"), { description: "A provider's tool-call block, or an array with those of a turn." }],
          }),
        },
        responses: {
          "200": {
            description: "What became of the call; or the whole message that answers the turn.",
            headers: {
              "Retry-After": { description: "Seconds, where a call came too soon.", schema: { type: "integer", minimum: 1 } },
            },
            content: json({
              anyOf: [
                ref("CallAnswer"),
                ref("LabelledAnswer"),
                { description: "The provider's message, or its list of messages or items." },
              ],
            }),
          },
          "413": failure("The body is too large."),
          "415": failure("The body is not application/json."),
          ...commonFailures,
        },
      },
    },
    "/v1/openapi.json": { get: { summary: "This document.", responses: { "200": { description: "OpenAPI 3.1." }, ...commonFailures } } },
    "/healthz": { get: { summary: "Whether the process runs.", security: [], responses: { "200": { description: "It does." } } } },
    "/readyz": {
      get: {
        summary: "Whether the catalogue knows its tools.",
        security: [],
        responses: { "200": { description: "It does." }, "503": { description: "Not yet." } },
      },
    },
  },
  components: {
    securitySchemes: { token: { type: "http", scheme: "bearer" } },
    schemas: {
      Error: {
        type: "object",
        properties: {
          error: {
            type: "object",
            properties: {
              code: { type: "string", description: "Stable." },
              message: { type: "string" },
              at: { type: "string", description: "JSON pointer into the request's body." },
            },
            required: ["code", "message"],
            additionalProperties: false,
          },
        },
        required: ["error"],
        additionalProperties: false,
      },
      Declaration: {
        type: "object",
        properties: {
          name: { type: "string" },
          description: { type: "string" },
          parameters: { type: "object", description: "JSON Schema 2020-12." },
          cache: { enum: ["5m", "1h"] },
          tool: { type: "string", description: "Catalogue id, `namespace/grant`; not for the provider." },
        },
        required: ["name", "description", "parameters"],
        additionalProperties: false,
      },
      Hits: {
        type: "object",
        properties: {
          hits: {
            type: "array",
            items: {
              type: "object",
              properties: { score: { type: "number" }, declaration: { type: "object" } },
              required: ["score", "declaration"],
              additionalProperties: false,
            },
          },
        },
        required: ["hits"],
        additionalProperties: false,
      },
      Call: {
        type: "object",
        properties: {
          name: { type: "string" },
          arguments: { type: "object", default: {} },
          labels: {
            type: "object",
            description: "What is known of the arguments, by JSON pointer.",
            additionalProperties: ref("ClaimedLabel"),
          },
          session: { type: ["string", "null"], maxLength: 128 },
        },
        required: ["name"],
        additionalProperties: false,
      },
      CallAnswer: {
        type: "object",
        properties: {
          content: {
            type: "array",
            items: {
              type: "object",
              properties: { type: { const: "text" }, text: { type: "string" } },
              required: ["type", "text"],
              additionalProperties: false,
            },
          },
          structuredContent: { type: "object" },
          isError: { type: "boolean" },
          ...told,
        },
        required: ["content", "isError", "outcome"],
        additionalProperties: false,
      },
      LabelledTurn: {
        type: "object",
        properties: {
          turn: { description: "A provider's tool-call block, or an array with those of a turn." },
          labels: {
            type: ["array", "null"],
            description: "For each call of the turn, in order, what is known of its arguments, by JSON pointer; or null.",
            items: { type: ["object", "null"], additionalProperties: ref("ClaimedLabel") },
          },
          session: { type: ["string", "null"], maxLength: 128 },
        },
        required: ["turn"],
        additionalProperties: false,
      },
      LabelledAnswer: {
        type: "object",
        properties: {
          answer: { description: "The provider's message, or its list of messages or items." },
          calls: { type: "array", items: { type: "object", properties: told, required: ["outcome"], additionalProperties: false } },
        },
        required: ["answer", "calls"],
        additionalProperties: false,
      },
      ClaimedLabel: { type: "object", properties: label, additionalProperties: false },
      Label: { type: "object", properties: label, required: ["sources", "trusted", "sensitivity"], additionalProperties: false },
    },
  },
});

/** The OpenAPI 3.1 document of the catalogue, as JSON text. */
export const openApiText: string = JSON.stringify(documentOf());
