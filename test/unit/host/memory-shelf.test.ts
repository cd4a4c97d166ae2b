import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MemoryShelf } from "../../../src/host/memory-shelf.ts";

const shelf = () => new MemoryShelf(new Map([["main", { initial: 1, maximum: 3 }]]));

/** The memory that the shelf gives, which it must. */
const taken = (from: MemoryShelf<string>): WebAssembly.Memory => {
  const memory = from.take("main");
  assert.ok(memory);
  return memory;
};

describe("a memory that is given again", () => {
  it("is the same one, and empty throughout", () => {
    const from = shelf();
    const memory = taken(from);
    const bytes = new Uint8Array(memory.buffer);
    bytes.fill(0xa5);
    assert.equal(from.giveBack("main", memory), true);
    assert.equal(taken(from), memory);
    assert.ok(new Uint8Array(memory.buffer).every((byte) => byte === 0));
  });

  it("is never one that has grown, since it can't shrink", () => {
    const from = shelf();
    const memory = taken(from);
    (memory as WebAssembly.Memory & { grow(pages: number): number }).grow(1);
    assert.equal(from.giveBack("main", memory), false);
    assert.notEqual(taken(from), memory);
  });

  it("is given to one at a time", () => {
    const from = shelf();
    const memory = taken(from);
    from.giveBack("main", memory);
    assert.notEqual(taken(from), taken(from));
  });

  it("is one of few: beyond that they are garbage", () => {
    const from = shelf();
    const memories = [taken(from), taken(from), taken(from)];
    assert.deepEqual(
      memories.map((memory) => from.giveBack("main", memory)),
      [true, true, false],
    );
  });

  it("is none for a module that has no memory of its own", () => {
    assert.equal(shelf().take("other"), null);
  });
});
