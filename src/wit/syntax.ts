import type { Primitive } from "../api/wit.ts";

/**
 * A component as its binary spells it, before any index is resolved (component-model, design/mvp/Binary.md). Core modules, core instances and core
 * types leave no trace here: nothing about an interface depends on them.
 *
 * Every definition adds one entry to the index space of its sort, in order, except where noted.
 */
export type Definition =
  | { readonly op: "type"; readonly type: TypeSyntax; readonly at: number }
  | { readonly op: "import"; readonly name: string; readonly extern: Extern; readonly at: number }
  /** In a component: exports something by index, and adds it again under its exported type. */
  | { readonly op: "export"; readonly name: string; readonly item: SortIndex; readonly ascribed: Extern | null; readonly at: number }
  /** In an instance or component type: says that there is such an export. */
  | { readonly op: "export-type"; readonly name: string; readonly extern: Extern; readonly at: number }
  | { readonly op: "alias-export"; readonly sort: Sort; readonly instance: number; readonly name: string; readonly at: number }
  | { readonly op: "alias-outer"; readonly sort: Sort; readonly count: number; readonly index: number; readonly at: number }
  | { readonly op: "component"; readonly body: readonly Definition[]; readonly at: number }
  | { readonly op: "instantiate"; readonly component: number; readonly args: readonly NamedItem[]; readonly at: number }
  | { readonly op: "instance"; readonly exports: readonly NamedItem[]; readonly at: number }
  /** `canon lift`: a component function of the given type. It is stackful if it is lifted as async and without a callback. */
  | { readonly op: "lift"; readonly type: number; readonly isStackful: boolean; readonly at: number };

/** What an index may point at. `module` is a core module; the other core sorts are skipped while parsing. */
export type Sort = "module" | "function" | "value" | "type" | "component" | "instance";

export interface SortIndex {
  readonly sort: Sort;
  readonly index: number;
}

export interface NamedItem extends SortIndex {
  readonly name: string;
}

/** The type of an import or export. */
export type Extern =
  | { readonly sort: "module" }
  | { readonly sort: "function" | "component" | "instance"; readonly type: number }
  | { readonly sort: "type"; readonly bound: "resource" }
  | { readonly sort: "type"; readonly bound: "equal"; readonly type: number };

/** A value type in place: a primitive, or an index into the types so far. */
export type ValueSyntax = Primitive | "error-context" | number;

export interface MemberSyntax<T> {
  readonly name: string;
  readonly type: T;
}

export type TypeSyntax =
  | { readonly kind: "value"; readonly type: ValueSyntax }
  | { readonly kind: "record"; readonly fields: readonly MemberSyntax<ValueSyntax>[] }
  | { readonly kind: "variant"; readonly cases: readonly MemberSyntax<ValueSyntax | null>[] }
  | { readonly kind: "list"; readonly element: ValueSyntax; readonly length: number | null }
  | { readonly kind: "map"; readonly key: ValueSyntax; readonly value: ValueSyntax }
  | { readonly kind: "tuple"; readonly items: readonly ValueSyntax[] }
  | { readonly kind: "flags" | "enum"; readonly labels: readonly string[] }
  | { readonly kind: "option"; readonly some: ValueSyntax }
  | { readonly kind: "result"; readonly ok: ValueSyntax | null; readonly err: ValueSyntax | null }
  | { readonly kind: "own" | "borrow"; readonly resource: number }
  | { readonly kind: "stream" | "future"; readonly element: ValueSyntax | null }
  | {
      readonly kind: "function";
      readonly async: boolean;
      readonly params: readonly MemberSyntax<ValueSyntax>[];
      readonly result: ValueSyntax | null;
    }
  | { readonly kind: "resource" }
  | { readonly kind: "instance" | "component"; readonly body: readonly Definition[] };

/** A parsed component and its custom sections that carry docs, in the order found. */
export interface ComponentSyntax {
  readonly body: readonly Definition[];
  readonly isAsynchronous: boolean;
  readonly docsSections: readonly { readonly name: string; readonly content: Uint8Array; readonly at: number }[];
}
