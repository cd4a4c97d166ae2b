import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalJson, type JsonValue, parseJson } from "../../../src/api/json.ts";
import { defaultYamlLimits, readYaml } from "../../../src/manifests/yaml-document.ts";

const refusals: Record<string, { text: string; code: string; at: string }> = {
  "a key that occurs twice": { text: "a: 1\nb:\n  c: 1\n  c: 2\n", code: "YamlDuplicateKey", at: "4:3" },
  "a missing quote": { text: 'a: "x', code: "YamlSyntax", at: "1:6" },
  "a tab as indentation": { text: "a:\n\t- b", code: "YamlSyntax", at: "2:1" },
  "a bracket that closes nothing": { text: "a: 1\n]", code: "YamlSyntax", at: "2:1" },
  "an alias without an anchor": { text: "a: *x", code: "YamlSyntax", at: "1:1" },
  "a tag of an application": { text: "a: !ruby/object x", code: "YamlSyntax", at: "1:4" },
  "a binary": { text: "a: !!binary aGk=", code: "YamlTag", at: "1:1" },
  "a number that JSON has not": { text: "a: .nan", code: "YamlNumber", at: "1:1" },
  "a boolean of YAML 1.1": { text: "a: yes", code: "YamlAmbiguous", at: "1:1" },
  "an octal number of YAML 1.1": { text: "mode: 0644", code: "YamlAmbiguous", at: "1:1" },
  "a number as a key": { text: "1: a", code: "YamlKey", at: "1:1" },
  "a list as a key": { text: "? [a]\n: b", code: "YamlKey", at: "1:1" },
  "an alias to what holds it": { text: "a: &a [*a]", code: "YamlTooDeep", at: "1:7" },
};

for (const [sentence, { text, code, at }] of Object.entries(refusals)) {
  test(`YAML is refused for ${sentence}, with its place`, () => {
    const [document] = readYaml(text);
    const [finding] = document?.findings ?? [];
    const { line, column } = document?.positionOf(finding?.path ?? "") ?? {};
    assert.deepEqual([document?.value, finding?.code, `${line}:${column}`], [undefined, code, at]);
  });
}

const hostile: Record<string, string> = {
  "more aliases than anybody writes": `a: &a x\nb: [${Array(200).fill("*a").join(",")}]`,
  "aliases that multiply": [
    "a: &a [x,x,x,x,x,x,x,x,x]",
    ..."bcdefghi".split("").map((c, i) => `${c}: &${c} [${Array(9).fill(`*${"abcdefghi"[i]}`)}]`),
  ].join("\n"),
  "brackets without end": "[".repeat(100_000),
  "lists within lists": `${"- ".repeat(100_000)}x`,
  "closing brackets": "]".repeat(400_000),
  "documents without end": "---\n".repeat(50_000),
  "a text that is too long": "a".repeat(defaultYamlLimits.maxLength + 1),
};

for (const [sentence, text] of Object.entries(hostile)) {
  test(`YAML ends with a finding for ${sentence}`, () => {
    const findings = readYaml(text).flatMap((document) => document.findings);
    assert.match(findings[0]?.code ?? "", /^Yaml(TooLong|TooDeep|Syntax)$/);
  });
}

test("documents before and after one that cannot be read are read", () => {
  const values = readYaml("a: 1\n---\na: [\n---\nb: 2\n").map(({ value }) => value);
  assert.equal(canonicalJson(values[0] ?? null), '{"a":1}');
  assert.equal(values[1], undefined);
});

test("integers keep all their digits, keys that objects are made with are keys like others, and anchors are followed", () => {
  const [document] = readYaml(
    "big: 18446744073709551615\n__proto__: {a: &x [1]}\nconstructor: *x\nempty:\ntext: '010'\ntime: 2026-01-31T12:00:00Z\n",
  );
  const value = document?.value ?? null;
  assert.equal(
    canonicalJson(value),
    '{"__proto__":{"a":[1]},"big":18446744073709551615,"constructor":[1],"empty":null,"text":"010","time":"2026-01-31T12:00:00Z"}',
  );
  assert.equal(({} as { a?: unknown }).a, undefined);
});

test("JSON text is read as the exact JSON parser reads it", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 3, noUnicodeString: false }), (text) => {
      let expected: JsonValue;
      try {
        expected = parseJson(text);
      } catch {
        return;
      }
      const [document] = readYaml(text);
      assert.equal(canonicalJson(document?.value ?? null), canonicalJson(expected));
    }),
    { numRuns: 200 },
  );
});

test("no text makes the reader throw", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          "a",
          ": ",
          "- ",
          "\n",
          "  ",
          "[",
          "]",
          "{",
          "}",
          "&x ",
          "*x",
          "!t ",
          '"',
          "'",
          "|",
          ">",
          "? ",
          ",",
          "#",
          "%",
          "---\n",
          "\t",
        ),
        { maxLength: 40 },
      ),
      (parts) => {
        for (const document of readYaml(parts.join(""))) document.positionOf("/a/0");
      },
    ),
    { numRuns: 500 },
  );
});
