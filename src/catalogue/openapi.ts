import { declarationFormats, isTurnFormat } from "../declaration/formats.ts";
import { ref, schemas } from "./openapi-schemas.ts";
import { searchLimits } from "./search.ts";

/** Version of the API that the document describes: the major number is that of the paths, the minor one grows with what is added. */
const apiVersion = "1.1.0";

const json = (schema: object) => ({ "application/json": { schema } });
const query = (name: string, description: string, schema: object, required = false) => ({
  name,
  in: "query",
  description,
  schema,
  ...(required && { required }),
});
const failure = (description: string, headers: object = {}) => ({ description, headers, content: json(ref("Error")) });
const header = (description: string, schema: object) => ({ description, schema });
const retryAfter = { "retry-after": header("Seconds.", { type: "integer", minimum: 1 }) };

const format = query("format", "The shape to answer in; neutral by default.", { enum: declarationFormats });
const turnFormat = query("format", "The provider whose blocks these are; neutral by default.", {
  enum: declarationFormats.filter((name) => name === "neutral" || isTurnFormat(name)),
});

/** What may become of any request that needs a caller. */
const commonFailures = {
  "400": failure("The request is malformed; `error.code` and `error.at` say how and where."),
  "401": failure("No valid bearer token.", { "www-authenticate": header("`Bearer`.", { type: "string" }) }),
  "403": failure("The request comes from a web page."),
  "421": failure("The Host header names no host of this catalogue."),
  "503": failure("Not ready, too busy, or callers can't be told apart at the moment. Nothing ran.", retryAfter),
};

const listParameters = [
  format,
  query("cache", "Overrides whether and for how long the provider caches; off sets no breakpoint.", { enum: ["off", "5m", "1h"] }),
  query("strict", "Whether declarations are strict where that is possible.", { enum: ["true", "false"] }),
  query("reserve", "Strict tools, optional parameters and unions that the caller's own tools need of the provider's budgets: `3,10,0`.", {
    type: "string",
    pattern: "^[0-9]{1,3},[0-9]{1,3},[0-9]{1,3}$",
  }),
  query(
    "defer",
    "How many declarations the model reads; the others are left to the provider's own search: `30`, `30,regex`, `on`, `off`.",
    {
      type: "string",
      pattern: "^(off|(on|[1-9][0-9]{0,4})(,(bm25|regex))?)$",
    },
  ),
  query("namespace", "Only grants of this namespace.", { type: "string" }),
  query("search", "true: with `search_tools`, by which the model finds tools; only: with nothing else but `names`.", {
    enum: ["true", "only"],
  }),
  query("names", "Only tools of these names, which are separated by commas; 128 at most.", { type: "string" }),
  query("limit", "Declarations a page.", { type: "integer", minimum: 1, maximum: 10_000 }),
  query("cursor", "The `ambit-next-cursor` of the page before.", { type: "string" }),
];

