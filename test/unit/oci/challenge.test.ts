import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseChallenges } from "../../../src/oci/challenge.ts";

const read = (header: string) => parseChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);

const cases: Record<string, { header: string; challenges: unknown[] }> = {
  "Docker Hub's": {
    header: 'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/a:pull"',
    challenges: [["bearer", { realm: "https://auth.docker.io/token", service: "registry.docker.io", scope: "repository:library/a:pull" }]],
  },
  "two in one header": {
    header: 'Basic realm="a, b", Bearer realm="https://r/t" , service=r',
    challenges: [
      ["basic", { realm: "a, b" }],
      ["bearer", { realm: "https://r/t", service: "r" }],
    ],
  },
  "names in any case, escapes in quotes": { header: 'BEARER Realm="a\\"b"', challenges: [["bearer", { realm: 'a"b' }]] },
  "no parameters": { header: "Negotiate", challenges: [["negotiate", {}]] },
  "an empty header": { header: "", challenges: [] },
  "a quote that does not end": {
    header: 'Bearer realm="https://r',
    challenges: [
      ["bearer", {}],
      ["realm", {}],
    ],
  },
};

for (const [sentence, { header, challenges }] of Object.entries(cases)) {
  test(`reads ${sentence}`, () => assert.deepEqual(read(header), challenges));
}

test("any header is read to an end", () => {
  const piece = fc.constantFrom("Bearer", " ", ",", "=", '"', "\\", "realm", "a", "é", "\t");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      assert.ok(Array.isArray(read(pieces.join(""))));
    }),
    { numRuns: 500 },
  );
});
