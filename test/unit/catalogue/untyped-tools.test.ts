import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostReply } from "../../../src/api/host.ts";
import type { JsonObject, JsonValue } from "../../../src/api/json.ts";
import type { ToolDefinition } from "../../../src/api/untyped.ts";
import { contentBlocks } from "../../../src/catalogue/content-blocks.ts";
import { outputJudge } from "../../../src/catalogue/output-judge.ts";
import type { LiveGrant } from "../../../src/catalogue/state.ts";
import { untypedTool } from "../grants/untyped-tool.ts";
import { listIssues } from "./world.ts";

const stats = { queueMs: 0, runMs: 1 };
const sum: JsonObject = { type: "object", properties: { sum: { type: "integer" } }, required: ["sum"] };
const grantOf = (fn: ToolDefinition): LiveGrant => ({ fn }) as LiveGrant;
const replied = (structured?: JsonValue): { kind: "replied"; reply: HostReply } => ({
  kind: "replied",
  reply: { outcome: "ok", text: "", ...(structured === undefined ? {} : { structured }), stats },
});

const outputs: Record<string, { fn: ToolDefinition; structured?: JsonValue; fits: boolean }> = {
  "a value that the reviewed schema admits is given": { fn: untypedTool({ outputSchema: sum }), structured: { sum: 3 }, fits: true },
  "another value is not": { fn: untypedTool({ outputSchema: sum }), structured: { sum: "3" }, fits: false },
  "nor is none where one was promised": { fn: untypedTool({ outputSchema: sum }), fits: false },
  "without a schema any value is given": { fn: untypedTool(), structured: [1], fits: true },
  "a schema that nobody can check by is not checked by": {
    fn: untypedTool({ outputSchema: { type: "object", properties: { a: { $ref: "https://example.com" } } } }),
    structured: {},
    fits: true,
  },
  "a typed tool answers as its types say": { fn: listIssues, structured: { result: "x" }, fits: true },
};
for (const [sentence, { fn, structured, fits }] of Object.entries(outputs)) {
  test(sentence, () => {
    const judged = outputJudge()(grantOf(fn), replied(structured));
    assert.ok(judged.kind === "replied");
    if (fits) assert.equal(judged.reply.outcome, "ok");
    else {
      assert.ok(judged.reply.outcome === "failed");
      assert.deepEqual([judged.reply.code, judged.reply.ran], ["ResultInvalid", true]);
    }
  });
}

test("an error is given whatever the schema says", () => {
  const reply = { kind: "replied", reply: { outcome: "tool-error", text: "no", stats } } as const;
  assert.equal(outputJudge()(grantOf(untypedTool({ outputSchema: sum })), reply), reply);
});

const good: readonly JsonValue[] = [
  [],
  [{ type: "text", text: "a" }],
  [
    { type: "image", data: "AA==", mimeType: "image/png" },
    { type: "audio", data: "", mimeType: "" },
  ],
  [{ type: "resource_link", uri: "a:b", name: "b" }],
  [
    { type: "resource", resource: { uri: "a:b", text: "x" } },
    { type: "resource", resource: { uri: "a:b", blob: "", mimeType: "x/y" } },
  ],
];
const bad: readonly JsonValue[] = [
  null,
  {},
  ["text"],
  [{ type: "text" }],
  [{ type: "text", text: 1 }],
  [{ type: "text", text: "a", more: "b" }],
  [{ type: "video", data: "", mimeType: "" }],
  [{ type: "resource", resource: { uri: "a:b" } }],
  [{ type: "resource", resource: { uri: "a:b", text: "x", blob: "" } }],
  [{ type: "text", text: "a" }, null],
];
test("blocks of every kind are read, and nothing else", () => {
  for (const value of good) assert.deepEqual(contentBlocks(value), value);
  for (const value of bad) assert.equal(contentBlocks(value), null, JSON.stringify(value));
});
