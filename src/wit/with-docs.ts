import type { ComponentInterface, WitFunction, WitType, WitTypeName } from "../api/wit.ts";
import { type InterfaceDocs, splitInterfaceId, type TypeDocs, type WitDocs, type WorldDocs } from "./docs.ts";
import { agreedWorld, worldsThatFit } from "./fitting-worlds.ts";
import { parseWitDocs, type WitFile } from "./parse-wit-docs.ts";

export type DocsSource = ComponentInterface["docs"]["sources"][number];

/**
 * The same interface with docs where it had none. Docs that are there already stay: sources are asked in the order of their authority.
 *
 * `docs` may be WIT text, of which each file says its package. Interfaces are matched by their full id with the version; what is documented but not
 * in the component is ignored. `source` is added to those of the interface if anything was found. Throws what `parseWitDocs` throws.
 */
export const withDocs = (
  component: ComponentInterface,
  docs: WitDocs | string | readonly WitFile[],
  source: DocsSource = "wit-text",
): ComponentInterface => {
  const parsed = typeof docs === "string" ? parseWitDocs([{ path: "wit", text: docs }]) : isFiles(docs) ? parseWitDocs(docs) : docs;
  const writer = new DocsWriter(parsed, component);
  const functions = component.functions.map((fn) => writer.function(fn));
  if (!writer.foundAny) return component;
  const { sources } = component.docs;
  return { ...component, functions, docs: { sources: sources.includes(source) ? sources : [...sources, source] } };
};

const isFiles = (docs: WitDocs | readonly WitFile[]): docs is readonly WitFile[] => Array.isArray(docs);

class DocsWriter {
  readonly #docs: WitDocs;
  readonly #world: WorldDocs;
  /** One result a type, so that what was shared stays shared. */
  readonly #written = new Map<WitType, WitType>();
  foundAny = false;

  constructor(docs: WitDocs, component: ComponentInterface) {
    this.#docs = docs;
    this.#world = agreedWorld(worldsThatFit(docs, component));
  }

  function(fn: WitFunction): WitFunction {
    return {
      ...fn,
      docs: this.#pick(fn.docs, this.#place(fn.interface)?.functions.get(fn.name)),
      params: fn.params.map(({ name, type }) => ({ name, type: this.#type(type) })),
      result: fn.result && this.#type(fn.result),
    };
  }

  /** The interface of that id; null is the world itself, and a plain name an interface in place there. */
  #place(id: string | null): InterfaceDocs | undefined {
    if (id === null) return this.#world;
    const split = splitInterfaceId(id);
    return split ? this.#docs.packages.get(split.package)?.interfaces.get(split.name) : this.#world.interfaces.get(id);
  }

  #pick(present: string | undefined, found: string | undefined): string {
    if (present) return present;
    if (!found) return "";
    this.foundAny = true;
    return found;
  }

  #type(type: WitType): WitType {
    const known = this.#written.get(type);
    if (known) return known;
    const written = this.#documented(this.#inner(type), type);
    this.#written.set(type, written);
    return written;
  }

  /** Docs of the type's own names, the latest that has any, and of its members where it was defined. */
  #documented(inner: WitType, { names = [] }: WitType): WitType {
    const docs = names.map((name) => this.#typeDocs(name)).find((found) => found?.docs)?.docs;
    const members = names.map((name) => this.#typeDocs(name)).findLast((found) => found?.members.size)?.members;
    const describe = <T extends { readonly name: string; readonly docs: string }>(items: readonly T[]): T[] =>
      items.map((item) => ({ ...item, docs: this.#pick(item.docs, members?.get(item.name)) }));
    switch (inner.kind) {
      case "record":
        return { ...inner, docs: this.#pick(inner.docs, docs), fields: describe(inner.fields) };
      case "variant":
        return { ...inner, docs: this.#pick(inner.docs, docs), cases: describe(inner.cases) };
      case "enum":
        return { ...inner, docs: this.#pick(inner.docs, docs), cases: describe(inner.cases) };
      case "flags":
        return { ...inner, docs: this.#pick(inner.docs, docs), flags: describe(inner.flags) };
      default:
        return inner.docs || docs ? { ...inner, docs: this.#pick(inner.docs, docs) } : inner;
    }
  }

  #typeDocs(name: WitTypeName): TypeDocs | undefined {
    return this.#place(name.interface)?.types.get(name.name);
  }

  #inner(type: WitType): WitType {
    switch (type.kind) {
      case "list":
      case "stream":
      case "future":
        return type.element ? { ...type, element: this.#type(type.element) } : type;
      case "map":
        return { ...type, key: this.#type(type.key), value: this.#type(type.value) };
      case "tuple":
        return { ...type, items: type.items.map((item) => this.#type(item)) };
      case "option":
        return { ...type, some: this.#type(type.some) };
      case "result":
        return { ...type, ok: type.ok && this.#type(type.ok), err: type.err && this.#type(type.err) };
      case "record":
        return { ...type, fields: type.fields.map((field) => ({ ...field, type: this.#type(field.type) })) };
      case "variant":
        return { ...type, cases: type.cases.map((one) => ({ ...one, type: one.type && this.#type(one.type) })) };
      default:
        return type;
    }
  }
}
