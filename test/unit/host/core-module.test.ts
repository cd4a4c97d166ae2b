import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { clampCoreModule, coreModuleResources, hostMemory, wantedMemory } from "../../../src/host/core-module.ts";

const text = (value: string): number[] => [value.length, ...Buffer.from(value)];
const section = (id: number, ...body: number[]): number[] => [id, body.length, ...body];
const module = (...sections: number[][]): Uint8Array => Uint8Array.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...sections.flat()]);

const funcType = section(1, 1, 0x60, 0, 0);
/** One memory, from 1 page up to what the engine allows. */
const openMemory = section(5, 1, 0, 1);
const exportsMemory = section(7, 1, ...text("memory"), 2, 0);
/** One table of functions, from 2 elements up. */
const openTable = section(4, 1, 0x70, 0, 2);

interface Exports {
  readonly exports: Readonly<Record<string, { grow(by: number): number; readonly buffer: ArrayBuffer; readonly length: number }>>;
}

/** As the host does: with a memory of the size that the module wants. */
const instantiate = (bytes: Uint8Array): Exports["exports"] => linked(bytes).exports;

const linked = (bytes: Uint8Array): Exports & { readonly given: WebAssembly.Memory | null } => {
  const wanted = wantedMemory(bytes);
  const given = wanted && new WebAssembly.Memory({ initial: wanted.initial, maximum: wanted.maximum });
  const imports = given ? { [hostMemory.module]: { [hostMemory.name]: given } } : {};
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes)), imports);
  return { exports: exports as Exports["exports"], given };
};

describe("what a core module may take", () => {
  it("is read from its memories and tables", () => {
    assert.deepEqual(coreModuleResources(module(funcType, openTable, section(5, 1, 1, 3, 0x80, 2))), {
      memories: [{ min: 3, max: 256 }],
      tables: [{ min: 2, max: undefined }],
    });
  });

  it("is nothing where it defines nothing", () => {
    assert.deepEqual(coreModuleResources(module(funcType)), { memories: [], tables: [] });
  });
});

describe("a clamped module", () => {
  it("grows its memory to the limit and no further, as V8 sees it", () => {
    const { memory } = instantiate(clampCoreModule(module(openMemory, exportsMemory), { memoryPages: [3], tableElements: [] }));
    assert.equal(memory?.grow(2), 1);
    assert.throws(() => memory?.grow(1), RangeError);
  });

  it("grows its table to the limit and no further, as V8 sees it", () => {
    const bytes = module(openTable, section(7, 1, ...text("t"), 1, 0));
    const { t } = instantiate(clampCoreModule(bytes, { memoryPages: [], tableElements: [5] }));
    assert.equal(t?.grow(3), 2);
    assert.throws(() => t?.grow(1), RangeError);
  });

  it("takes its memory from the host, whatever other sections it has, and everything else stays where it was", () => {
    const global = section(6, 1, 0x7f, 0, 0x41, 7, 0x0b);
    const importsFunction = section(2, 1, ...text("m"), ...text("f"), 0, 0);
    const cases = {
      alone: module(openMemory),
      exported: module(openMemory, exportsMemory),
      "before a global and a custom section": module(openMemory, global, section(7, 1, ...text("g"), 3, 0), section(0, ...text("note"))),
      "with data": module(openMemory, section(11, 1, 0, 0x41, 0, 0x0b, 1, 0x61)),
      "after a custom section": module(section(0, ...text("note")), openMemory),
    };
    for (const [what, bytes] of Object.entries(cases)) {
      const { given } = linked(clampCoreModule(bytes, { memoryPages: [2], tableElements: [] }));
      assert.equal(given?.buffer.byteLength, 65_536, what);
    }
    const beside = clampCoreModule(module(funcType, importsFunction, openMemory), { memoryPages: [2], tableElements: [] });
    assert.deepEqual(
      WebAssembly.Module.imports(new WebAssembly.Module(new Uint8Array(beside))).map(({ kind }) => kind),
      ["function", "memory"],
    );
    assert.deepEqual(wantedMemory(beside), { initial: 1, maximum: 2 });
  });

  it("wants no memory where it defined none, even if it imports another module's", () => {
    assert.equal(wantedMemory(module(funcType)), null);
    assert.equal(wantedMemory(module(section(2, 1, ...text("m"), ...text("memory"), 2, 0, 1))), null);
  });

  it("keeps what it imports as it was", () => {
    const bytes = module(section(2, 1, ...text("m"), ...text("memory"), 2, 0, 1));
    assert.deepEqual([...clampCoreModule(bytes, { memoryPages: [], tableElements: [] })], [...bytes]);
  });

  it("keeps a table's initial element", () => {
    const withInitialiser = section(4, 1, 0x40, 0, 0x70, 0, 2, 0xd0, 0x70, 0x0b);
    const bytes = clampCoreModule(module(withInitialiser, section(7, 1, ...text("t"), 1, 0)), { memoryPages: [], tableElements: [2] });
    assert.equal(instantiate(bytes).t?.length, 2);
  });
});

