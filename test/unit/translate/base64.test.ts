import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { base64Pattern } from "../../../src/declaration/schema.ts";
import { base64Of, bytesOfBase64, isBase64 } from "../../../src/translate/base64.ts";

const pattern = new RegExp(base64Pattern, "u");

it("base64 is what the schema's pattern admits", () => {
  const texts = fc.oneof(
    fc.string({ unit: fc.constantFrom("A", "g", "w", "E", "/", "+", "=", "-", "\n"), maxLength: 9 }),
    fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString("base64")),
  );
  fc.assert(
    fc.property(texts, (text) => {
      assert.equal(isBase64(text), pattern.test(text), JSON.stringify(text));
    }),
    { numRuns: 2000 },
  );
  for (const text of ["A", "AA", "AAA", "====", "A===", "AA=A", "AAAA=", "AAAA\n"]) assert.equal(isBase64(text), false, text);
});

it("there is one text for the same bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => {
      const text = base64Of(bytes);
      assert.ok(isBase64(text));
      assert.deepEqual(bytesOfBase64(text), bytes);
    }),
  );
});
