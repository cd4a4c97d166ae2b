import assert from "node:assert/strict";
import { test } from "node:test";
import { subjectsOf } from "../../../src/catalogue/caller.ts";
import { CatalogueState, type Touched } from "../../../src/catalogue/state.ts";
import { code, endpoint, githubComponent, liveGrant, otherCode, triage } from "./world.ts";

const subjects = subjectsOf(triage);
const names = (state: CatalogueState) =>
  state
    .grantsNaming(subjects)
    .map((grant) => grant.name)
    .sort();

test("a grant is found by each of its subjects, once", () => {
  const state = new CatalogueState();
  const twice = liveGrant("twice", {
    subjects: [
      { kind: "ServiceAccount", name: "triage", namespace: "agents" },
      { kind: "Group", name: "system:serviceaccounts:agents" },
    ],
  });
  const others = liveGrant("others", { subjects: [{ kind: "User", name: "alice" }] });
  const nobodys = liveGrant("nobodys", { subjects: [{ kind: "ServiceAccount", name: "triage" }] });
  state.apply([twice, others, nobodys].map((grant) => ({ kind: "grant", grant })));
  assert.deepEqual(names(state), ["twice"]);
  assert.deepEqual(
    state.grantsNaming(["User:alice"]).map((grant) => grant.name),
    ["others"],
  );
  assert.equal(state.size, 3);
});

test("a grant that comes anew replaces what it was, for the subjects it no longer names too", () => {
  const state = new CatalogueState();
  state.apply([{ kind: "grant", grant: liveGrant("a") }]);
  state.apply([{ kind: "grant", grant: liveGrant("a", { subjects: [{ kind: "User", name: "alice" }] }) }]);
  assert.deepEqual(names(state), []);
  assert.equal(state.grantsNaming(["User:alice"]).length, 1);
  state.apply([{ kind: "grant-withdrawn", id: "agents/a" }]);
  assert.equal(state.grantsNaming(["User:alice"]).length, 0);
  assert.equal(state.size, 0);
});

test("the revision for a caller moves with what concerns it and with nothing else", () => {
  const state = new CatalogueState();
  const seen = [state.revisionFor(subjects)];
  const changed = () => {
    seen.push(state.revisionFor(subjects));
    return seen.at(-1) !== seen.at(-2);
  };
  state.apply([{ kind: "grant", grant: liveGrant("a") }]);
  assert.ok(changed(), "a grant that names it");
  state.apply([{ kind: "grant", grant: liveGrant("b", { subjects: [{ kind: "User", name: "alice" }] }) }]);
  assert.ok(!changed(), "another's grant");
  state.apply([{ kind: "endpoints", of: githubComponent, endpoints: [endpoint()] }]);
  assert.ok(!changed(), "a host that comes up");
  state.apply([{ kind: "namespace", name: "agents", acceptsGrantsFrom: "*" }]);
  assert.ok(changed(), "a namespace that accepts others' grants");
  state.apply([{ kind: "namespace", name: "agents", acceptsGrantsFrom: "*" }]);
  assert.ok(!changed(), "the same annotation again");
  state.apply([{ kind: "grant-withdrawn", id: "agents/a" }]);
  assert.ok(changed(), "a grant withdrawn");
  state.apply([{ kind: "grant", grant: liveGrant("a") }]);
  assert.ok(changed(), "the same grant back");
  const withGrants = seen.filter((_, index) => index === 1 || index === seen.length - 1);
  assert.equal(new Set(withGrants).size, 2, "never the revision of another time with grants");
});

test("listeners hear of a batch once, with the subjects it touches, after all of it is in", () => {
  const state = new CatalogueState();
  const heard: Touched[] = [];
  let sizeWhenHeard = 0;
  const stop = state.subscribe((touched) => {
    heard.push(touched);
    sizeWhenHeard = state.size;
  });
  state.apply([
    { kind: "grant", grant: liveGrant("a") },
    { kind: "grant", grant: liveGrant("b", { subjects: [{ kind: "User", name: "alice" }] }) },
  ]);
  state.apply([{ kind: "endpoints", of: githubComponent, endpoints: [endpoint()] }]);
  assert.equal(heard.length, 1);
  assert.equal(sizeWhenHeard, 2);
  assert.deepEqual([...(heard[0]?.subjects ?? [])].sort(), ["User:alice", "User:system:serviceaccount:agents:triage"]);
  stop();
  state.apply([{ kind: "grant-withdrawn", id: "agents/a" }]);
  assert.equal(heard.length, 1);
});

test("a call may go only to hosts of its own component that run approved code", () => {
  const state = new CatalogueState();
  const grant = liveGrant();
  state.apply([
    {
      kind: "endpoints",
      of: githubComponent,
      endpoints: [endpoint({ podUid: "good" }), endpoint({ podUid: "swapped", component: otherCode })],
    },
    { kind: "endpoints", of: { ...githubComponent, component: "other" }, endpoints: [endpoint({ podUid: "neighbour", component: code })] },
  ]);
  assert.deepEqual(
    state.endpointsOf(grant).map((one) => one.podUid),
    ["good"],
  );
  state.apply([{ kind: "endpoints", of: githubComponent, endpoints: [] }]);
  assert.deepEqual(state.endpointsOf(grant), []);
});
