import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { ComponentInterface, WitFunction, WitType } from "../../../src/api/wit.ts";
import { decodeComponent } from "../../../src/wit/decode.ts";
import { offeredFunctions } from "../../../src/wit/offered.ts";

const decoded = (name: string): ComponentInterface =>
  decodeComponent(readFileSync(new URL(`../../fixtures/wit/${name}.wasm`, import.meta.url)));
const text: WitType = { kind: "string" };
const stream: WitType = { kind: "stream", element: { kind: "u8" } };

const fn = (name: string, more: Partial<WitFunction> = {}): WitFunction => ({
  interface: "example:notes/notes@1.0.0",
  name,
  form: "function",
  async: false,
  params: [],
  result: null,
  docs: "",
  ...more,
});

const componentOf = (functions: readonly WitFunction[], exports: readonly string[] = []): ComponentInterface => ({
  imports: [],
  exports: [...new Set([...exports, ...functions.map((one) => one.interface ?? one.name)])].map((id) => ({ id, kind: "instance" })),
  functions,
  isAsynchronous: false,
  docs: { sources: [] },
});

const reasonFor = (one: WitFunction, exports: readonly string[] = [], exclude: readonly string[] = []): string =>
  offeredFunctions(componentOf([one], exports), exclude).notOffered[0]?.reason ?? "offered";

const cases: Record<string, { fn: WitFunction; exports?: string[]; exclude?: string[]; reason: RegExp | "offered" }> = {
  "a plain function": { fn: fn("add", { params: [{ name: "text", type: text }], result: text }), reason: "offered" },
  "an async function": { fn: fn("add", { async: true }), reason: "offered" },
  "a function of the world": { fn: fn("greet", { interface: null }), reason: "offered" },
  "a WASI interface": { fn: fn("run", { interface: "wasi:cli/run@0.2.6" }), reason: /WASI/ },
  "a package whose name starts like WASI": { fn: fn("run", { interface: "wasix:cli/run@0.2.6" }), reason: "offered" },
  "a method": { fn: fn("[method]note.text", { form: "method" }), reason: /a method of a resource/ },
  "a constructor": { fn: fn("[constructor]note", { form: "constructor" }), reason: /a constructor of a resource/ },
  "a static function": { fn: fn("[static]note.open", { form: "static" }), reason: /a static function of a resource/ },
  "any function of a server": {
    fn: fn("add"),
    exports: ["wasi:http/incoming-handler@0.2.6"],
    reason: /incoming-handler@0\.2\.6, so it is a server/,
  },
  "a component that sends requests": { fn: fn("add"), exports: ["wasi:http/incoming-handlers@0.2.6"], reason: "offered" },
  "the untyped tool interface of another version": {
    fn: fn("call-tool", { interface: "ambit:tool/untyped@9.0.0" }),
    reason: /does not speak/,
  },
  "a resource parameter": {
    fn: fn("f", { params: [{ name: "of", type: { kind: "borrow", resource: "note" } }] }),
    reason: /parameter of is a resource \(note\)/,
  },
  "a stream result": { fn: fn("f", { result: stream }), reason: /its result is a stream/ },
  "a future deep inside": {
    fn: fn("f", {
      result: {
        kind: "record",
        name: "r",
        docs: "",
        fields: [{ name: "later", type: { kind: "list", element: { kind: "future", element: null } }, docs: "" }],
      },
    }),
    reason: /result has the field later that has an element that is a future, which JSON cannot carry/,
  },
  "an error-context in a variant": {
    fn: fn("f", { result: { kind: "variant", name: "v", docs: "", cases: [{ name: "bad", type: { kind: "error-context" }, docs: "" }] } }),
    reason: /the case bad that is an error-context/,
  },
  "a map to handles": {
    fn: fn("f", { result: { kind: "map", key: text, value: { kind: "own", resource: "note" } } }),
    reason: /a value that is a resource/,
  },
  "excluded by its name": { fn: fn("add"), exclude: ["add"], reason: /workload excludes/ },
  "excluded by its interface": { fn: fn("add"), exclude: ["example:notes/notes@1.0.0"], reason: /workload excludes/ },
  "excluded by its interface without the version": { fn: fn("add"), exclude: ["example:notes/notes"], reason: /workload excludes/ },
  "excluded by both": { fn: fn("add"), exclude: ["example:notes/notes#add"], reason: /workload excludes/ },
  "another version excluded": { fn: fn("add"), exclude: ["example:notes/notes@2.0.0#add"], reason: "offered" },
  "another function excluded": { fn: fn("add"), exclude: ["example:notes/notes#remove", "ad"], reason: "offered" },
  "a tool called init": { fn: fn("init", { interface: null, params: [{ name: "path", type: text }] }), reason: "offered" },
};

