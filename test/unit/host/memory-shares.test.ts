import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Refused } from "../../../src/api/errors.ts";
import { pageBytes } from "../../../src/host/core-module.ts";
import { type CountedModule, shareMemory, tableElementsPerComponent } from "../../../src/host/memory-shares.ts";

const withMemory = (min: number, max?: number, instances = 1, size = 1000): CountedModule => ({
  resources: { memories: [{ min, max }], tables: [] },
  instances,
  size,
});

const pages = (modules: CountedModule[], cap: number): number[] =>
  shareMemory(modules, cap * pageBytes).flatMap(({ memoryPages }) => memoryPages);

describe("a component's memory cap", () => {
  it("goes whole to its only memory", () => assert.deepEqual(pages([withMemory(17)], 100), [100]));

  it("gives a memory no more than it declares", () => assert.deepEqual(pages([withMemory(17, 20)], 100), [20]));

  it("goes to those that may grow", () => assert.deepEqual(pages([withMemory(10, 10), withMemory(10)], 100), [10, 90]));

  it("is divided by the instances of a module", () => assert.deepEqual(pages([withMemory(1, undefined, 20)], 100), [5]));

  it("gives the module with most code most of it", () => {
    const [small = 0, large = 0] = pages([withMemory(1, undefined, 1, 100), withMemory(17, undefined, 1, 900_000)], 4096);
    assert.ok(large > 3000 && small > 100, `${small} and ${large}`);
  });

  it("is too small for a component that starts above it", () => {
    assert.throws(
      () => pages([withMemory(60), withMemory(60)], 100),
      (error) => error instanceof Refused && error.code === "ComponentNeedsMoreMemory",
    );
  });

  it("ignores modules that are never instantiated", () =>
    assert.deepEqual(pages([withMemory(90, undefined, 0), withMemory(50)], 100), [90, 100]));

  it("has a counterpart for tables", () => {
    const module: CountedModule = { resources: { memories: [], tables: [{ min: 10, max: undefined }] }, instances: 1, size: 1 };
    assert.deepEqual(shareMemory([module], pageBytes), [{ memoryPages: [], tableElements: [tableElementsPerComponent] }]);
  });

  it("is never exceeded by the sum of what is given, and each has what it starts with", () => {
    const modules = fc.array(
      fc.record({ min: fc.nat(50), extra: fc.option(fc.nat(500), { nil: undefined }), instances: fc.nat(5), size: fc.nat(100_000) }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(modules, fc.integer({ min: 2000, max: 5000 }), (made, cap) => {
        const counted = made.map(({ min, extra, instances, size }) =>
          withMemory(min, extra === undefined ? undefined : min + extra, instances, size),
        );
        const given = pages(counted, cap);
        const sum = made.reduce((total, { instances }, index) => total + instances * (given[index] ?? 0), 0);
        assert.ok(sum <= cap, `${sum} of ${cap}`);
        made.forEach(({ min }, index) => {
          assert.ok((given[index] ?? 0) >= min);
        });
      }),
      { numRuns: 300 },
    );
  });
});
