import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compactJson, type JsonValue, parseJson } from "../../../../src/api/json.ts";
import { idIn, messageIn, RpcError } from "../../../../src/catalogue/mcp/messages.ts";
import { checkStateless, decodedHeader, isOfSessions } from "../../../../src/catalogue/mcp/revisions.ts";
import { speaking, statelessMeta } from "./speaking.ts";

const methods = [
  "initialize",
  "ping",
  "tools/list",
  "tools/call",
  "server/discover",
  "subscriptions/listen",
  "notifications/initialized",
  "x",
  "__proto__",
];

const anyJson = fc.jsonValue().map((value) => parseJson(JSON.stringify(value)));

/** What is nearly a message: each part right, wrong or missing. */
const nearMessage: fc.Arbitrary<JsonValue> = fc
  .record(
    {
      jsonrpc: fc.constantFrom("2.0", "1.0", 2),
      id: fc.oneof(fc.integer(), fc.string(), fc.constant(null), fc.double({ noNaN: true, noDefaultInfinity: true })),
      method: fc.oneof(fc.constantFrom(...methods), fc.string()),
      params: fc.oneof(
        fc.jsonValue(),
        fc.record(
          {
            name: fc.oneof(fc.constant("list_issues"), fc.jsonValue()),
            arguments: fc.jsonValue(),
            cursor: fc.jsonValue(),
            protocolVersion: fc.jsonValue(),
            notifications: fc.jsonValue(),
            _meta: fc.oneof(fc.constant(statelessMeta), fc.jsonValue()),
          },
          { requiredKeys: [] },
        ),
      ),
      result: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  .map((value) => parseJson(JSON.stringify(value)));

const headers = fc.record(
  {
    "mcp-protocol-version": fc.constantFrom("2026-07-28", "2025-11-25", "2025-03-26", "", "v1"),
    "mcp-method": fc.constantFrom(...methods),
    "mcp-name": fc.constantFrom("list_issues", "=?base64?bGlzdF9pc3N1ZXM=?=", "=?base64?", "x"),
  },
  { requiredKeys: [] },
);

test("any JSON is a message or is refused as none, and its headers are right or wrong", () => {
  fc.assert(
    fc.property(fc.oneof(anyJson, nearMessage), headers, (value, given) => {
      idIn(value);
      try {
        const message = messageIn(value);
        if (!isOfSessions(given, message) && message.kind === "request") checkStateless(given, message);
      } catch (thrown) {
        assert.ok(thrown instanceof RpcError, String(thrown));
      }
    }),
    { numRuns: 1000 },
  );
});

test("a header is read as what was written into it", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      assert.equal(decodedHeader(`=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`), text);
    }),
    { numRuns: 500 },
  );
});

test("whatever a client sends, it gets an answer, and the catalogue has no fault", async () => {
  await using served = await speaking();
  await fc.assert(
    fc.asyncProperty(fc.oneof(nearMessage, fc.array(nearMessage, { maxLength: 3 })), headers, async (value, given) => {
      // A stream that stays open is no answer to wait for.
      const text = compactJson(value as JsonValue);
      fc.pre(!text.includes('"toolsListChanged":true'));
      const { status, text: answer } = await served.say(text, given);
      assert.ok([200, 202, 400, 404, 429].includes(status), `${status} ${answer}`);
      if (status !== 202) parseJson(answer);
      assert.deepEqual(served.faults, []);
    }),
    { numRuns: 150 },
  );
});
