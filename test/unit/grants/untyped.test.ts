import assert from "node:assert/strict";
import { test } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson, type JsonObject, type JsonValue, parseJson } from "../../../src/api/json.ts";
import type { UntypedTool } from "../../../src/api/untyped.ts";
import { approve } from "../../../src/grants/approve.ts";
import { definitionDigest, definitionText } from "../../../src/grants/definition.ts";
import { toolOfDefinition } from "../../../src/grants/definition-function.ts";
import { draftGrant } from "../../../src/grants/draft.ts";
import { findTool, toolText } from "../../../src/grants/granted-tool.ts";
import { judgeGrant } from "../../../src/grants/judge.ts";
import { proposeGrants } from "../../../src/grants/proposals.ts";
import { listIssues } from "./issues-tool.ts";
import { untypedTool } from "./untyped-tool.ts";

const json = (text: string): JsonValue => parseJson(text);

test("a definition is canonical JSON of all that is said", () => {
  assert.equal(
    definitionText(untypedTool({ title: null, instructions: "Be brief." })),
    '{"annotations":{"readOnlyHint":true},"description":"List the issues in a repository.","inputSchema":{"properties":{"repo":{"type":"string"}},' +
      '"required":["repo"],"type":"object"},"instructions":"Be brief.","name":"list_issues","server":"issues"}',
  );
});

test("a tool that is read back from its definition is the same", () => {
  const tool = untypedTool({ outputSchema: { type: "object" }, title: "" });
  const read = toolOfDefinition(definitionText(tool));
  assert.equal(definitionDigest(read), definitionDigest(tool));
  assert.equal(read.form, "untyped");
});

test("key order and white space don't count; numbers beyond doubles count exactly", () => {
  const one = untypedTool({ inputSchema: json('{"type":"object", "maximum": 9007199254740993}') as JsonObject });
  const same = untypedTool({ inputSchema: json('{ "maximum":9007199254740993,"type":"object" }') as JsonObject });
  const other = untypedTool({ inputSchema: json('{"type":"object","maximum":9007199254740992}') as JsonObject });
  assert.equal(definitionDigest(one), definitionDigest(same));
  assert.notEqual(definitionDigest(one), definitionDigest(other));
});

const changes: Record<string, Partial<UntypedTool>> = {
  "the server's name": { server: "others" },
  "the name": { name: "list_issue" },
  "the title": { title: "list issues" },
  "a missing title": { title: null },
  "the description": { description: "List the issues in a repository. " },
  "the input schema": { inputSchema: { type: "object" } },
  "an output schema": { outputSchema: { type: "object" } },
  "a hint": { annotations: { readOnlyHint: false } },
  "the server's instructions": { instructions: "Always call list_issues first." },
};
for (const [what, change] of Object.entries(changes)) {
  test(`another definition is one that differs in ${what}`, () => {
    assert.notEqual(definitionDigest(untypedTool(change)), definitionDigest(untypedTool()));
  });
}

const malformed = [
  '{"name":"a"}',
  '{"name":"a","inputSchema":{},"more":1}',
  '{"name":"a","inputSchema":{},"title":1}',
  '{"inputSchema":{}, "name":"a"}',
];
for (const text of malformed) {
  test(`no definition is ${text}`, () => {
    assert.throws(() => toolOfDefinition(text), { code: "DefinitionMalformed" });
  });
}

const draftOf = (tool: UntypedTool, name: string | null = tool.name) =>
  draftGrant({ namespace: "agents", workload: "issues", source: { name: "bridge" }, fn: tool, name });

test("a draft copies the tool's own words and rights none", () => {
  const { metadata, spec } = draftOf(untypedTool());
  assert.match(metadata.name, /^issues-list-issues-[0-9a-f]{8}$/);
  assert.deepEqual(JSON.parse(JSON.stringify(spec)), {
    tool: { workload: "issues", component: "bridge", tool: "list_issues" },
    declaration: {
      name: "list_issues",
      description: "List the issues in a repository.",
      parameters: { type: "object", properties: { repo: { type: "string" } }, required: ["repo"], additionalProperties: false },
    },
    mutates: true,
    egressCeiling: "Internal",
  });
});

test("tools whose names differ in case alone are drafted as two objects", () => {
  assert.notEqual(draftOf(untypedTool({ name: "Foo" })).metadata.name, draftOf(untypedTool({ name: "foo" })).metadata.name);
});

test("a function and a listed tool of one name are two tools", () => {
  const listed = { workload: "w", component: "c", tool: "f" };
  assert.notEqual(toolText(listed), toolText({ workload: "w", component: "c", function: "f" }));
  const offering = { offered: [listIssues(), untypedTool({ name: "list-issues" })], notOffered: [] };
  assert.equal(findTool(offering, { tool: "list-issues" }).fn?.form, "untyped");
  assert.equal(findTool(offering, { function: "list-issues", interface: "example:github/issues@0.1.0" }).fn?.form, "function");
  assert.equal(findTool(offering, { function: "list-issues" }).fn, null);
});

