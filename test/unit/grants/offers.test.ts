import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Subject } from "../../../src/api/generated/toolgrant.ts";
import { type CallerIdentity, offersFor } from "../../../src/grants/offers.ts";

const triage: CallerIdentity = {
  user: "system:serviceaccount:agents:triage",
  groups: ["system:serviceaccounts", "system:serviceaccounts:agents"],
  namespace: "agents",
};
const everybody: Subject = { kind: "Group", name: "system:serviceaccounts" };

const grant = (id: string, tool: string, subjects: Subject[] = [everybody]) => {
  const [namespace = "", name = ""] = id.split("/");
  return { namespace, name, spec: { declaration: { name: tool }, subjects } };
};

const offered = (grants: ReturnType<typeof grant>[], accepts: Record<string, string> = {}, caller = triage) => {
  const { offers, withheld } = offersFor(caller, grants, new Map(Object.entries(accepts)));
  return {
    offers: offers.map(({ namespace, name }) => `${namespace}/${name}`),
    withheld: withheld.map(({ grant: { namespace, name }, reason }) => `${namespace}/${name} ${reason.code}`),
  };
};

const subjects: Record<string, { subject: Subject; is: boolean }> = {
  "its ServiceAccount": { subject: { kind: "ServiceAccount", name: "triage", namespace: "agents" }, is: true },
  "the ServiceAccount of that name elsewhere": { subject: { kind: "ServiceAccount", name: "triage", namespace: "other" }, is: false },
  "another ServiceAccount": { subject: { kind: "ServiceAccount", name: "triag", namespace: "agents" }, is: false },
  "its user name": { subject: { kind: "User", name: "system:serviceaccount:agents:triage" }, is: true },
  "its user name in other case": { subject: { kind: "User", name: "System:serviceaccount:agents:triage" }, is: false },
  "a group it is in": { subject: { kind: "Group", name: "system:serviceaccounts:agents" }, is: true },
  "a user of its group's name": { subject: { kind: "User", name: "system:serviceaccounts:agents" }, is: false },
};
for (const [who, { subject, is }] of Object.entries(subjects)) {
  test(`a grant that names ${who} ${is ? "is" : "is not"} the caller's`, () => {
    assert.deepEqual(offered([grant("agents/a", "x", [subject])]).offers, is ? ["agents/a"] : []);
  });
}

test("a grant that names nobody is nobody's", () => assert.deepEqual(offered([grant("agents/a", "x", [])]), { offers: [], withheld: [] }));

test("another namespace's grant does not reach a caller unasked", () => {
  assert.deepEqual(offered([grant("other/a", "x")]), { offers: [], withheld: ["other/a NotAccepted"] });
  assert.deepEqual(offered([grant("other/a", "x")], { agents: "team, other" }).offers, ["other/a"]);
  assert.deepEqual(offered([grant("other/a", "x")], { agents: "*" }).offers, ["other/a"]);
  assert.deepEqual(offered([grant("other/a", "x")], { other: "*" }).offers, []);
});

test("a caller without a namespace is offered only what is accepted for such callers", () => {
  const user: CallerIdentity = { user: "ada", groups: [], namespace: null };
  const grants = [grant("other/a", "x", [{ kind: "User", name: "ada" }])];
  assert.deepEqual(offered(grants, { agents: "*" }, user).withheld, ["other/a NotAccepted"]);
  assert.deepEqual(offered(grants, { "": "other" }, user).offers, ["other/a"]);
});

const conflicts: Record<string, { ids: string[]; accepts: string; wins: string }> = {
  "the caller's own namespace comes first": { ids: ["aaa/a", "agents/z"], accepts: "aaa", wins: "agents/z" },
  "then the order in which namespaces are accepted": { ids: ["aaa/a", "zzz/a"], accepts: "zzz aaa", wins: "zzz/a" },
  "named namespaces come before the others": { ids: ["aaa/a", "zzz/a"], accepts: "*,zzz", wins: "zzz/a" },
  "under a star by namespace": { ids: ["zzz/a", "aaa/b"], accepts: "*", wins: "aaa/b" },
  "then by name": { ids: ["agents/b", "agents/a"], accepts: "", wins: "agents/a" },
};
for (const [sentence, { ids, accepts, wins }] of Object.entries(conflicts)) {
  test(`of two grants under one name, ${sentence}`, () => {
    const { offers, withheld } = offered(
      ids.map((id) => grant(id, "x")),
      { agents: accepts },
    );
    assert.deepEqual(offers, [wins]);
    assert.deepEqual(
      withheld,
      ids.filter((id) => id !== wins).map((id) => `${id} NameConflict`),
    );
  });
}

test("offers are the same whatever order grants come in, unique by name and sorted", () => {
  const all = fc.uniqueArray(fc.tuple(fc.constantFrom("agents", "a", "b"), fc.constantFrom("x", "y", "z"), fc.constantFrom("t1", "t2")), {
    selector: ([namespace, name]) => `${namespace}/${name}`,
  });
  fc.assert(
    fc.property(all, (list) => {
      const grants = list.map(([namespace, name, tool]) => grant(`${namespace}/${name}`, tool));
      const forwards = offersFor(triage, grants, new Map([["agents", "b *"]]));
      const backwards = offersFor(triage, [...grants].reverse(), new Map([["agents", "b *"]]));
      assert.deepEqual(forwards, backwards);
      const names = forwards.offers.map(({ spec }) => spec.declaration.name);
      assert.deepEqual(names, [...new Set(names)].sort());
    }),
    { numRuns: 100 },
  );
});
