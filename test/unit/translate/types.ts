import fc from "fast-check";
import type { Primitive, WitType } from "../../../src/api/wit.ts";

const primitives: readonly Primitive[] = ["bool", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64", "char", "string"];

const labels = (prefix: string) =>
  fc
    .uniqueArray(fc.constantFrom("a", "b-c", "URL", "x1", "dark-blue", "none"), { minLength: 1, maxLength: 4 })
    .map((names) => names.map((name) => ({ name: `${prefix}${name}`, docs: "" })));

/** WIT types that JSON can carry, at most a few levels deep. */
export const types: fc.Arbitrary<WitType> = fc.letrec<{ type: WitType; leaf: WitType }>((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom(...primitives).map((kind) => ({ kind })),
    labels("").map((cases) => ({ kind: "enum" as const, name: null, docs: "", cases })),
    labels("").map((flags) => ({ kind: "flags" as const, name: null, docs: "", flags })),
    labels("").map((cases) => ({ kind: "variant" as const, name: null, docs: "", cases: cases.map((one) => ({ ...one, type: null })) })),
    fc.constant({ kind: "list" as const, element: { kind: "u8" as const } }),
  ),
  type: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    tie("leaf"),
    tie("type").map((element) => ({ kind: "list" as const, element })),
    fc.tuple(tie("type"), fc.integer({ min: 1, max: 3 })).map(([element, length]) => ({ kind: "list" as const, element, length })),
    fc.array(tie("type"), { minLength: 1, maxLength: 3 }).map((items) => ({ kind: "tuple" as const, items })),
    tie("type").map((some) => ({ kind: "option" as const, some })),
    fc.tuple(fc.option(tie("type")), fc.option(tie("type"))).map(([ok, err]) => ({ kind: "result" as const, ok, err })),
    fc.tuple(labels("f-"), fc.array(tie("type"), { minLength: 4, maxLength: 4 })).map(([names, all]) => ({
      kind: "record" as const,
      name: null,
      docs: "",
      fields: names.map(({ name, docs }, index) => ({ name, docs, type: all[index] ?? { kind: "bool" as const } })),
    })),
    fc.tuple(labels("c-"), fc.array(fc.option(tie("type")), { minLength: 4, maxLength: 4 })).map(([names, all]) => ({
      kind: "variant" as const,
      name: null,
      docs: "",
      cases: names.map(({ name, docs }, index) => ({ name, docs, type: all[index] ?? null })),
    })),
    fc
      .tuple(fc.constantFrom<Primitive>("string", "u32", "char", "s64"), tie("type"))
      .map(([kind, value]) => ({ kind: "map" as const, key: { kind }, value })),
  ),
})).type;
