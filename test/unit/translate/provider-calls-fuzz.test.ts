import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ContentBlock } from "../../../src/api/content.ts";
import { Invalid } from "../../../src/api/errors.ts";
import { compactJson, type JsonValue, parseJson } from "../../../src/api/json.ts";
import { declarationFormats, isTurnFormat } from "../../../src/declaration/formats.ts";
import { answerFor, type CallAnswer, toolCallsFrom } from "../../../src/translate/provider-calls.ts";

const formats = fc.constantFrom(...declarationFormats.filter(isTurnFormat));

/** Bodies of the words that blocks are made of, in any arrangement. */
const keys = fc.constantFrom(
  "type",
  "id",
  "call_id",
  "toolUseId",
  "name",
  "input",
  "args",
  "arguments",
  "function",
  "functionCall",
  "toolUse",
  "content",
  "parts",
  "output",
  "tool_calls",
);
const bodies: fc.Arbitrary<JsonValue> = fc.letrec<{ body: JsonValue }>((tie) => ({
  body: fc.oneof(
    { maxDepth: 5, depthSize: "medium" },
    fc.constantFrom<JsonValue>("tool_use", "function", "function_call", "{}", '{"a":', "t", "", null, 7, 18446744073709551615n),
    fc.array(tie("body"), { maxLength: 3 }),
    fc.dictionary(keys, tie("body"), { maxKeys: 5 }),
  ),
})).body;

const data = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString("base64")),
  fc.constantFrom("", "!", "iVBORw0KGgo=", "R0lGODlhAQABAAAA", "JVBERi0xLjc="),
);
const mimeType = fc.string({ maxLength: 20 });
const uri = fc.string({ maxLength: 20 });
const blocks: fc.Arbitrary<ContentBlock> = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text: fc.constantFrom("", " ", "x") }),
  fc.record({ type: fc.constantFrom("image" as const, "audio" as const), data, mimeType }),
  fc.record({ type: fc.constant("resource_link" as const), uri, name: fc.string({ maxLength: 9 }) }),
  fc.record({
    type: fc.constant("resource" as const),
    resource: fc.oneof(fc.record({ uri, text: fc.string() }), fc.record({ uri, mimeType, blob: data })),
  }),
);
const answers: fc.Arbitrary<CallAnswer> = fc.record(
  {
    id: fc.string({ minLength: 1, maxLength: 9 }),
    name: fc.constant("t"),
    text: fc.constantFrom("", "\n", "x", "7"),
    isError: fc.boolean(),
    content: fc.array(blocks, { maxLength: 4 }),
    structured: bodies,
  },
  { requiredKeys: ["id", "name", "text", "isError"] },
);

describe("whatever comes,", () => {
  it("a body gives calls that can be answered, or the error that there are none", () => {
    fc.assert(
      fc.property(formats, bodies, (format, body) => {
        try {
          for (const { id, name } of toolCallsFrom(format, body)) {
            assert.equal(typeof name, "string");
            assert.ok(id === null ? format === "gemini" : id !== "");
          }
        } catch (thrown) {
          assert.ok(thrown instanceof Invalid && thrown.code === "CallBlockInvalid", String(thrown));
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("each call has its answer, in order, and no text of it is blank", () => {
    fc.assert(
      fc.property(formats, fc.array(answers, { minLength: 1, maxLength: 4 }), (format, given) => {
        const answer = compactJson(answerFor(format, given));
        const message = JSON.parse(answer);
        // Whoever reads it in doubles loses nothing.
        assert.deepEqual(parseJson(compactJson(message)), parseJson(answer));
        const results: Record<string, unknown>[] = Array.isArray(message) ? message : (message.content ?? message.parts);
        const idOf = ({ functionResponse, toolResult, ...one }: Record<string, unknown>): unknown => {
          const inner = (functionResponse ?? toolResult ?? one) as Record<string, unknown>;
          return inner.id ?? inner.toolUseId ?? inner.tool_use_id ?? inner.tool_call_id ?? inner.call_id;
        };
        assert.deepEqual(
          results.map(idOf),
          given.map(({ id }) => id),
        );
        for (const text of textsIn(results)) assert.match(text, /\S/);
      }),
      { numRuns: 1000 },
    );
  });
});

/** What a model reads: under the names that providers have for it. */
const textsIn = (value: unknown): string[] => {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    ["text", "content", "output", "error"].includes(key) && typeof inner === "string" ? [inner] : key === "response" ? [] : textsIn(inner),
  );
};
