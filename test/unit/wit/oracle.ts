import type { WitFunction, WitImport, WitType, WitTypeName } from "../../../src/api/wit.ts";

/** What `wasm-tools component wit --json` prints, as far as it is compared. Numbers are indices into its four lists. */
export interface OracleWit {
  readonly worlds: readonly OracleWorld[];
  readonly interfaces: readonly OracleInterface[];
  readonly types: readonly OracleTypeDef[];
  readonly packages: readonly { readonly name: string; readonly docs?: OracleDocs; readonly interfaces: Record<string, number> }[];
}

export interface OracleDocs {
  readonly contents: string;
}

interface OracleWorld {
  readonly name: string;
  readonly package: number;
  readonly docs?: OracleDocs;
  readonly imports: Record<string, OracleItem>;
  readonly exports: Record<string, OracleItem>;
}

interface OracleItem {
  readonly interface?: { readonly id: number };
  readonly function?: OracleFunction;
  readonly type?: number;
}

interface OracleInterface {
  readonly name: string | null;
  readonly package: number;
  readonly docs?: OracleDocs;
  readonly types: Record<string, number>;
  readonly functions: Record<string, OracleFunction>;
}

export interface OracleFunction {
  readonly name: string;
  readonly kind: string | Record<string, number>;
  readonly params: readonly { readonly name: string; readonly type: OracleType }[];
  readonly result?: OracleType;
  readonly docs?: OracleDocs;
}

type OracleType = string | number;

export interface OracleTypeDef {
  readonly name: string | null;
  readonly owner: { readonly interface?: number; readonly world?: number } | null;
  readonly docs?: OracleDocs;
  // biome-ignore lint/suspicious/noExplicitAny: a dozen shapes, each looked at in one place below
  readonly kind: any;
}

/** The oracle's account of a component in the shape of ours. */
export const interfaceOf = (wit: OracleWit): { imports: WitImport[]; exports: string[]; functions: WitFunction[] } => {
  const world = wit.worlds[0];
  if (!world) throw new Error("the oracle found no world");
  const reader = new OracleReader(wit);
  const functions = Object.entries(world.exports).flatMap(([key, item]) => {
    if (item.function) return [reader.function(null, item.function)];
    const found = reader.interface(item);
    const id = reader.idOf(key, item);
    return Object.values(found.functions).map((fn) => reader.function(id, fn));
  });
  return {
    imports: Object.entries(world.imports).map(([key, item]) => reader.import(key, item)),
    exports: Object.entries(world.exports).map(([key, item]) => reader.idOf(key, item)),
    functions,
  };
};

/** `example:github@0.1.0` and `issues` as the id of the interface. */
export const interfaceIdIn = (packageName: string, name: string): string => {
  const [base = "", version] = packageName.split("@");
  return version === undefined ? `${base}/${name}` : `${base}/${name}@${version}`;
};

class OracleReader {
  readonly #wit: OracleWit;
  readonly #placeNames = new Map<number, string>();

  constructor(wit: OracleWit) {
    this.#wit = wit;
    for (const world of wit.worlds) {
      for (const [key, item] of [...Object.entries(world.imports), ...Object.entries(world.exports)]) {
        if (item.interface) this.#placeNames.set(item.interface.id, key);
      }
    }
  }

  interface(item: OracleItem): OracleInterface {
    return at(this.#wit.interfaces, item.interface?.id ?? -1);
  }

  idOf(key: string, item: OracleItem): string {
    return item.interface ? this.#interfaceId(item.interface.id) : key;
  }

