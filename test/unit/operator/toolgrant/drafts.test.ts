import assert from "node:assert/strict";
import { test } from "node:test";
import type { WitFunction } from "../../../../src/api/wit.ts";
import { draftGrant } from "../../../../src/grants/draft.ts";
import type { ClusterToolGrant } from "../../../../src/operator/kinds.ts";
import { decideDrafts, type SeenTools } from "../../../../src/operator/toolgrant/drafts.ts";
import { grantOf, listIssues } from "../../grants/issues-tool.ts";

const named = (name: string, docs = "Does it."): WitFunction => listIssues({ name, docs });

const draftOf = (fn: WitFunction, component = "github"): ClusterToolGrant =>
  draftGrant({
    namespace: "agents",
    workload: "github",
    source: { name: component },
    fn,
    name: fn.name.replaceAll("-", "_"),
  }) as ClusterToolGrant;

const seen = (changes: Partial<SeenTools>): SeenTools => ({
  namespace: "agents",
  workload: "github",
  exists: true,
  draftGrants: true,
  components: [{ source: { name: "github" }, offered: [named("one"), named("two")] }],
  grants: [],
  ...changes,
});

const names = (grants: readonly { readonly metadata: { readonly name: string } }[]): string[] =>
  grants.map(({ metadata }) => metadata.name);

/** What is made, renewed and swept, by the functions' names. */
const cases: Record<string, { seen: SeenTools; create?: string[]; refresh?: string[]; sweep?: string[] }> = {
  "each tool without a grant is drafted": { seen: seen({}), create: ["one", "two"] },
  "none where the Workload asks for none": { seen: seen({ draftGrants: false }) },
  "a tool that has a grant of any name is not drafted": {
    seen: seen({ grants: [{ ...draftOf(named("one")), metadata: { name: "mine", namespace: "agents" } }] }),
    create: ["two"],
  },
  "a draft that says what the tool says stays as it is": { seen: seen({ grants: [draftOf(named("one")), draftOf(named("two"))] }) },
  "a draft follows what the tool says": {
    seen: seen({ grants: [draftOf(named("one", "It did.")), draftOf(named("two"))] }),
    refresh: ["one"],
  },
  "a draft of a tool that vanished is swept": {
    seen: seen({ grants: [draftOf(named("one")), draftOf(named("two")), draftOf(named("three"))] }),
    sweep: ["three"],
  },
  "a draft of a component that was taken out is swept": {
    seen: seen({ grants: [draftOf(named("one")), draftOf(named("two")), draftOf(named("other"), "gone")] }),
    sweep: ["other"],
  },
  "a component that can't be had now loses no draft and gets none": {
    seen: seen({ components: [{ source: { name: "github" }, offered: null }], grants: [draftOf(named("three"))] }),
  },
  "all drafts go with their Workload": {
    seen: seen({ exists: false, components: [], grants: [draftOf(named("one"))] }),
    sweep: ["one"],
  },
  "a grant without the draft's label is nobody's draft, whatever becomes of its Workload": {
    seen: seen({ exists: false, components: [], grants: [grantOf() as ClusterToolGrant] }),
  },
  "a reviewed grant is no draft any more, even if the label stayed": {
    seen: seen({
      exists: false,
      components: [],
      grants: [
        {
          ...draftOf(named("one")),
          spec: {
            ...draftOf(named("one")).spec,
            review: { definition: "v1:x", grant: "g", reach: { hosts: [], volumes: [], secrets: [], imports: [] }, component: ["any"] },
          },
        },
      ],
    }),
  },
  "no tools at all are no drafts": { seen: seen({ components: [{ source: { name: "github" }, offered: [] }] }) },
};

for (const [sentence, { seen: given, create = [], refresh = [], sweep = [] }] of Object.entries(cases)) {
  test(sentence, () => {
    const plan = decideDrafts(given);
    const functionsOf = (grants: readonly ClusterToolGrant[]) => grants.map(({ spec }) => spec.tool.function).sort();
    assert.deepEqual(plan.create.map(({ spec }) => spec.tool.function).sort(), create);
    assert.deepEqual(functionsOf(plan.refresh.map(({ live }) => live)), refresh);
    assert.deepEqual(functionsOf(plan.sweep), sweep);
  });
}

test("of a component with very many tools a hundred are drafted, always the same, and the rest is left to a person", () => {
  const many = Array.from({ length: 130 }, (_, i) => named(`tool-${i}`));
  const plan = decideDrafts(seen({ components: [{ source: { name: "github" }, offered: many }] }));
  assert.equal(plan.create.length, 100);
  assert.equal(plan.leftToPersons, 30);
  const again = decideDrafts(
    seen({ components: [{ source: { name: "github" }, offered: [...many].reverse() }], grants: plan.create as ClusterToolGrant[] }),
  );
  assert.deepEqual(again.create, []);
  assert.deepEqual(names(plan.create), [...names(plan.create)].sort());
});
