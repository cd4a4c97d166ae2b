import type { ComponentInterface, WitExport, WitFunction, WitImport, WitType, WitTypeName } from "../api/wit.ts";
import { unsupported } from "./byte-reader.ts";
import type { Entity, FunctionType, NameChain, ValueType } from "./entity.ts";
import type { EvaluatedComponent } from "./evaluate.ts";
import { ItemBudget } from "./item-budget.ts";
import type { DecodeLimits } from "./limits.ts";

/** Names kept of a type that has been given many: the latest ones and the one it was defined under. */
const maxNamesOfAType = 8;

/**
 * Turns an evaluated component into plain data without docs, types still shared where the component shares them. Throws `Invalid`: `ComponentTooLarge`
 * where an instance exported under many names makes more functions than the limit has items, `ComponentUnsupported`.
 */
export const describeComponent = (component: EvaluatedComponent, isAsynchronous: boolean, limits: DecodeLimits): ComponentInterface => {
  const types = new TypeDescriber();
  const budget = new ItemBudget(limits);
  const functions: WitFunction[] = [];
  for (const [id, entity] of component.exports) {
    budget.spend(1, 0);
    if (entity.sort === "function") functions.push(describeFunction(types, null, id, entity.type));
    if (entity.sort !== "instance") continue;
    for (const [name, item] of entity.instance.exports) {
      checkInside(id, name, item);
      budget.spend(item.sort === "function" ? 1 + item.type.params.length : 1, 0);
      if (item.sort === "function") functions.push(describeFunction(types, id, name, item.type));
    }
  }
  return {
    imports: [...component.imports].map(([id, entity]) => describeImport(id, entity)),
    exports: [...component.exports].map(([id, entity]): WitExport => ({ id, kind: entity.sort })),
    functions,
    isAsynchronous,
    docs: { sources: [] },
  };
};

const checkInside = (id: string, name: string, item: Entity): void => {
  if (item.sort === "function" || item.sort === "type") return;
  throw unsupported(`${id} holds the ${item.sort} ${JSON.stringify(name)}; an interface holds functions and types alone`, 0);
};

const describeImport = (id: string, entity: Entity): WitImport => {
  if (entity.sort !== "instance") return { id, kind: entity.sort, functions: [], resources: resourcesOf([[id, entity]]) };
  const items = [...entity.instance.exports];
  for (const [name, item] of items) checkInside(id, name, item);
  const functions = items.flatMap(([name, item]) => (item.sort === "function" ? [name] : []));
  return { id, kind: "instance", functions, resources: resourcesOf(entity.instance.exports) };
};

const resourcesOf = (items: Iterable<readonly [string, Entity]>): string[] => {
  const names: string[] = [];
  for (const [name, item] of items) {
    if (item.sort === "type" && item.type.sort === "resource-type" && item.type.isFresh) names.push(name);
  }
  return names;
};

const formOf = (name: string): WitFunction["form"] => {
  const annotation = /^\[([a-z ]+)\]/.exec(name)?.[1];
  if (annotation === undefined) return "function";
  if (annotation.endsWith("constructor")) return "constructor";
  return annotation.endsWith("static") ? "static" : "method";
};

const describeFunction = (types: TypeDescriber, id: string | null, name: string, type: FunctionType): WitFunction => ({
  ...(type.isStackful ? { isStackful: true } : {}),
  interface: id,
  name,
  form: formOf(name),
  async: type.async,
  params: type.params.map((param) => ({ name: param.name, type: types.describe(param.type) })),
  result: type.result && types.describe(type.result),
  docs: "",
});

class TypeDescriber {
  /** One description a type, so that what was shared stays shared. */
  readonly #described = new Map<ValueType, WitType>();

  describe(type: ValueType): WitType {
    const known = this.#described.get(type);
    if (known) return known;
    const names = namesOf(type.names);
    const bare = this.#shape(type, names.at(-1)?.name ?? null);
    const described = names.length === 0 ? bare : { ...bare, names };
    this.#described.set(type, described);
    return described;
  }

  #shape({ shape }: ValueType, name: string | null): WitType {
    switch (shape.kind) {
      case "list": {
        const element = this.describe(shape.element);
        return shape.length === null ? { kind: "list", element } : { kind: "list", element, length: shape.length };
      }
      case "map":
        return { kind: "map", key: this.describe(shape.key), value: this.describe(shape.value) };
      case "tuple":
        return { kind: "tuple", items: shape.items.map((item) => this.describe(item)) };
      case "option":
        return { kind: "option", some: this.describe(shape.some) };
      case "result":
        return { kind: "result", ok: this.#optional(shape.ok), err: this.#optional(shape.err) };
      case "record": {
        const fields = shape.fields.map((field) => ({ name: field.name, type: this.describe(field.type), docs: "" }));
        return { kind: "record", name, docs: "", fields };
      }
      case "variant": {
        const cases = shape.cases.map((one) => ({ name: one.name, type: this.#optional(one.type), docs: "" }));
        return { kind: "variant", name, docs: "", cases };
      }
      case "enum":
        return { kind: "enum", name, docs: "", cases: shape.labels.map((label) => ({ name: label, docs: "" })) };
      case "flags":
        return { kind: "flags", name, docs: "", flags: shape.labels.map((label) => ({ name: label, docs: "" })) };
      case "own":
      case "borrow":
        return { kind: shape.kind, resource: shape.resource.names?.name ?? "resource" };
      case "stream":
      case "future":
        return { kind: shape.kind, element: this.#optional(shape.element) };
      default:
        return { kind: shape.kind };
    }
  }

  #optional(type: ValueType | null): WitType | null {
    return type && this.describe(type);
  }
}

/** The latest name first, the defining one last; without those that only parts of the component know. */
const namesOf = (chain: NameChain | null): WitTypeName[] => {
  const latest: WitTypeName[] = [];
  let oldest: WitTypeName | null = null;
  for (let link = chain; link; link = link.older) {
    if (link.place.id === undefined) continue;
    if (oldest && latest.length < maxNamesOfAType - 1) latest.push(oldest);
    oldest = { interface: link.place.id, name: link.name };
  }
  return oldest ? [...latest, oldest] : [];
};