const paths = {
  "/v1/declarations": {
    get: {
      operationId: "listDeclarations",
      summary: "The declarations of all tools that the caller may call now, in the order of their names.",
      parameters: [
        ...listParameters,
        query("watch", "Present: server-sent events instead, `declarations` with the list's ETag at once and after each change.", {
          type: "string",
        }),
        { name: "if-none-match", in: "header", description: "ETags of lists that the caller has.", schema: { type: "string" } },
      ],
      responses: {
        "200": {
          description: "The array that the provider takes as `tools`; compressed where the caller takes gzip.",
          headers: {
            etag: header("Strong, over the bytes.", { type: "string" }),
            "ambit-left-out": header("Tools that this provider would reject, with rule and place (an RFC 8941 list).", { type: "string" }),
            "ambit-next-cursor": header("Where the next page starts; absent on the last.", { type: "string" }),
          },
          content: { ...json(ref("Declarations")), "text/event-stream": { schema: { type: "string" } } },
        },
        "304": { description: "The caller has the list." },
        "429": failure("Too many watches.", retryAfter),
        ...commonFailures,
      },
    },
  },
  "/v1/declarations/{name}": {
    get: {
      operationId: "getDeclaration",
      summary: "One declaration: never strict, deferred or a breakpoint, which are counted over a whole request.",
      parameters: [{ name: "name", in: "path", required: true, schema: { type: "string" } }, format],
      responses: {
        "200": { description: "The declaration.", content: json(ref("AnyDeclaration")) },
        "404": failure("No such tool is offered to the caller, or the format's provider would reject it."),
        ...commonFailures,
      },
    },
  },
  "/v1/search": {
    get: {
      operationId: "searchTools",
      summary: "The caller's tools that fit a question best.",
      parameters: [
        query("q", "Words to look for.", { type: "string", minLength: 1, maxLength: searchLimits.queryLength }, true),
        query("limit", "Hits at most.", { type: "integer", minimum: 1, maximum: searchLimits.hits, default: searchLimits.defaultHits }),
        format,
      ],
      responses: { "200": { description: "Hits, best first.", content: json(ref("Hits")) }, ...commonFailures },
    },
  },
  "/v1/calls": {
    post: {
      operationId: "callTools",
      summary: "Calls a tool; or, in a provider's format, answers all calls of a model's turn.",
      parameters: [turnFormat],
      requestBody: { required: true, content: json({ anyOf: [ref("Call"), ref("Turn"), ref("LabelledTurn")] }) },
      responses: {
        "200": {
          description: "What became of the call; or what answers the turn, refusals and failures included.",
          headers: { "retry-after": header("Seconds, where a call came too soon.", { type: "integer", minimum: 1 }) },
          content: json({ anyOf: [ref("CallAnswer"), ref("TurnAnswer"), ref("LabelledAnswer")] }),
        },
        "408": { description: "The request did not arrive in time. Nothing ran." },
        "413": failure("The body is too large."),
        "415": failure("The body is not application/json, or is compressed."),
        ...commonFailures,
      },
    },
  },
  "/mcp": {
    post: {
      operationId: "mcp",
      summary: "The Model Context Protocol's Streamable HTTP: one JSON-RPC message, or a batch where its revision has them.",
      parameters: [query("search", "Lists the search as a tool among the others, or `only` that.", { enum: ["true", "only"] })],
      requestBody: { required: true, content: json({ type: ["object", "array"] }) },
      responses: {
        "200": {
          description: "As the protocol says.",
          content: { ...json({ type: ["object", "array"] }), "text/event-stream": { schema: { type: "string" } } },
        },
        "202": { description: "A notification was taken." },
        default: { description: "A JSON-RPC error, or one of the catalogue's own.", content: json({ type: "object" }) },
      },
    },
    get: {
      operationId: "mcpStream",
      summary: "The stream of a session of the protocol's older revisions.",
      responses: {
        "200": { description: "Server-sent events.", content: { "text/event-stream": { schema: { type: "string" } } } },
        default: { description: "A JSON-RPC error, or one of the catalogue's own.", content: json({ type: "object" }) },
      },
    },
    delete: {
      operationId: "endMcpSession",
      summary: "Ends such a session.",
      responses: {
        "204": { description: "It has ended." },
        default: { description: "A JSON-RPC error, or one of the catalogue's own.", content: json({ type: "object" }) },
      },
    },
  },
  "/v1/openapi.json": {
    get: {
      operationId: "getOpenApi",
      summary: "This document.",
      responses: { "200": { description: "OpenAPI 3.1.", content: json({ type: "object" }) }, ...commonFailures },
    },
  },
  "/healthz": {
    get: {
      operationId: "health",
      summary: "Whether the process runs.",
      security: [],
      responses: { "200": { description: "It does.", content: json(ref("Probe")) } },
    },
  },
  "/readyz": {
    get: {
      operationId: "readiness",
      summary: "Whether the catalogue knows its tools.",
      security: [],
      responses: {
        "200": { description: "It does.", content: json(ref("Probe")) },
        "503": { description: "Not yet.", content: json(ref("Probe")) },
      },
    },
  },
};

const documentOf = () => ({
  openapi: "3.1.0",
  info: {
    title: "Ambit catalogue",
    version: apiVersion,
    description:
      "What a caller's model may call, and the calls. Every path under /v1 also answers HEAD where it answers GET, 404 for what is not described here, and 405 for another method.",
    license: { name: "Apache 2.0", identifier: "Apache-2.0" },
  },
  security: [{ token: [] }],
  paths,
  components: {
    securitySchemes: { token: { type: "http", scheme: "bearer", description: "A ServiceAccount's token for the audience `ambit`." } },
    schemas,
  },
});

/** The OpenAPI 3.1 document of the catalogue, as JSON text. */
export const openApiText: string = JSON.stringify(documentOf());