describe("whether a function is offered", () => {
  for (const [name, { fn: one, exports, exclude, reason }] of Object.entries(cases)) {
    test(name, () => {
      const found = reasonFor(one, exports, exclude);
      if (reason === "offered") assert.equal(found, "offered");
      else assert.match(found, reason);
    });
  }
});

describe("an export that jco cannot load keeps all functions from being offered", () => {
  const named = (name: string, id: string | null = "example:notes/notes@1.0.0") =>
    offeredFunctions(componentOf([fn("add"), fn(name, { interface: id })]), []);
  for (const name of ["arguments", "ARGUMENTS", "exports0", "module12", "memory0", "realloc1", "post-return0", "post-return3-async"]) {
    test(name, () => {
      const { offered, notOffered } = named(name);
      assert.deepEqual(offered, []);
      assert.equal(notOffered.length, 2);
      for (const { reason } of notOffered) assert.ok(reason.includes(`jco cannot load one that exports a function named ${name}`), reason);
    });
  }
  test("capitals, in the world alone", () => {
    assert.equal(named("get-URL", null).offered.length, 0);
    assert.equal(named("get-URL").offered.length, 2);
  });
  for (const name of ["eval", "delete", "await", "exports", "memory", "post-return", "module-1", "argument"]) {
    test(`but not ${name}`, () => assert.equal(named(name).offered.length, 2));
  }
  test("a type of the world itself does so too", () => {
    const { exports, ...rest } = componentOf([fn("add")]);
    const { notOffered } = offeredFunctions({ ...rest, exports: [...exports, { id: "colour", kind: "type" }] }, []);
    assert.match(notOffered[0]?.reason ?? "", /exports the type colour outside an interface/);
  });
  test("nor a method", () => {
    const method = fn("[method]note.arguments", { form: "method" });
    assert.equal(offeredFunctions(componentOf([fn("add"), method]), []).offered.length, 1);
  });
});

describe("what toolchains add to a component is not offered", () => {
  for (const [toolchain, init] of Object.entries({ quickjs: null, python: "exports" })) {
    test(toolchain, () => {
      const { offered, notOffered } = offeredFunctions(decoded(toolchain), []);
      assert.deepEqual(notOffered, [{ interface: init, function: "init", reason: "it is how the component's toolchain loads its script" }]);
      assert.ok(offered.some((one) => one.name === "list-issues"));
    });
  }
});

test("an async function that jco cannot run is told from one that it can", () => {
  const [only] = decoded("stackful").functions;
  assert.ok(only?.async && only.isStackful);
  assert.match(reasonFor(only), /async without a callback/);
});

test("every function of a component is either offered or not, with a reason", () => {
  const component = decoded("wide");
  const { offered, notOffered } = offeredFunctions(component, ["greet"]);
  assert.equal(offered.length + notOffered.length, component.functions.length);
  assert.deepEqual(
    notOffered.map((one) => one.function),
    [
      "greet",
      "[constructor]connection",
      "[method]connection.send",
      "[static]connection.open",
      "[method]connection.later",
      "connect",
      "fails",
      "copy",
    ],
  );
});

test("exclusions that match nothing are told", () => {
  const component = componentOf([fn("add"), fn("remove")]);
  assert.deepEqual(offeredFunctions(component, ["add", "delete"]).unmatchedExclusions, ["delete"]);
});

test("types that are shared without end are looked at once each", () => {
  let type: WitType = text;
  for (let i = 0; i < 90; i++) type = { kind: "tuple", items: [type, type] };
  assert.equal(reasonFor(fn("f", { result: type })), "offered");
});
