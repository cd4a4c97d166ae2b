import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { withExactChars } from "../../../src/translate/jco-chars.ts";

const generated = `before();
  function i32ToChar(n) {
    if (!n || typeof n !== 'number') { throw new Error('invalid i32'); }
    if (n < 0) { throw new Error('i32 must be greater than zero'); }
    if (n >= 0x110000) { throw new Error('invalid i32, out of range'); }
    if (0xD800 <= n && n <= 0xDFFF) { throw new Error('invalid i32 out of range'); }
    return String.fromCharCode(n);
  }
after();`;

describe("generated code", () => {
  it("gives every scalar value back as it is, and nothing else", () => {
    const repaired = withExactChars(generated);
    assert.match(repaired, /^before\(\);[\s\S]*after\(\);$/);
    const body = /function i32ToChar[\s\S]*(?=after)/.exec(repaired)?.[0] ?? "";
    const toChar = new Function(`${body}; return i32ToChar;`)() as (n: unknown) => string;
    assert.deepEqual([0, 0x41, 0xd7ff, 0xe000, 0x1f600, 0x10ffff].map(toChar), ["\0", "A", "\ud7ff", "\ue000", "😀", "\u{10ffff}"]);
    for (const none of [-1, 0xd800, 0xdfff, 0x110000, "A", undefined]) assert.throws(() => toChar(none), TypeError);
  });

  it("without that function stays as it is", () => assert.equal(withExactChars("code();"), "code();"));

  it("with that function in another form is refused", () => {
    assert.throws(
      () => withExactChars("function i32ToChar(n) { return somethingElse(n); }"),
      (thrown) => thrown instanceof Invalid && thrown.code === "ComponentUnsupported",
    );
  });
});
