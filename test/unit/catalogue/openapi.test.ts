import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { type Answer, serving } from "./serving.ts";

interface Operation {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>>;
}

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: object;
}

/** Answers to check, by path template and method: good ones and bad ones. */
const requests: readonly { readonly template: string; readonly path: string; readonly body?: string; readonly token?: string }[] = [
  { template: "/v1/declarations", path: "/v1/declarations" },
  { template: "/v1/declarations", path: "/v1/declarations?limit=x" },
  { template: "/v1/declarations", path: "/v1/declarations", token: "guessed" },
  { template: "/v1/declarations/{name}", path: "/v1/declarations/list_issues" },
  { template: "/v1/declarations/{name}", path: "/v1/declarations/nothing" },
  { template: "/v1/search", path: "/v1/search?q=issues" },
  { template: "/v1/calls", path: "/v1/calls", body: '{"name":"list_issues","arguments":{"repo":"octo/app"}}' },
  { template: "/v1/calls", path: "/v1/calls", body: '{"name":"list_issues","arguments":{"repo":7}}' },
  { template: "/v1/calls", path: "/v1/calls", body: '{"name":"nothing"}' },
  { template: "/v1/calls", path: "/v1/calls", body: '{"nome":"nothing"}' },
  { template: "/v1/calls", path: "/v1/calls?format=anthropic", body: '{"type":"tool_use","id":"t","name":"nothing","input":{}}' },
  {
    template: "/v1/calls",
    path: "/v1/calls?format=anthropic",
    body: '{"turn":{"type":"tool_use","id":"t","name":"list_issues","input":{"repo":"a/b"}},"labels":[{"/repo":{}}],"session":"s"}',
  },
  { template: "/healthz", path: "/healthz" },
  { template: "/readyz", path: "/readyz" },
];

test("what is served is what the OpenAPI document says, for good and for bad", async () => {
  await using served = await serving({}, { explainsTo: () => true });
  const document: Document = JSON.parse((await served.ask("/v1/openapi.json")).text);
  assert.equal(document.openapi, "3.1.0");
  const ajv = new Ajv2020({ strict: false });
  ajv.addSchema({ $id: "api", components: document.components });
  for (const { template, path, body, token = "secret" } of requests) {
    const method = body === undefined ? "get" : "post";
    const answer: Answer = await served.ask(path, {
      method: method.toUpperCase(),
      token,
      ...(body !== undefined && { body, headers: { "content-type": "application/json" } }),
    });
    const described = document.paths[template]?.[method]?.responses[String(answer.status)];
    assert.ok(described, `${method} ${path}: status ${answer.status} is described`);
    const schema = described.content?.["application/json"]?.schema;
    if (!schema) continue;
    const local = JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"api#/components/').replaceAll('"oneOf"', '"anyOf"'));
    assert.ok(ajv.validate(local, JSON.parse(answer.text)), `${method} ${path}: ${ajv.errorsText()} in ${answer.text}`);
  }
});

test("each path that the document names is there, and no other under /v1", async () => {
  await using served = await serving();
  const document: Document = JSON.parse((await served.ask("/v1/openapi.json")).text);
  for (const template of Object.keys(document.paths)) {
    assert.notEqual(JSON.parse((await served.ask(template.replace("{name}", "list_issues"))).text).error?.code, "PathUnknown", template);
  }
  assert.equal((await served.ask("/v1/")).status, 404);
  assert.equal((await served.ask("/v1/declarations/")).status, 404);
});
