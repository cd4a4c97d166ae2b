import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { componentObjectName } from "../../../src/operator/names.ts";

describe("the name of a component's objects", () => {
  const cases: Record<string, { workload: string; component: string; is: string | RegExp }> = {
    "is both names where that is short enough": { workload: "github", component: "issues", is: "github-issues" },
    "may have fifty characters": { workload: "w".repeat(25), component: "c".repeat(24), is: `${"w".repeat(25)}-${"c".repeat(24)}` },
    "is cut at one more, and ends in a hash": { workload: "w".repeat(25), component: "c".repeat(25), is: /^w{25}-c{15}-[0-9a-f]{8}$/ },
    "has no dots, which a Service may not have": { workload: "a.b", component: "c", is: /^a-b-c-[0-9a-f]{8}$/ },
    "does not begin with a digit, which a Service may not": { workload: "7zip", component: "c", is: /^w-7zip-c-[0-9a-f]{8}$/ },
    "is not cut at a dash": { workload: `${"w".repeat(40)}`, component: "c".repeat(30), is: /^w{40}-[0-9a-f]{8}$/ },
  };
  for (const [sentence, { workload, component, is }] of Object.entries(cases)) {
    test(sentence, () => {
      const name = componentObjectName(workload, component);
      if (typeof is === "string") assert.equal(name, is);
      else assert.match(name, is);
    });
  }

  test("is one that a Service may have, whatever the parts, and leaves room for what is added to it", () => {
    const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
    const subdomain = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?){0,2}$/);
    fc.assert(
      fc.property(fc.oneof(label, subdomain), label, (workload, component) => {
        const name = componentObjectName(workload, component);
        assert.match(name, /^[a-z]([-a-z0-9]*[a-z0-9])?$/);
        assert.ok(name.length <= 50);
      }),
      { numRuns: 300 },
    );
  });

  test("differs for parts that are alike in what is kept of them", () => {
    const long = "w".repeat(60);
    assert.notEqual(componentObjectName(`${long}a`, "c"), componentObjectName(`${long}b`, "c"));
    assert.notEqual(componentObjectName(long, "a"), componentObjectName(long, "b"));
    assert.notEqual(componentObjectName("a.b", "c"), componentObjectName("a", "b.c"));
  });
});
