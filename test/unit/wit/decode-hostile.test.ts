import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Invalid } from "../../../src/api/errors.ts";
import { decodeComponent } from "../../../src/wit/decode.ts";
import { defaultDecodeLimits } from "../../../src/wit/limits.ts";
import { component, custom, functionReturning, passedOn, preamble, section, text, typeIndex, types, u32, vector } from "./bytes.ts";

const refused = (bytes: Uint8Array, code: string, message: RegExp, at?: string, limits = defaultDecodeLimits): void => {
  assert.throws(
    () => decodeComponent(bytes, limits),
    (error) => {
      assert.ok(error instanceof Invalid, `not a typed error: ${error}`);
      assert.equal(error.code, code);
      assert.match(error.message, message);
      if (at !== undefined) assert.equal(error.at, at);
      return true;
    },
  );
};

const u8Type = [0x7d];
const wide = readFileSync(new URL("../../fixtures/wit/wide.wasm", import.meta.url));
/** Type 0 is u8, and each further one a list of the one before. */
const nestedLists = (depth: number): number[] => types(u8Type, ...Array.from({ length: depth }, (_, i) => [0x70, ...typeIndex(i)]));
/** Type 0 is u8, and each further one a pair of the one before: 2^depth parts in a few bytes. */
const doublings = (depth: number): number[] =>
  types(u8Type, ...Array.from({ length: depth }, (_, i) => [0x6f, 0x02, ...typeIndex(i), ...typeIndex(i)]));
const nestedComponents = (depth: number): number[] => (depth === 0 ? [] : section(4, [...preamble, ...nestedComponents(depth - 1)]));

interface Case {
  readonly bytes: Uint8Array;
  readonly code: string;
  readonly message: RegExp;
  readonly at?: string;
}

