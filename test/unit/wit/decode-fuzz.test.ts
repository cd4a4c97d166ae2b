import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { Invalid } from "../../../src/api/errors.ts";
import { decodeComponent } from "../../../src/wit/decode.ts";
import { embedDocs, stripDocsSections } from "../../../src/wit/embed-docs.ts";
import { offeredFunctions } from "../../../src/wit/offered.ts";
import { parseWitDocs } from "../../../src/wit/parse-wit-docs.ts";

const read = (name: string): Uint8Array => readFileSync(new URL(`../../fixtures/${name}`, import.meta.url));
const witText = new TextDecoder().decode(read("wit/wide/wide.wit"));
const documented = embedDocs(read("wit/composed.wasm"), parseWitDocs([{ path: "wide.wit", text: witText }]));
const seeds = [
  documented,
  ...["wide", "composed", "rust-collections", "quickjs", "starling-monkey"].map((name) => read(`wit/${name}.wasm`)),
];

/** More runs than the suite has time for: `AMBIT_FUZZ_RUNS=200000 node --test …`. */
const numRuns = Number(process.env.AMBIT_FUZZ_RUNS ?? 800);

const place = fc.noBias(fc.nat(999_999)).map((millionths) => millionths / 1_000_000);

/** One change to a binary. Places are fractions, so that a change shrinks and applies to any length. */
const mutation = fc.oneof(
  fc.record({ kind: fc.constant("flip" as const), place, bit: fc.nat(7) }),
  fc.record({ kind: fc.constant("set" as const), place, byte: fc.constantFrom(0x00, 0x01, 0x40, 0x42, 0x70, 0x7f, 0x80, 0xff) }),
  fc.record({ kind: fc.constant("length" as const), place, length: fc.constantFrom(0x7fff_ffff, 0xffff_ffff, 0x1_0000, 0x80) }),
  fc.record({ kind: fc.constant("cut" as const), place }),
  fc.record({ kind: fc.constant("remove" as const), place, count: fc.integer({ min: 1, max: 64 }) }),
  fc.record({ kind: fc.constant("repeat" as const), place, count: fc.integer({ min: 1, max: 64 }) }),
);
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

const mutate = (bytes: readonly number[], change: Mutation): number[] => {
  const at = Math.floor(change.place * bytes.length);
  const [before, here, after] = [bytes.slice(0, at), bytes[at] ?? 0, bytes.slice(at + 1)];
  switch (change.kind) {
    case "flip":
      return [...before, here ^ (1 << change.bit), ...after];
    case "set":
      return [...before, change.byte, ...after];
    case "length":
      return [...before, ...leb128(change.length), ...after];
    case "cut":
      return before;
    case "remove":
      return [...before, ...after.slice(change.count)];
    case "repeat":
      return [...before, here, ...after.slice(0, change.count), here, ...after];
  }
};

const leb128 = (value: number): number[] => (value < 0x80 ? [value] : [(value % 0x80) | 0x80, ...leb128(Math.floor(value / 0x80))]);

test("a mutated component is read or refused with a typed error, never anything else", () => {
  const outcomes = new Map<string, number>();
  fc.assert(
    fc.property(fc.constantFrom(...seeds), fc.array(mutation, { minLength: 1, maxLength: 4 }), (seed, changes) => {
      const bytes = Uint8Array.from(changes.reduce<number[]>(mutate, [...seed]));
      let outcome = "read";
      try {
        offeredFunctions(decodeComponent(bytes), []);
        stripDocsSections(bytes);
      } catch (error) {
        if (!(error instanceof Invalid)) throw error;
        assert.match(error.at ?? "", /^0x[0-9a-f]+$/);
        outcome = error.code;
      }
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }),
    { numRuns },
  );
  // Mutations that are all refused at the first byte would show nothing.
  assert.ok((outcomes.get("read") ?? 0) > numRuns / 50, JSON.stringify([...outcomes]));
  assert.ok((outcomes.get("ComponentMalformed") ?? 0) > numRuns / 10, JSON.stringify([...outcomes]));
});

test("mutated WIT text is read or refused with the place of the mistake", () => {
  fc.assert(
    fc.property(
      place,
      fc.nat(40),
      fc.string({ unit: fc.constantFrom(..."{}()<>;:,@/*%-._ \nabfunc record use 0"), maxLength: 8 }),
      (where, cut, put) => {
        const at = Math.floor(where * witText.length);
        const text = witText.slice(0, at) + put + witText.slice(at + cut);
        try {
          parseWitDocs([{ path: "fuzz.wit", text }]);
        } catch (error) {
          if (!(error instanceof Invalid)) throw error;
          assert.match(error.code, /^Wit/);
          assert.match(error.at ?? "", /^fuzz\.wit/);
        }
      },
    ),
    { numRuns: Math.ceil(numRuns / 3) },
  );
});
