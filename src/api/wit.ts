/**
 * What a component's binary says about itself, as plain data: the output of `src/wit`, the input of `src/declaration`, `src/translate` and `src/grants`.
 *
 * Types are shared by reference where the component shares them, so a tree may be far larger when written out than it is here: whoever walks one
 * bounds what it produces.
 *
 * `names` is present on a type that WIT gives a name, the latest first and the defining one last: `type owner = string` and `use` add one. On a type
 * without members, `docs` is what such a name was documented with.
 */
export type WitType = WitShape & { readonly names?: readonly WitTypeName[]; readonly docs?: string };

/** `interface` is the full id of the interface that the name belongs to, null for a type of the world itself. */
export interface WitTypeName {
  readonly interface: string | null;
  readonly name: string;
}

export type WitShape =
  | { readonly kind: Primitive }
  | { readonly kind: "list"; readonly element: WitType; readonly length?: number }
  | { readonly kind: "map"; readonly key: WitType; readonly value: WitType }
  | { readonly kind: "tuple"; readonly items: readonly WitType[] }
  | { readonly kind: "option"; readonly some: WitType }
  | { readonly kind: "result"; readonly ok: WitType | null; readonly err: WitType | null }
  | { readonly kind: "record"; readonly name: string | null; readonly docs: string; readonly fields: readonly WitField[] }
  | { readonly kind: "variant"; readonly name: string | null; readonly docs: string; readonly cases: readonly WitCase[] }
  | { readonly kind: "enum"; readonly name: string | null; readonly docs: string; readonly cases: readonly WitLabel[] }
  | { readonly kind: "flags"; readonly name: string | null; readonly docs: string; readonly flags: readonly WitLabel[] }
  | { readonly kind: "own" | "borrow"; readonly resource: string }
  | { readonly kind: "stream" | "future"; readonly element: WitType | null }
  | { readonly kind: "error-context" };

export type Primitive = "bool" | "u8" | "u16" | "u32" | "u64" | "s8" | "s16" | "s32" | "s64" | "f32" | "f64" | "char" | "string";

/** `docs` is the doc comment, trimmed, lines joined by `\n`; the empty string where none was found. */
export interface WitField {
  readonly name: string;
  readonly type: WitType;
  readonly docs: string;
}

export interface WitCase {
  readonly name: string;
  readonly type: WitType | null;
  readonly docs: string;
}

export interface WitLabel {
  readonly name: string;
  readonly docs: string;
}

export interface WitFunction {
  /** The full export id with its version, such as `example:github/issues@0.1.0`; null for a function exported by the world itself. */
  readonly interface: string | null;
  /** Kebab name as in WIT: `list-issues`. */
  readonly name: string;
  /** `method`, `static` and `constructor` belong to a resource and are never offered. */
  readonly form: "function" | "method" | "static" | "constructor";
  readonly async: boolean;
  /** Present and true for an async function lifted without a callback, which blocks in the middle of its stack. */
  readonly isStackful?: boolean;
  readonly params: readonly { readonly name: string; readonly type: WitType }[];
  readonly result: WitType | null;
  readonly docs: string;
}

/** One thing the component imports: an interface, or a function, type or value of its world. */
export interface WitImport {
  /** `wasi:http/types@0.2.6`, or the plain name of a world-level import. */
  readonly id: string;
  readonly kind: "instance" | "function" | "type" | "component" | "module" | "value";
  /** Functions the import must provide, resources' methods as `[method]request.path`; empty where the import holds types alone. */
  readonly functions: readonly string[];
  /** Resources that the import defines and its provider must therefore supply. */
  readonly resources: readonly string[];
}

export interface WitExport {
  readonly id: string;
  readonly kind: "instance" | "function" | "type" | "component" | "module" | "value";
}

export interface ComponentInterface {
  readonly imports: readonly WitImport[];
  readonly exports: readonly WitExport[];
  readonly functions: readonly WitFunction[];
  /**
   * Whether any part of it uses what is asynchronous in the component model, inside or towards its imports and exports. Where nothing is, a call that has
   * returned has no code left that could go on.
   */
  readonly isAsynchronous: boolean;
  /** Where docs were found: our own section, a `package-docs` section, both, or nothing. */
  readonly docs: { readonly sources: readonly ("ambit-docs" | "package-docs" | "wit-text")[] };
}