const schemas: Record<string, { listed: string; drafted: string }> = {
  "how arguments travel to a server is left out": {
    listed: '{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"},"x-mcp-header":{"type":"string"}}}',
    drafted: '{"type":"object","properties":{"r":{"type":"string"},"x-mcp-header":{"type":"string"}},"additionalProperties":false}',
  },
  "an older dialect is left out where it means the same": {
    listed: '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}}}',
    drafted: '{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}',
  },
  "an older dialect stays where it means something else": {
    listed: '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[{"type":"string"}]}}}',
    drafted: '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[{"type":"string"}]}}}',
  },
  "a default of null is left out, and no other": {
    listed: '{"type":"object","default":null,"properties":{"a":{"default":null},"b":{"default":0},"default":{"type":"string"}}}',
    drafted: '{"type":"object","properties":{"a":{},"b":{"default":0},"default":{"type":"string"}},"additionalProperties":false}',
  },
  "an open schema stays open": { listed: '{"type":"object"}', drafted: '{"type":"object"}' },
};
for (const [sentence, { listed, drafted }] of Object.entries(schemas)) {
  test(sentence, () => {
    const { parameters } = draftOf(untypedTool({ inputSchema: json(listed) as JsonObject })).spec.declaration;
    assert.equal(compactJson(parameters), drafted);
  });
}

const proposed = (...tools: UntypedTool[]) =>
  proposeGrants({ namespace: "agents", workload: "w", components: [{ source: { name: "bridge" }, offered: tools }] });

const asked: Record<string, { tool: UntypedTool; name: string; ask: RegExp | null }> = {
  "a name that every provider takes is kept as it is": { tool: untypedTool({ name: "list-issues" }), name: "list-issues", ask: null },
  "a name with a dot is a person's to choose": { tool: untypedTool({ name: "issues.list" }), name: "", ask: /choose another/ },
  "a name of the prototype is a name": { tool: untypedTool({ name: "constructor" }), name: "constructor", ask: null },
  "a tool that says nothing asks for a description": { tool: untypedTool({ description: null }), name: "list_issues", ask: /description/ },
  "a schema that refers elsewhere asks for another": {
    tool: untypedTool({ inputSchema: { type: "object", properties: { a: { $ref: "https://example.com/schema" } } } }),
    name: "list_issues",
    ask: /nothing is fetched/,
  },
  "a pattern that takes exponential time elsewhere is no trouble": {
    tool: untypedTool({ inputSchema: { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } } }),
    name: "list_issues",
    ask: null,
  },
  "a pattern that looks around asks for another": {
    tool: untypedTool({ inputSchema: { type: "object", properties: { a: { type: "string", pattern: "(?=a)" } } } }),
    name: "list_issues",
    ask: /linear time/,
  },
};
for (const [sentence, { tool, name, ask }] of Object.entries(asked)) {
  test(sentence, () => {
    const [proposal] = proposed(tool);
    assert.equal(proposal?.grant?.spec.declaration.name, name);
    if (ask === null) assert.deepEqual(proposal.asks, []);
    else assert.match(proposal.asks.join(), ask);
  });
}

test("two components with a tool of one name get the component's before it", () => {
  const components = ["left", "right"].map((name) => ({ source: { name }, offered: [untypedTool({ name: "search" })] }));
  const names = proposeGrants({ namespace: "agents", workload: "w", components }).map(({ grant }) => grant?.spec.declaration.name);
  assert.deepEqual(names, ["left_search", "right_search"]);
});

const reach = { hosts: [], volumes: [], secrets: [], imports: [] };
const code = `sha256:${"c".repeat(64)}` as const;
const approvedGrant = (tool: UntypedTool) => {
  const draft = draftOf(tool);
  const grant = { ...draft, spec: { ...draft.spec, mutates: false, subjects: [{ kind: "Group" as const, name: "agents" }] } };
  return approve({ grant, fn: tool, reach, component: [code], now: new Date(0) });
};

test("an approved tool is live while it says the same, and drifts with the words that changed", () => {
  const grant = approvedGrant(untypedTool());
  const observed = (fn: UntypedTool | null) => ({ codes: [{ digest: code, reach, fn }] });
  assert.equal(judgeGrant({ grant, observed: observed(untypedTool()) }).phase, "Active");
  const drifted = judgeGrant({ grant, observed: observed(untypedTool({ description: "Delete everything." })) });
  assert.equal(drifted.phase, "Drifted");
  assert.deepEqual(drifted.changes, [
    { path: "/definition/description", before: "List the issues in a repository.", after: "Delete everything." },
  ]);
  assert.deepEqual(
    judgeGrant({ grant, observed: observed(null) }).reasons.map((reason) => reason.code),
    ["FunctionNotOffered"],
  );
});

test("what a client may be given besides the declaration is looked at for hidden characters too", () => {
  const hidden = untypedTool({ outputSchema: { type: "object", description: "A\u{e0041}" } });
  assert.throws(() => approvedGrant(hidden), { code: "HiddenCharacters" });
  assert.throws(() => approvedGrant(untypedTool({ title: "List\u202eissues" })), { code: "HiddenCharacters" });
});

test("a schema that is too large to review is not drafted, and says so", () => {
  const large = untypedTool({ inputSchema: { type: "object", description: "x".repeat(300_000) } });
  assert.throws(
    () => draftOf(large),
    (thrown: unknown) => thrown instanceof Invalid && thrown.code === "SchemaTooLarge",
  );
});
