import assert from "node:assert/strict";
import { test } from "node:test";
import { type LiftedAnswer, type UntypedAnswer, untypedAnswer } from "../../../src/translate/untyped-answer.ts";

const bytes = Uint8Array.of(1, 2, 3);
const cases: Record<string, { lifted: LiftedAnswer; answer: UntypedAnswer }> = {
  "one text is no more than a text": {
    lifted: { content: [{ tag: "text", val: "hi" }], isError: false },
    answer: { outcome: "ok", text: "hi" },
  },
  "two texts are blocks, and one text for who takes no blocks": {
    lifted: {
      content: [
        { tag: "text", val: "a" },
        { tag: "text", val: "b" },
      ],
      isError: false,
    },
    answer: {
      outcome: "ok",
      text: "a\nb",
      content: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    },
  },
  "a picture alone has no text": {
    lifted: { content: [{ tag: "image", val: { data: bytes, mimeType: "image/png" } }], isError: false },
    answer: { outcome: "ok", text: "", content: [{ type: "image", data: "AQID", mimeType: "image/png" }] },
  },
  "a resource keeps what it says of itself": {
    lifted: { content: [{ tag: "blob-resource", val: { uri: "a:b", blob: bytes } }], isError: false },
    answer: { outcome: "ok", text: "", content: [{ type: "resource", resource: { uri: "a:b", blob: "AQID" } }] },
  },
  "a link keeps what it says of itself": {
    lifted: { content: [{ tag: "resource-link", val: { uri: "a:b", name: "b", mimeType: "text/plain" } }], isError: false },
    answer: { outcome: "ok", text: "", content: [{ type: "resource_link", uri: "a:b", name: "b", mimeType: "text/plain" }] },
  },
  "a value without content is its text too": {
    lifted: { content: [], structured: ' {"n": 18446744073709551615} ', isError: false },
    answer: { outcome: "ok", text: '{"n":18446744073709551615}', structured: { n: 18446744073709551615n } },
  },
  "a value beside an error is left out": {
    lifted: { content: [{ tag: "text", val: "no" }], structured: "{}", isError: true },
    answer: { outcome: "tool-error", text: "no" },
  },
};
for (const [sentence, { lifted, answer }] of Object.entries(cases)) {
  test(sentence, () => {
    const given = untypedAnswer(lifted, 1000);
    assert.deepEqual({ ...given, ...(given.structured ? { structured: { ...(given.structured as object) } } : {}) }, answer);
  });
}

test("all that is given counts, base64 as it is sent", () => {
  const image = (size: number): LiftedAnswer => ({
    content: [{ tag: "image", val: { data: new Uint8Array(size), mimeType: "image/png" } }],
    isError: false,
  });
  assert.ok(untypedAnswer(image(600), 1000));
  assert.throws(() => untypedAnswer(image(750), 1000), { code: "ResultTooLarge" });
  const value: LiftedAnswer = { content: [], structured: `"${"x".repeat(999)}"`, isError: false };
  assert.throws(() => untypedAnswer(value, 1000), { code: "ResultTooLarge" });
  const blocks: LiftedAnswer = { content: Array.from({ length: 100 }, () => ({ tag: "text", val: "" })), isError: false };
  assert.throws(() => untypedAnswer(blocks, 1000), { code: "ResultTooLarge" });
});

for (const structured of ["{", "{} {}", '{"a":1,"a":2}', `${"[".repeat(100)}${"]".repeat(100)}`]) {
  test(`a structured value that can't be read is refused: ${structured.slice(0, 20)}`, () => {
    assert.throws(() => untypedAnswer({ content: [], structured, isError: false }, 1000), { code: "ResultInvalid" });
  });
}
