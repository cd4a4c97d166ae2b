import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { ComponentInterface, WitFunction, WitType } from "../../../src/api/wit.ts";
import { decodeComponent } from "../../../src/wit/decode.ts";
import { embedDocs, stripDocsSections } from "../../../src/wit/embed-docs.ts";
import { parseWitDocs } from "../../../src/wit/parse-wit-docs.ts";
import { withDocs } from "../../../src/wit/with-docs.ts";
import { custom } from "./bytes.ts";

const fixture = (name: string): Uint8Array => readFileSync(new URL(`../../fixtures/wit/${name}`, import.meta.url));
const textOf = (name: string): string => new TextDecoder().decode(fixture(name));
const wideDocs = parseWitDocs([
  { path: "wide/wide.wit", text: textOf("wide/wide.wit") },
  { path: "wide/deps/other.wit", text: textOf("wide/deps/other.wit") },
]);

const functionOf = (component: ComponentInterface, name: string): WitFunction => {
  const found = component.functions.find((fn) => fn.name === name);
  assert.ok(found, `no function ${name}`);
  return found;
};
const paramType = (component: ComponentInterface, name: string, index = 0): WitType => {
  const type = functionOf(component, name).params[index]?.type;
  assert.ok(type);
  return type;
};
const appended = (bytes: Uint8Array, section: readonly number[]): Uint8Array => Uint8Array.from([...bytes, ...section]);
const packageDocs = (version: number, content: unknown): number[] =>
  custom("package-docs", [version, ...new TextEncoder().encode(JSON.stringify(content))]);

describe("docs embedded in a component", () => {
  const bytes = embedDocs(fixture("wide.wasm"), wideDocs);
  const component = decodeComponent(bytes);

  test("reach functions, types, members, and names given to types, over several packages", () => {
    assert.deepEqual(component.docs.sources, ["ambit-docs"]);
    assert.equal(functionOf(component, "list-issues").docs, "List the issues in a repository.");
    assert.equal(functionOf(component, "unit").docs, "The unit circle.");
    assert.equal(paramType(component, "list-issues").docs, "Who owns a repository, as `owner/name`.");
    const way = paramType(component, "list-issues", 1);
    assert.ok(way.kind === "enum");
    assert.equal(way.docs, "Which way.");
    assert.deepEqual(
      way.cases.map((one) => one.docs),
      ["", "Down below."],
    );
    const shape = paramType(component, "area");
    assert.ok(shape.kind === "variant");
    assert.equal(shape.docs, "A shape.");
    assert.equal(shape.cases[0]?.docs, "Its radius.");
  });

  test("reach what the world exports itself, in place and through an include", () => {
    assert.equal(functionOf(component, "greet").docs, "Greets.");
    const greeting = paramType(component, "greet");
    assert.ok(greeting.kind === "record");
    assert.equal(greeting.docs, "A world-level record.");
    assert.equal(greeting.fields[0]?.docs, "What to say.");
    assert.equal(functionOf(component, "flip").docs, "Flip it.");
    assert.equal(paramType(component, "flip").docs, "Status in place.");
    assert.equal(functionOf(component, "shout").docs, "From the included world.");
  });

  test("replace those embedded before, and change no other byte", () => {
    const again = embedDocs(
      embedDocs(fixture("wide.wasm"), parseWitDocs([{ path: "x.wit", text: "package x:y; interface i { /// X.\n f: func(); }" }])),
      wideDocs,
    );
    assert.deepEqual(again, bytes);
    const original = fixture("wide.wasm");
    assert.deepEqual(bytes.subarray(0, original.length), Uint8Array.from(original));
  });

  test("are the same bytes whatever the order of the files", () => {
    const reversed = parseWitDocs([
      { path: "wide/deps/other.wit", text: textOf("wide/deps/other.wit") },
      { path: "wide/wide.wit", text: textOf("wide/wide.wit") },
    ]);
    assert.deepEqual(embedDocs(fixture("wide.wasm"), reversed), bytes);
  });

  test("leave types shared that were shared", () => {
    const bare = decodeComponent(fixture("rust-echo.wasm"));
    const distinct = (one: ComponentInterface): number => new Set(one.functions.flatMap((fn) => fn.params.map((param) => param.type))).size;
    assert.equal(distinct(withDocs(bare, "package a:b; interface i { /// X.\n f: func(); }")), distinct(bare));
    const documented = withDocs(bare, "package ambit:echo@0.1.0; interface types { /// A point.\n record point { x: s32, y: s32 } }");
    assert.deepEqual(documented.docs.sources, ["wit-text"]);
    assert.equal(distinct(documented), distinct(bare));
  });
});

