import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { draftNames, nameProblem, toolName } from "../../../src/declaration/names.ts";

const fn = (name: string, id: string | null = "a:b/things@1.0.0") => ({ name, interface: id });
const drafted = (...functions: ReturnType<typeof fn>[]): (string | null)[] => {
  const names = draftNames(functions);
  return functions.map((one) => {
    const draft = names.get(one);
    return draft?.name ?? (draft && "code" in draft ? `!${draft.code}` : null);
  });
};

describe("a drafted name", () => {
  it("joins words by underscores and leaves acronyms as they are", () => {
    assert.equal(toolName(fn("list-issues")), "list_issues");
    assert.equal(toolName(fn("get-URL")), "get_URL");
  });
  it("is told apart by the interface where two functions want it", () => {
    assert.deepEqual(drafted(fn("list", "a:b/red-things@1.0.0"), fn("list", "a:b/blue@1.0.0"), fn("get")), [
      "red_things_list",
      "blue_list",
      "get",
    ]);
  });
  it("is left to a function of the world itself, which has no interface to be told apart by", () => {
    assert.deepEqual(drafted(fn("list", null), fn("list")), ["list", "things_list"]);
  });
  it("is asked for where two versions of one interface are exported", () => {
    assert.deepEqual(drafted(fn("list", "a:b/things@1.0.0"), fn("list", "a:b/things@2.0.0")), ["!NameClash", "!NameClash"]);
  });
  it("is asked for where the longer name is another function's", () => {
    assert.deepEqual(drafted(fn("list", "a:b/x"), fn("list", "a:b/y"), fn("x-list", "a:b/z")), ["!NameClash", "y_list", "!NameClash"]);
  });
  it("is asked for, not cut, where it has more than 64 characters", () => {
    assert.deepEqual(drafted(fn("a".repeat(64)), fn("a".repeat(65))), ["a".repeat(64), "!NameUnusable"]);
  });
  it("tells names apart that differ in case alone", () => {
    assert.deepEqual(drafted(fn("Foo"), fn("foo")), ["Foo", "foo"]);
  });
});

describe("a name", () => {
  const cases: Record<string, boolean> = {
    list_issues: true,
    "list-issues": true,
    _private: true,
    "": false,
    "1st": false,
    "-x": false,
    "agent.describe": false,
    "a b": false,
    naïve: false,
    "x\n": false,
    [`x${"y".repeat(63)}`]: true,
    [`x${"y".repeat(64)}`]: false,
  };
  for (const [name, isUsable] of Object.entries(cases)) {
    it(`${JSON.stringify(name.slice(0, 20))} (${name.length}) is ${isUsable ? "" : "not "}one that every provider takes`, () => {
      assert.equal(nameProblem(name) === null, isUsable);
    });
  }
});