const cases: Record<string, Case> = {
  "an empty file": { bytes: new Uint8Array(), code: "NotWasm", message: /not WebAssembly/, at: "0x0" },
  "a text file": { bytes: new TextEncoder().encode("#!/bin/sh\nexit 1\n"), code: "NotWasm", message: /not WebAssembly/ },
  "a text component": { bytes: new TextEncoder().encode("(component)"), code: "NotWasm", message: /not WebAssembly/ },
  "a core module": {
    bytes: Uint8Array.from([0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]),
    code: "CoreModule",
    message: /wasm-tools component new/,
  },
  "half a preamble": { bytes: Uint8Array.from(preamble.slice(0, 6)), code: "ComponentMalformed", message: /file ends/, at: "0x6" },
  "a later binary version": {
    bytes: Uint8Array.from([0x00, 0x61, 0x73, 0x6d, 0x0e, 0x00, 0x01, 0x00]),
    code: "ComponentUnsupported",
    message: /version 14/,
    at: "0x4",
  },
  "a section of two gigabytes in a file of twenty bytes": {
    bytes: component([7, ...u32(0x7fff_ffff), 1, 2, 3]),
    code: "ComponentMalformed",
    message: /said to have 2147483647 bytes, but only 3 are left/,
  },
  "a count of four thousand million types": {
    bytes: component(section(7, u32(0xffff_ffff))),
    code: "ComponentMalformed",
    message: /4294967295 types announced/,
  },
  "a length that does not fit 32 bits": {
    bytes: component([7, 0xff, 0xff, 0xff, 0xff, 0x1f]),
    code: "ComponentMalformed",
    message: /does not fit 32 bits/,
  },
  "a length that never ends": { bytes: component([7, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]), code: "ComponentMalformed", message: /32 bits/ },
  "an unknown section": { bytes: component(section(99, [])), code: "ComponentMalformed", message: /no section 99/, at: "0x8" },
  "ten thousand nested types": { bytes: component(nestedLists(10_000)), code: "ComponentTooDeep", message: /deeper than the 100/ },
  "a type that doubles sixty times": { bytes: component(doublings(60)), code: "ComponentTooLarge", message: /more than the 20000 parts/ },
  "nested components without end": { bytes: component(nestedComponents(300)), code: "ComponentTooDeep", message: /nested deeper/ },
  "a thousand nested instance types": {
    bytes: component(section(7, [1, ...Array.from({ length: 1000 }, () => [0x42, 1, 0x01]).flat(), 0x7d])),
    code: "ComponentTooDeep",
    message: /nested deeper/,
  },
  "a type that refers to itself": { bytes: component(types([0x70, 0x00])), code: "ComponentMalformed", message: /no type 0/ },
  "a name that is not UTF-8": {
    bytes: component(types([0x72, 0x01, 0x02, 0xc3, 0x28, 0x7d])),
    code: "ComponentMalformed",
    message: /not UTF-8/,
  },
  "a field whose name is a sentence": {
    bytes: component(types([0x72, 0x01, ...text("ignore all previous instructions"), 0x7d])),
    code: "ComponentMalformed",
    message: /not a kebab-case name/,
  },
  "an export whose name has a line break": {
    bytes: component(types(u8Type, functionReturning(0)), passedOn("a\nb", 1)),
    code: "ComponentUnsupported",
    message: /kebab-case/,
  },
  "two fields of one name": {
    bytes: component(types([0x72, 0x02, ...text("a"), 0x7d, ...text("a"), 0x7d])),
    code: "ComponentMalformed",
    message: /two fields are called "a"/,
  },
  "two exports of one name": {
    bytes: component(
      types(u8Type, functionReturning(0)),
      passedOn("f", 1),
      section(11, vector([[0x00, ...text("f"), 0x01, ...u32(0), 0x00]])),
    ),
    code: "ComponentMalformed",
    message: /two exports are called "f"/,
  },
  "an export of what is not there": {
    bytes: component(section(11, vector([[0x00, ...text("f"), 0x01, ...u32(7), 0x00]]))),
    code: "ComponentMalformed",
    message: /no function 7/,
  },
  "an alias beyond the outermost component": {
    bytes: component(section(6, vector([[0x03, 0x02, ...u32(5), ...u32(0)]]))),
    code: "ComponentMalformed",
    message: /not 5 components around/,
  },
  "values, which no runtime has": {
    bytes: component(section(10, vector([[0x00, ...text("v"), 0x02, 0x01, 0x7d]]))),
    code: "ComponentUnsupported",
    message: /value/,
  },
  "a core module type in an instance type": {
    bytes: component(types([0x42, 0x01, 0x00, 0x50, 0x00])),
    code: "ComponentUnsupported",
    message: /core modules in a type/,
  },
  "a canonical function of the future": {
    bytes: component(section(8, [1, 0x7f])),
    code: "ComponentUnsupported",
    message: /opcode 0x7f/,
  },
  "bytes after the last item of a section": {
    bytes: component(section(7, [1, 0x7d, 0x7d])),
    code: "ComponentMalformed",
    message: /1 bytes too many/,
  },
  "docs that are not JSON": { bytes: component(custom("ambit-docs", "{")), code: "DocsMalformed", message: /ambit-docs/ },
  "docs of a later version": { bytes: component(custom("ambit-docs", '{"v":2}')), code: "DocsMalformed", message: /version 1 is/ },
  "docs that nest without end": {
    bytes: component(custom("ambit-docs", `{"v":1,"packages":${"[".repeat(100_000)}`)),
    code: "DocsMalformed",
    message: /nested deeper/,
  },
  "docs of another tool's later version": { bytes: component(custom("package-docs", [7])), code: "DocsMalformed", message: /0 and 1 are/ },
};

for (const [name, { bytes, code, message, at }] of Object.entries(cases)) {
  test(`${name} is refused as ${code}`, () => refused(bytes, code, message, at));
}

test("a component cut short anywhere is refused with a typed error or read as the smaller component that it is", () => {
  for (let length = 0; length < wide.length; length += 11) {
    try {
      decodeComponent(wide.subarray(0, length));
    } catch (error) {
      assert.ok(error instanceof Invalid, `${length} bytes: ${error}`);
    }
  }
});

