import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { parseJson } from "../../../src/api/json.ts";
import {
  type ListedDefinition,
  listingLimits,
  listingText,
  readListing,
  toolListing,
  withoutExcluded,
} from "../../../src/grants/listing.ts";
import { readListingAnswer } from "../../../src/grants/listing-answer.ts";

const definition = (name: string, changes: Partial<ListedDefinition> = {}): ListedDefinition => ({
  name,
  inputSchema: '{"type":"object"}',
  ...changes,
});

test("tools are listed by name, each with what the server says for all", () => {
  const { tools } = toolListing({ server: "s", instructions: "Be kind." }, [definition("b"), definition("a")]);
  assert.deepEqual(
    tools.map(({ name, server, instructions }) => [name, server, instructions]),
    [
      ["a", "s", "Be kind."],
      ["b", "s", "Be kind."],
    ],
  );
});

test("what a host writes is read as it was", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 20 });
  const schema = fc.jsonValue({ maxDepth: 3 }).map((x) => JSON.stringify({ type: "object", x }));
  const one = fc.record(
    { name: text, title: text, description: text, inputSchema: schema, outputSchema: schema, annotations: schema },
    { requiredKeys: ["name", "inputSchema"] },
  );
  fc.assert(
    fc.property(
      fc.option(text, { nil: undefined }),
      fc.option(text, { nil: undefined }),
      fc.array(one, { maxLength: 5 }),
      (server, instructions, listed) => {
        const listing = toolListing({ server, instructions }, listed);
        // Without tools there is nothing that the server's words are about.
        assert.deepEqual(readListing(parseJson(listingText(listing))).tools, listing.tools);
      },
    ),
    { numRuns: 200 },
  );
});

test("whatever a host gives is a listing within bounds, or refused", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), (text) => {
      try {
        readListingAnswer(`{"digest":null,"fault":null,"listing":${text}}`);
      } catch (thrown) {
        assert.ok(thrown instanceof Invalid);
      }
    }),
    { numRuns: 300 },
  );
});

test("a host's word is held to the same bounds as a component's", () => {
  const listing = { server: null, instructions: null, tools: [{ name: "a", inputSchema: { type: "array" } }], notOffered: [] };
  const { tools, notOffered } = readListing(parseJson(JSON.stringify(listing)));
  assert.deepEqual([tools, notOffered], [[], [{ name: "a", reason: 'its input schema is not of the type "object"' }]]);
});

test("at most so many tools make a listing", () => {
  const many = Array.from({ length: listingLimits.tools + 1 }, (_, index) => definition(`t${index}`));
  assert.equal(toolListing({}, many.slice(1)).tools.length, listingLimits.tools);
  assert.throws(() => toolListing({}, many), { code: "ListingTooLarge" });
});

test("what a Workload excludes is not offered, and what it excludes in vain is told", () => {
  const { listing, unmatched } = withoutExcluded(toolListing({}, [definition("a"), definition("b")]), ["b", "c"]);
  assert.deepEqual(
    listing.tools.map(({ name }) => name),
    ["a"],
  );
  assert.deepEqual([listing.notOffered, unmatched], [[{ name: "b", reason: "the workload excludes it" }], ["c"]]);
});

test("an answer without a listing has its fault", () => {
  const answer = readListingAnswer('{"digest":null,"listing":null,"fault":{"code":"ListingFailed","message":"no"}}');
  assert.deepEqual(answer, { digest: null, listing: null, fault: { code: "ListingFailed", message: "no" } });
});
