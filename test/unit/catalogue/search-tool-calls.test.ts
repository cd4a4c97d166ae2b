import assert from "node:assert/strict";
import { test } from "node:test";
import type Anthropic from "@anthropic-ai/sdk";
import { refusalText } from "../../../src/catalogue/call-end.ts";
import { speaking } from "./mcp/speaking.ts";
import { serving } from "./serving.ts";
import { listIssuesParameters } from "./world.ts";

test("a model's search is judged, answered here and journalled like any call", async () => {
  await using served = await serving();
  const answer = await served.post("/v1/calls", '{"name":"search_tools","arguments":{"query":"issues of a repository"}}');
  const { outcome, found, content, structuredContent } = JSON.parse(answer.text);
  assert.deepEqual({ outcome, found }, { outcome: "ok", found: ["list_issues"] });
  assert.deepEqual(JSON.parse(content[0].text), structuredContent);
  assert.deepEqual(structuredContent.tools[0].parameters, JSON.parse(JSON.stringify(listIssuesParameters)));
  assert.deepEqual(served.sent, [], "no host was asked");
  const [entry] = served.journal;
  assert.deepEqual(
    { tool: entry?.tool, gate: entry?.gate, outcome: entry?.outcome, attempts: entry?.attempts },
    { tool: "ambit.dev/search_tools", gate: null, outcome: "ok", attempts: 0 },
  );
  assert.match(entry?.arguments ?? "", /^sha256:/);
});

test("a search within a provider's turn gives declarations in that provider's shape", async () => {
  await using served = await serving();
  const turn: Anthropic.ContentBlockParam[] = [{ type: "tool_use", id: "toolu_1", name: "search_tools", input: { query: "issues" } }];
  const answer = await served.post("/v1/calls?format=anthropic", JSON.stringify({ turn }));
  const { answer: message, calls } = JSON.parse(answer.text);
  assert.deepEqual(calls[0].found, ["list_issues"]);
  const [tool]: Anthropic.Tool[] = JSON.parse(message.content[0].content).tools;
  assert.equal(tool?.input_schema.type, "object");
});

test("a search over MCP gives declarations in MCP's shape", async () => {
  await using served = await speaking();
  const { result } = await served.askAlone("tools/call", { name: "search_tools", arguments: { query: "issues" } });
  const [tool] = (result.structuredContent as { tools: { name: string; inputSchema: { type: string } }[] }).tools;
  assert.deepEqual([tool?.name, tool?.inputSchema.type], ["list_issues", "object"]);
});

test("a question that does not fit is the model's error, and names near the search's are refused", async () => {
  await using served = await serving();
  const call = async (body: string) => JSON.parse((await served.post("/v1/calls", body)).text);
  const misfit = await call('{"name":"search_tools","arguments":{"query":7}}');
  assert.equal(misfit.outcome, "failed");
  assert.match(misfit.content[0].text, /\/query/);
  assert.equal((await call('{"name":"search_tools","arguments":{"query":"x","limit":21}}')).outcome, "failed");
  const near = await call('{"name":"Search_tools","arguments":{"query":"x"}}');
  assert.deepEqual([near.outcome, near.content[0].text], ["refused", refusalText]);
});