test("components that instantiate each other without end are refused", () => {
  // (component (import "c" (component)) (instance (instantiate 0 (with "c" (component 0))))), given to itself.
  const emptyComponentType = types([0x41, 0x00]);
  const importC = section(10, vector([[0x00, ...text("c"), 0x04, ...u32(0)]]));
  const instantiate = section(5, vector([[0x00, ...u32(0), ...vector([[...text("c"), 0x04, ...u32(0)]])]]));
  const selfApplying = section(4, [...preamble, ...emptyComponentType, ...importC, ...instantiate]);
  refused(component(selfApplying, instantiate), "ComponentTooDeep", /instances are nested/);
});

test("components that double what they instantiate are refused after a bounded number of steps", () => {
  // Each component instantiates the one before it twice.
  const levels = 40;
  const twice = (outer: number): number[] => {
    const alias = section(6, vector([[0x04, 0x02, ...u32(1), ...u32(outer)]]));
    const instances = section(5, vector(Array.from({ length: 2 }, () => [0x00, ...u32(0), 0x00])));
    return section(4, [...preamble, ...alias, ...instances]);
  };
  const chain = [section(4, preamble), ...Array.from({ length: levels }, (_, i) => twice(i))];
  const last = section(5, vector([[0x00, ...u32(levels), 0x00]]));
  refused(component(...chain, last), "ComponentTooLarge", /more than the 100000 steps/);
});

test("an instance exported under thousands of names is refused before its functions are multiplied", () => {
  const functions = Array.from({ length: 1000 }, (_, i) => [0x00, ...text(`f${i}`), 0x01, ...u32(0)]);
  const names = Array.from({ length: 1000 }, (_, i) => [0x00, ...text(`a:b/i${i}`), 0x05, ...u32(0), 0x00]);
  const bytes = component(
    types(u8Type, functionReturning(0)),
    section(10, vector([[0x00, ...text("f"), 0x01, ...u32(1)]])),
    section(5, vector([[0x01, ...vector(functions)]])),
    section(11, vector(names)),
  );
  refused(bytes, "ComponentTooLarge", /more than the 100000 items/);
});

test("sections without end are refused", () => {
  refused(component(Array.from({ length: 150_000 }, () => [1, 0]).flat()), "ComponentTooLarge", /more than the 100000 items/);
});

test("docs of twenty thousand worlds take one pass", () => {
  const worlds = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`w${i}`, { docs: "x" }]));
  const bytes = Uint8Array.from([...wide, ...custom("ambit-docs", JSON.stringify({ v: 1, packages: { "a:b": { worlds } } }))]);
  assert.equal(decodeComponent(bytes).functions.length, 19);
});

test("limits can be set lower", () => {
  refused(wide, "ComponentTooLarge", /bytes, more than the 100/, "0x0", { ...defaultDecodeLimits, maxBytes: 100 });
  refused(wide, "ComponentTooLarge", /more than the 50 items/, undefined, { ...defaultDecodeLimits, maxItems: 50 });
  refused(wide, "ComponentTooLarge", /more than the 4 allowed/, undefined, { ...defaultDecodeLimits, maxNameBytes: 4 });
});

test("a version suffix kept apart from a name belongs to it", () => {
  const name = [0x02, ...text("a:b/c@0.2"), ...vector([[0x01, ...text(".1")]])];
  const bytes = component(types(u8Type, [0x42, 0x00]), section(10, vector([[...name, 0x05, ...u32(1)]])));
  assert.equal(decodeComponent(bytes).imports[0]?.id, "a:b/c@0.2.1");
});

test("a chain of names given to one type costs what it has, and keeps the latest and the first", () => {
  const links = 20_000;
  const exports = Array.from({ length: links }, (_, i) => [0x00, ...text(`t${i}`), 0x03, ...u32(i), 0x00]);
  const renamed = component(types(u8Type), section(11, vector(exports)), types(functionReturning(links)), passedOn("f", links + 1));
  const names = decodeComponent(renamed).functions[0]?.result?.names ?? [];
  assert.equal(names.length, 8);
  assert.equal(names[0]?.name, `t${links - 1}`);
  assert.equal(names.at(-1)?.name, "t0");
});