  import(key: string, item: OracleItem): WitImport {
    if (item.function) return { id: key, kind: "function", functions: [], resources: [] };
    if (item.type !== undefined) return { id: key, kind: "type", functions: [], resources: this.#resources({ [key]: item.type }) };
    const found = this.interface(item);
    return { id: this.idOf(key, item), kind: "instance", functions: Object.keys(found.functions), resources: this.#resources(found.types) };
  }

  function(id: string | null, fn: OracleFunction): WitFunction {
    const kind = typeof fn.kind === "string" ? fn.kind : (Object.keys(fn.kind)[0] ?? "");
    const form = kind.replace("async-", "").replace("freestanding", "function") as WitFunction["form"];
    return {
      interface: id,
      name: fn.name,
      form,
      async: kind.startsWith("async-"),
      params: fn.params.map((param) => ({ name: param.name, type: this.#type(param.type) })),
      result: this.#optional(fn.result),
      docs: "",
    };
  }

  #interfaceId(id: number): string {
    const { name, package: owner } = at(this.#wit.interfaces, id);
    return name === null ? (this.#placeNames.get(id) ?? "") : interfaceIdIn(at(this.#wit.packages, owner).name, name);
  }

  #resources(types: Record<string, number>): string[] {
    return Object.entries(types).flatMap(([name, type]) => (at(this.#wit.types, type).kind === "resource" ? [name] : []));
  }

  #optional(type: OracleType | null | undefined): WitType | null {
    return type === null || type === undefined ? null : this.#type(type);
  }

  #type(type: OracleType): WitType {
    if (typeof type === "string") return { kind: type } as WitType;
    const names: WitTypeName[] = [];
    let target: OracleType = type;
    let definition = at(this.#wit.types, type);
    for (;;) {
      if (definition.name !== null) names.push({ interface: this.#owner(definition), name: definition.name });
      target = definition.kind.type;
      if (typeof target !== "number") break;
      definition = at(this.#wit.types, target);
    }
    const shape = typeof target === "string" ? ({ kind: target } as WitType) : this.#shape(definition);
    return names.length === 0 ? shape : { ...shape, names };
  }

  #owner({ owner }: OracleTypeDef): string | null {
    return owner?.interface === undefined ? null : this.#interfaceId(owner.interface);
  }

  #shape({ kind, name }: OracleTypeDef): WitType {
    const named = <T extends { name: string; type?: OracleType | null }>(item: T) => ({ name: item.name, docs: "" });
    if (kind.list !== undefined) return { kind: "list", element: this.#type(kind.list) };
    if (kind["fixed-length-list"]) {
      const [element, length] = kind["fixed-length-list"];
      return { kind: "list", element: this.#type(element), length };
    }
    if (kind.map) return { kind: "map", key: this.#type(kind.map[0]), value: this.#type(kind.map[1]) };
    if (kind.tuple) return { kind: "tuple", items: kind.tuple.types.map((item: OracleType) => this.#type(item)) };
    if (kind.option !== undefined) return { kind: "option", some: this.#type(kind.option) };
    if (kind.result) return { kind: "result", ok: this.#optional(kind.result.ok), err: this.#optional(kind.result.err) };
    if (kind.record) {
      const fields = kind.record.fields.map((one: { name: string; type: OracleType }) => ({ ...named(one), type: this.#type(one.type) }));
      return { kind: "record", name, docs: "", fields };
    }
    if (kind.variant) {
      const cases = kind.variant.cases.map((one: { name: string; type?: OracleType }) => ({
        ...named(one),
        type: this.#optional(one.type),
      }));
      return { kind: "variant", name, docs: "", cases };
    }
    if (kind.enum) return { kind: "enum", name, docs: "", cases: kind.enum.cases.map(named) };
    if (kind.flags) return { kind: "flags", name, docs: "", flags: kind.flags.flags.map(named) };
    if (kind.handle) {
      const form = kind.handle.own === undefined ? "borrow" : "own";
      return { kind: form, resource: at(this.#wit.types, kind.handle[form]).name ?? "" };
    }
    for (const form of ["stream", "future"] as const) {
      if (form in kind) return { kind: form, element: this.#optional(kind[form]) };
    }
    throw new Error(`the oracle has a type that this test does not know: ${JSON.stringify(kind)}`);
  }
}

const at = <T>(items: readonly T[], index: number): T => {
  const item = items[index];
  if (item === undefined) throw new Error(`the oracle has no item ${index}`);
  return item;
};
