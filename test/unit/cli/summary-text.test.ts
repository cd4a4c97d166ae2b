import assert from "node:assert/strict";
import { test } from "node:test";
import { excludedReason } from "../../../src/api/untyped.ts";
import { summaryText } from "../../../src/cli/summary-text.ts";
import { plainTerminal } from "./plain-terminal.ts";

const key = { namespace: "agents", workload: "issues", component: "far" };

const summaryOf = (notOffered: readonly { function: string; reason: string }[], ungranted: readonly string[] = []): string =>
  summaryText(plainTerminal, {
    problems: [],
    plan: {
      hosts: [],
      grants: [],
      ungranted: ungranted.map((tool) => ({ key, tool: { workload: "issues", component: "far", tool } })),
      components: [
        {
          key,
          digest: null,
          fault: null,
          offered: 0,
          notOffered: notOffered.map((one) => ({ interface: null, ...one })),
          unmatchedExclusions: [],
        },
      ],
    },
  });

test("a tool that is left out is told with its reason, one that a person left out is not", () => {
  const text = summaryOf([
    { function: "twice", reason: "another tool has the same name" },
    { function: "unwanted", reason: excludedReason },
  ]);
  assert.match(text, /^agents\/issues\/far does not offer "twice": another tool has the same name$/m);
  assert.ok(!text.includes("unwanted"));
});

test("of many tools that are left out ten are told, and how many more there are", () => {
  const text = summaryOf(Array.from({ length: 5000 }, (_, at) => ({ function: `t${at}`, reason: "it is twice there" })));
  assert.equal(text.match(/it is twice there/g)?.length, 10);
  assert.match(text, /does not offer 4990 more/);
});

test("a name that a server gave is printed without what a terminal would obey", () => {
  const name = "a\u009b2Jb\u202e";
  const text = summaryOf([{ function: name, reason: name }], [name]);
  assert.doesNotMatch(text, /[\u0080-\u009f\u202e]/);
  assert.match(text, /a<U\+009B>2Jb<U\+202E>/);
});
