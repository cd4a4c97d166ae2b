import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JsonObject } from "../../../src/api/json.ts";
import { hintsAgainst } from "../../../src/grants/hints.ts";
import { listIssues } from "./issues-tool.ts";
import { untypedTool } from "./untyped-tool.ts";

const nowhere = { hosts: [], volumes: [], secrets: [], imports: [] };
const somewhere = { ...nowhere, hosts: ["https://mcp.example.com"] };

const cases: readonly {
  readonly annotations: JsonObject | null;
  readonly mutates: boolean;
  readonly reach?: typeof somewhere;
  readonly told: readonly RegExp[];
}[] = [
  { annotations: null, mutates: true, reach: somewhere, told: [] },
  { annotations: {}, mutates: false, told: [] },
  { annotations: { readOnlyHint: true }, mutates: true, told: [/claims to change nothing.*may change things/] },
  { annotations: { readOnlyHint: true }, mutates: false, told: [] },
  { annotations: { readOnlyHint: false }, mutates: false, told: [/says that it may change things.*changes nothing/] },
  { annotations: { readOnlyHint: false }, mutates: true, told: [] },
  { annotations: { destructiveHint: true }, mutates: false, told: [/may destroy things.*changes nothing/] },
  { annotations: { destructiveHint: true }, mutates: true, told: [] },
  { annotations: { destructiveHint: false }, mutates: true, told: [/claims to destroy nothing/] },
  { annotations: { destructiveHint: false }, mutates: false, told: [] },
  { annotations: { readOnlyHint: true, destructiveHint: false }, mutates: true, told: [/claims to change nothing/] },
  {
    annotations: { readOnlyHint: true, destructiveHint: true },
    mutates: false,
    told: [/may destroy things.*changes nothing/, /claims to change nothing and says that it may destroy/],
  },
  { annotations: { idempotentHint: true }, mutates: true, told: [/idempotentHint/] },
  { annotations: { idempotentHint: true }, mutates: false, told: [] },
  { annotations: { openWorldHint: false }, mutates: false, reach: somewhere, told: [/may reach https:\/\/mcp\.example\.com/] },
  { annotations: { openWorldHint: false }, mutates: false, told: [] },
  { annotations: { openWorldHint: true }, mutates: false, reach: somewhere, told: [] },
  // What is no boolean claims nothing.
  { annotations: { readOnlyHint: "true", destructiveHint: 0, openWorldHint: null }, mutates: true, reach: somewhere, told: [] },
];

describe("a tool's hints of itself", () => {
  for (const { annotations, mutates, reach = nowhere, told } of cases) {
    const where = reach.hosts.length > 0 ? "with hosts" : "without hosts";
    it(`say ${told.length === 0 ? "nothing against" : "otherwise than"} the grant: ${JSON.stringify(annotations)}, ${mutates ? "mutating" : "reading"}, ${where}`, () => {
      const claims = hintsAgainst(untypedTool({ annotations }), { mutates, reach });
      assert.equal(claims.length, told.length, claims.join("; "));
      for (const [at, pattern] of told.entries()) assert.match(claims[at] ?? "", pattern);
    });
  }

  it("are none of a function's, and none of a tool that nobody has seen", () => {
    assert.deepEqual(hintsAgainst(listIssues(), { mutates: true, reach: somewhere }), []);
    assert.deepEqual(hintsAgainst(null, { mutates: true, reach: somewhere }), []);
  });
});