describe("a core module that can't be contained is refused", () => {
  const cases: Record<string, Uint8Array> = {
    "with an array type": module(section(1, 1, 0x5e, 0x7f, 1)),
    "with a struct type": module(section(1, 1, 0x5f, 0)),
    "with an array type in a recursive group": module(section(1, 1, 0x4e, 1, 0x50, 0, 0x5e, 0x78, 1)),
    "with a parameter of type anyref": module(section(1, 1, 0x60, 1, 0x6e, 0)),
    "with a parameter of type i31ref, spelled out": module(section(1, 1, 0x60, 1, 0x63, 0x6c, 0)),
    "with a shared memory": module(section(5, 1, 3, 1, 2)),
    "with a 64-bit memory": module(section(5, 1, 4, 1)),
    "with custom pages": module(section(5, 1, 8, 1, 0)),
    "with a 64-bit table": module(section(4, 1, 0x70, 4, 1)),
    "that imports under the host's own name": module(section(2, 1, ...text("ambit:host"), ...text("memory"), 2, 0, 1)),
    "with an import of a kind that no one knows": module(section(2, 1, ...text("m"), ...text("x"), 9, 0)),
    "with several memories": module(section(5, 2, 0, 1, 0, 1)),
    "with a table that starts from several instructions": module(section(4, 1, 0x40, 0, 0x70, 0, 2, 0xd0, 0x70, 0xd0, 0x70, 0x0b)),
  };
  for (const [name, bytes] of Object.entries(cases)) {
    it(name, () => {
      assert.throws(
        () => coreModuleResources(bytes),
        (error) => error instanceof Invalid && error.code === "ComponentUnsupported",
      );
    });
  }
});

describe("a malformed core module is refused with its place", () => {
  const cases: Record<string, Uint8Array> = {
    "that is empty": new Uint8Array(),
    "of another version": Uint8Array.from([0, 0x61, 0x73, 0x6d, 2, 0, 0, 0]),
    "whose section is longer than it is": module([5, 100, 1]),
    "whose section claims 4 GiB": module([5, 0xff, 0xff, 0xff, 0xff, 0x0f]),
    "whose integer never ends": module(section(5, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)),
    "whose vector claims more than there is": module(section(5, 0xff, 0xff, 0xff, 0x0f)),
    "whose section holds more than it says": module(section(5, 1, 0, 1, 0x60)),
    "with a section that no one knows": module(section(77)),
    "whose memory starts above 4 GiB": module(section(5, 1, 0, 0x81, 0x80, 4)),
  };
  for (const [name, bytes] of Object.entries(cases)) {
    it(name, () => {
      assert.throws(
        () => coreModuleResources(bytes),
        (error) => error instanceof Invalid && error.code === "ComponentMalformed" && error.at !== undefined,
      );
    });
  }
});

describe("any bytes", () => {
  const whole = module(funcType, openTable, openMemory, exportsMemory, section(0, ...text("name"), 1, 2, 3));

  it("are refused or clamped, and what V8 took before it takes after", () => {
    const mutations = fc.array(fc.record({ at: fc.nat(whole.length - 1), to: fc.integer({ min: 0, max: 255 }) }), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(mutations, fc.nat(whole.length), (changes, end) => {
        const bytes = Uint8Array.from(whole);
        for (const { at, to } of changes) bytes[at] = to;
        const cut = end < 9 ? bytes : bytes.subarray(0, end);
        let clamped: Uint8Array;
        try {
          const { memories, tables } = coreModuleResources(cut);
          clamped = clampCoreModule(cut, { memoryPages: memories.map(({ min }) => min), tableElements: tables.map(({ min }) => min) });
        } catch (error) {
          assert.ok(error instanceof Invalid, String(error));
          return;
        }
        assert.equal(compiles(clamped), compiles(cut));
      }),
      { numRuns: 2000, endOnFailure: true },
    );
  });
});

const compiles = (bytes: Uint8Array): boolean => {
  try {
    return new WebAssembly.Module(bytes) !== undefined;
  } catch {
    return false;
  }
};