describe("the mission's interface", () => {
  const text = textOf("toolchains.wit");

  for (const toolchain of ["python", "starling-monkey"]) {
    test(`built by ${toolchain} and documented by WIT text has its docs`, () => {
      const component = withDocs(decodeComponent(fixture(`${toolchain}.wasm`)), text);
      assert.equal(functionOf(component, "list-issues").docs, "List the issues in a repository.");
      const args = paramType(component, "list-issues");
      assert.ok(args.kind === "record");
      assert.deepEqual(
        args.fields.map((field) => field.docs),
        ["The repository, as owner/name.", "Which issues to list."],
      );
    });
  }

  test("finds nothing in docs of another version", () => {
    const component = decodeComponent(fixture("python.wasm"));
    assert.equal(withDocs(component, text.replace("@0.1.0", "@0.2.0")), component);
  });
});

describe("a package-docs section", () => {
  const content = {
    worlds: {
      wide: { funcs: { greet: { docs: "Old greeting." } }, interface_exports: { inline: { funcs: { flip: { docs: "Turn over." } } } } },
    },
    interfaces: {
      issues: { funcs: { "list-issues": { docs: "All issues." }, "no-such": { docs: "?" }, unit: { docs: "Of whichever comes first." } } },
      types: { types: { permissions: { docs: "Rights.", items: { read: "Reading." } } } },
      unknown: { docs: "Of another package." },
    },
  };

  test("is read in both of its versions", () => {
    const current = decodeComponent(appended(fixture("wide.wasm"), packageDocs(1, content)));
    assert.deepEqual(current.docs.sources, ["package-docs"]);
    assert.equal(functionOf(current, "list-issues").docs, "All issues.");
    assert.equal(functionOf(current, "greet").docs, "Old greeting.");
    assert.equal(functionOf(current, "flip").docs, "Turn over.");
    const permissions = paramType(current, "may");
    assert.ok(permissions.kind === "flags");
    assert.equal(permissions.docs, "Rights.");
    assert.equal(permissions.flags[0]?.docs, "Reading.");
    const first = decodeComponent(
      appended(fixture("wide.wasm"), packageDocs(0, { interfaces: { issues: { funcs: { wait: "Waits, of old." } } } })),
    );
    assert.equal(functionOf(first, "wait").docs, "Waits, of old.");
  });

  test("only fills what our own section leaves open, and WIT text only what both do", () => {
    const own = parseWitDocs([
      { path: "a.wit", text: "package example:wide@1.2.3; interface issues { /// Ours.\n list-issues: func(); }" },
    ]);
    const bytes = appended(embedDocs(fixture("wide.wasm"), own), packageDocs(1, content));
    const component = withDocs(decodeComponent(bytes), wideDocs);
    assert.deepEqual(component.docs.sources, ["ambit-docs", "package-docs", "wit-text"]);
    assert.equal(functionOf(component, "list-issues").docs, "Ours.");
    assert.equal(functionOf(component, "greet").docs, "Old greeting.");
    assert.equal(functionOf(component, "wait").docs, "Waits.");
  });

  test("is ignored where two packages have an interface of that name", () => {
    // `unit` returns a type of example:other/shapes, `issues` has the only other one.
    const bytes = appended(fixture("wide.wasm"), packageDocs(1, { interfaces: { shapes: { funcs: { unit: { docs: "A unit." } } } } }));
    assert.equal(functionOf(decodeComponent(bytes), "unit").docs, "A unit.");
    const twice = Buffer.from(bytes).toString("latin1").replaceAll("example:other/shapes@0.3.0-rc.1", "example:other/issues@0.3.0-rc.1");
    const renamed = Uint8Array.from(Buffer.from(twice, "latin1"));
    const ambiguous = appended(stripDocsSections(renamed), packageDocs(1, content));
    assert.equal(functionOf(decodeComponent(ambiguous), "list-issues").docs, "");
    assert.equal(functionOf(decodeComponent(ambiguous), "unit").docs, "");
  });

  test("is gone when stripped, wherever it stands, and nothing else is", () => {
    const original = Uint8Array.from(fixture("wide.wasm"));
    const section = packageDocs(1, content);
    const other = custom("producers", [0]);
    const bytes = Uint8Array.from([...original.subarray(0, 8), ...section, ...original.subarray(8), ...other, ...section]);
    assert.deepEqual(stripDocsSections(bytes), Uint8Array.from([...original, ...other]));
    assert.equal(stripDocsSections(original), original);
  });
});

test("docs of a world are left out where two worlds that fit say different things", () => {
  const component = decodeComponent(fixture("wide.wasm"));
  const world = (name: string, docs: string): string => `world ${name} { /// ${docs}\n export greet: func(); }\n`;
  assert.equal(functionOf(withDocs(component, `package a:b; ${world("one", "Same.")}${world("two", "Same.")}`), "greet").docs, "Same.");
  assert.equal(functionOf(withDocs(component, `package a:b; ${world("one", "This.")}${world("two", "That.")}`), "greet").docs, "");
  const foreign = "world three { /// That.\n export greet: func(); /// X.\n export not-there: func(); }";
  assert.equal(functionOf(withDocs(component, `package a:b; ${world("one", "This.")}${foreign}`), "greet").docs, "This.");
});
