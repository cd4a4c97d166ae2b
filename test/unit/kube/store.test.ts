import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { ClusterObject } from "../../../src/kube/object.ts";
import { type Change, Store } from "../../../src/kube/store.ts";

const grant = (name: string, { uid = `uid-${name}`, version = "1", workload = "github" } = {}) => ({
  metadata: { namespace: "agents", name, uid, resourceVersion: version },
  workload,
});

const told = (store: Store<ReturnType<typeof grant>>): string[] => {
  const changes: string[] = [];
  store.subscribe(({ type, object }) =>
    changes.push(`${type} ${object.metadata.name} ${object.metadata.uid}@${object.metadata.resourceVersion}`),
  );
  return changes;
};

describe("a store", () => {
  test("tells what a list changes against what it holds", () => {
    const store = new Store<ReturnType<typeof grant>>();
    store.replace([grant("kept"), grant("changed"), grant("gone")]);
    const changes = told(store);
    changes.splice(0);
    store.replace([grant("kept"), grant("changed", { version: "2" }), grant("new")]);
    assert.deepEqual(changes, ["deleted gone uid-gone@1", "updated changed uid-changed@2", "added new uid-new@1"]);
  });

  const recreated: Record<string, (store: Store<ReturnType<typeof grant>>) => void> = {
    "a list": (store) => store.replace([grant("a", { uid: "second", version: "9" })]),
    "an event": (store) => store.apply(grant("a", { uid: "second", version: "9" })),
    "a list with the same resource version": (store) => store.replace([grant("a", { uid: "second", version: "1" })]),
  };
  for (const [how, arrive] of Object.entries(recreated)) {
    test(`tells an object that was deleted and made again as deleted, then added, when it arrives by ${how}`, () => {
      const store = new Store<ReturnType<typeof grant>>();
      store.apply(grant("a", { uid: "first" }));
      const changes = told(store);
      changes.splice(0);
      arrive(store);
      assert.deepEqual(
        changes.map((change) => change.split("@")[0]),
        ["deleted a first", "added a second"],
      );
    });
  }

  test("does not forget an object when an older one of its name is deleted", () => {
    const store = new Store<ReturnType<typeof grant>>();
    store.apply(grant("a", { uid: "second" }));
    store.remove(grant("a", { uid: "first" }));
    assert.equal(store.get("agents/a")?.metadata.uid, "second");
  });

  test("tells nothing twice", () => {
    const store = new Store<ReturnType<typeof grant>>();
    store.apply(grant("a"));
    const changes = told(store);
    changes.splice(0);
    store.apply(grant("a"));
    store.replace([grant("a")]);
    store.remove(grant("b"));
    assert.deepEqual(changes, []);
  });

  test("gives the previous object with an update", () => {
    const store = new Store<ReturnType<typeof grant>>();
    store.apply(grant("a", { workload: "old" }));
    let previous: string | undefined;
    store.subscribe((change) => {
      if (change.type === "updated") previous = change.previous.workload;
    });
    store.apply(grant("a", { version: "2", workload: "new" }));
    assert.equal(previous, "old");
  });

  test("finds objects by an index as they come, change and go", () => {
    const store = new Store<ReturnType<typeof grant>>({ workload: (object) => [object.workload] });
    const names = (workload: string) => store.find("workload", workload).map((object) => object.metadata.name);
    store.replace([grant("a"), grant("b"), grant("c", { workload: "fetch" })]);
    assert.deepEqual(names("github"), ["a", "b"]);
    store.apply(grant("a", { version: "2", workload: "fetch" }));
    assert.deepEqual([names("github"), names("fetch")], [["b"], ["c", "a"]]);
    store.remove(grant("b", { version: "3" }));
    assert.deepEqual(names("github"), []);
    assert.throws(() => store.find("color", "red"), TypeError);
  });

  test("hears about everything that is there, and nothing after unsubscribing", () => {
    const store = new Store<ReturnType<typeof grant>>();
    store.apply(grant("a"));
    const changes: string[] = [];
    const end = store.subscribe(({ type }) => changes.push(type));
    end();
    store.apply(grant("b"));
    assert.deepEqual(changes, ["added"]);
  });

  test("told changes, replayed, give what the store holds", () => {
    const object = fc.record({
      name: fc.constantFrom("a", "b", "c", "d"),
      uid: fc.constantFrom("1", "2"),
      version: fc.constantFrom("1", "2", "3"),
    });
    const step = fc.oneof(
      fc.record({ apply: object }),
      fc.record({ remove: object }),
      fc.record({ replace: fc.uniqueArray(object, { selector: ({ name }) => name }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const store = new Store<ReturnType<typeof grant>>({ uid: ({ metadata }) => [metadata.uid] });
        const replayed = new Map<string, ClusterObject>();
        store.subscribe((change: Change<ClusterObject>) => {
          const { name } = change.object.metadata;
          const known = replayed.get(name);
          if (change.type === "added") assert.equal(known, undefined);
          else assert.equal(known?.metadata.uid, change.object.metadata.uid);
          if (change.type === "deleted") replayed.delete(name);
          else replayed.set(name, change.object);
        });
        const made = (of: { name: string; uid: string; version: string }) => grant(of.name, of);
        for (const now of steps) {
          if ("apply" in now) store.apply(made(now.apply));
          else if ("remove" in now) store.remove(made(now.remove));
          else store.replace(now.replace.map(made));
          assert.deepEqual(new Set(replayed.values()), new Set(store.list()));
          assert.equal(store.find("uid", "1").length + store.find("uid", "2").length, store.size);
        }
      }),
      { numRuns: 200 },
    );
  });
});
