import { Invalid } from "../api/errors.ts";
import { malformed, offsetText } from "./byte-reader.ts";
import { type ComponentEntity, type Entity, type FunctionType, type InstanceEntity, type Place, Scope, type TypeEntity } from "./entity.ts";
import type { DecodeLimits } from "./limits.ts";
import type { Definition, Extern, NamedItem, SortIndex } from "./syntax.ts";
import { TypeBuilder } from "./type-builder.ts";

type Import = Extract<Definition, { op: "import" }>;

/** Imports and exports of a component in the order of its definitions, every index resolved. */
export interface EvaluatedComponent {
  readonly imports: ReadonlyMap<string, Entity>;
  readonly exports: ReadonlyMap<string, Entity>;
}

/**
 * Evaluates a component's definitions as an interpreter would its statements: instantiating a nested component evaluates its definitions with the
 * imports bound to the arguments. So exported types come out under the names, and functions with the parameter names, that the instantiation shows.
 *
 * The input is not validated here beyond what is needed to answer (the runtime validates it whole before running it), so the evaluation itself is
 * bounded: steps in total, and nesting, since unchecked components could instantiate each other without end.
 */
export const evaluateComponent = (body: readonly Definition[], limits: DecodeLimits): EvaluatedComponent =>
  new Evaluator(limits).root(body);

class Evaluator {
  readonly #limits: DecodeLimits;
  readonly #types: TypeBuilder;
  #steps = 0;

  constructor(limits: DecodeLimits) {
    this.#limits = limits;
    this.#types = new TypeBuilder(limits, (steps, at) => this.#step(steps, at));
  }

  root(body: readonly Definition[]): EvaluatedComponent {
    const imports = new Map<string, Entity>();
    const scope = new Scope(null, { id: null }, 0);
    const exports = this.#evaluate(body, scope, (definition) => {
      if (imports.has(definition.name)) throw malformed(`two imports are called ${JSON.stringify(definition.name)}`, definition.at);
      const entity = this.#declared(scope, definition.name, definition.extern, definition.at, { id: definition.name });
      imports.set(definition.name, entity);
      return entity;
    });
    for (const [name, entity] of exports) {
      // An interface that is exported twice, or handed on from an import, keeps the id that it had first.
      if (entity.sort === "instance") entity.instance.place.id ??= name;
    }
    return { imports, exports };
  }

  /** Evaluates definitions into `scope`, asking `bind` what each import stands for; returns the exports. */
  #evaluate(body: readonly Definition[], scope: Scope, bind: (definition: Import) => Entity): Map<string, Entity> {
    const exports = new Map<string, Entity>();
    for (const definition of body) {
      this.#step(1, definition.at);
      switch (definition.op) {
        case "type":
          scope.types.push(this.#types.build(scope, definition.type, definition.at));
          break;
        case "import":
          add(scope, bind(definition));
          break;
        case "export": {
          const entity = this.#exported(scope, definition.name, definition.item, definition.ascribed, definition.at);
          addExport(exports, definition.name, entity, definition.at);
          add(scope, entity);
          break;
        }
        case "export-type": {
          const entity = this.#declared(scope, definition.name, definition.extern, definition.at, { id: undefined });
          addExport(exports, definition.name, entity, definition.at);
          add(scope, entity);
          break;
        }
        case "alias-export": {
          const entity = at(scope.instances, definition.instance, "instance", definition.at).exports.get(definition.name);
          if (entity?.sort !== definition.sort) {
            throw malformed(`the instance has no ${definition.sort} called ${JSON.stringify(definition.name)}`, definition.at);
          }
          add(scope, entity);
          break;
        }
        case "alias-outer":
          add(scope, outerItem(scope, definition));
          break;
        case "component":
          scope.components.push({ body: definition.body, scope });
          break;
        case "instantiate":
          scope.instances.push(this.#instantiate(scope, definition.component, definition.args, definition.at));
          break;
        case "instance":
          scope.instances.push(this.#bundle(scope, definition.exports, definition.at));
          break;
        case "lift":
          scope.functions.push({ ...functionType(scope, definition.type, definition.at), isStackful: definition.isStackful });
          break;
      }
    }
    return exports;
  }

  /** What an import or export of the given type is. A type gets a name by it. */
  #declared(scope: Scope, name: string, extern: Extern, offset: number, place: Place): Entity {
    switch (extern.sort) {
      case "module":
        return { sort: "module" };
      case "function":
        return { sort: "function", type: functionType(scope, extern.type, offset) };
      case "type":
        if (extern.bound === "resource") {
          const names = { name, place: scope.place, older: null };
          return { sort: "type", type: { sort: "resource-type", names, isFresh: true } };
        }
        return { sort: "type", type: named(at(scope.types, extern.type, "type", offset), name, scope.place) };
      case "instance": {
        const type = at(scope.types, extern.type, "type", offset);
        if (type.sort !== "instance-type") throw malformed(`type ${extern.type} is not an instance type`, offset);
        return { sort: "instance", instance: this.#open(type.body, type.scope, scope.depth, place, offset, bindNothing) };
      }
      case "component": {
        const type = at(scope.types, extern.type, "type", offset);
        if (type.sort !== "component-type") throw malformed(`type ${extern.type} is not a component type`, offset);
        return { sort: "component", component: { body: type.body, scope: type.scope } };
      }
    }
  }

  #exported(scope: Scope, name: string, item: SortIndex, ascribed: Extern | null, offset: number): Entity {
    const entity = itemOf(scope, item, offset);
    if (ascribed && ascribed.sort !== entity.sort) throw malformed(`${JSON.stringify(name)} is exported under another sort`, offset);
    if (ascribed?.sort === "function" && entity.sort === "function") {
      return { sort: "function", type: { ...functionType(scope, ascribed.type, offset), isStackful: entity.type.isStackful } };
    }
    if (ascribed && ascribed.sort !== "type") {
      const place = entity.sort === "instance" ? entity.instance.place : { id: undefined };
      return this.#declared(scope, name, ascribed, offset, place);
    }
    return entity.sort === "type" ? { sort: "type", type: named(entity.type, name, scope.place) } : entity;
  }

  #instantiate(scope: Scope, index: number, args: readonly NamedItem[], offset: number): InstanceEntity {
    const component = at(scope.components, index, "component", offset);
    const given = new Map<string, Entity>();
    this.#step(args.length, offset);
    for (const arg of args) given.set(arg.name, itemOf(scope, arg, offset));
    return this.#open(component.body, component.scope, scope.depth, { id: undefined }, offset, (definition) => {
      const entity = given.get(definition.name);
      if (entity?.sort !== definition.extern.sort) {
        throw malformed(
          `an instance is made without the ${definition.extern.sort} ${JSON.stringify(definition.name)} that it imports`,
          offset,
        );
      }
      return entity;
    });
  }

  #open(
    body: ComponentEntity["body"],
    outer: Scope | null,
    depth: number,
    place: Place,
    offset: number,
    bind: (definition: Import) => Entity,
  ): InstanceEntity {
    if (depth >= this.#limits.maxDepth) {
      throw new Invalid("ComponentTooDeep", `instances are nested deeper than the ${this.#limits.maxDepth} allowed`, offsetText(offset));
    }
    return { place, exports: this.#evaluate(body, new Scope(outer, place, depth + 1), bind) };
  }

  #bundle(scope: Scope, items: readonly NamedItem[], offset: number): InstanceEntity {
    this.#step(items.length, offset);
    const place: Place = { id: undefined };
    const exports = new Map<string, Entity>();
    for (const item of items) {
      const entity = itemOf(scope, item, offset);
      const exported: Entity = entity.sort === "type" ? { sort: "type", type: named(entity.type, item.name, place) } : entity;
      addExport(exports, item.name, exported, offset);
    }
    return { place, exports };
  }

  #step(steps: number, offset: number): void {
    this.#steps += steps;
    if (this.#steps > this.#limits.maxSteps) {
      throw new Invalid(
        "ComponentTooLarge",
        `instantiating the component's parts takes more than the ${this.#limits.maxSteps} steps allowed`,
        offsetText(offset),
      );
    }
  }
}

const bindNothing = (definition: Import): Entity => {
  throw malformed("an instance type cannot have imports", definition.at);
};

/** The type under one more name. */
const named = (type: TypeEntity, name: string, place: Place): TypeEntity => {
  switch (type.sort) {
    case "value-type":
      return { ...type, names: { name, place, older: type.names } };
    case "resource-type":
      return { ...type, names: { name, place, older: type.names }, isFresh: type.isFresh && type.names === null };
    default:
      return type;
  }
};

const add = (scope: Scope, entity: Entity): void => {
  switch (entity.sort) {
    case "type":
      scope.types.push(entity.type);
      break;
    case "function":
      scope.functions.push(entity.type);
      break;
    case "instance":
      scope.instances.push(entity.instance);
      break;
    case "component":
      scope.components.push(entity.component);
      break;
    case "module":
      break;
  }
};

const addExport = (exports: Map<string, Entity>, name: string, entity: Entity, offset: number): void => {
  if (exports.has(name)) throw malformed(`two exports are called ${JSON.stringify(name)}`, offset);
  exports.set(name, entity);
};

const at = <T>(space: readonly T[], index: number, what: string, offset: number): T => {
  const found = space[index];
  if (found === undefined) throw malformed(`there is no ${what} ${index}`, offset);
  return found;
};

const functionType = (scope: Scope, index: number, offset: number): FunctionType => {
  const type = at(scope.types, index, "type", offset);
  if (type.sort !== "function-type") throw malformed(`type ${index} is not a function type`, offset);
  return type;
};

const itemOf = (scope: Scope, item: SortIndex, offset: number): Entity => {
  switch (item.sort) {
    case "module":
      return { sort: "module" };
    case "type":
      return { sort: "type", type: at(scope.types, item.index, "type", offset) };
    case "function":
      return { sort: "function", type: at(scope.functions, item.index, "function", offset) };
    case "instance":
      return { sort: "instance", instance: at(scope.instances, item.index, "instance", offset) };
    case "component":
      return { sort: "component", component: at(scope.components, item.index, "component", offset) };
    case "value":
      throw malformed("there are no values", offset);
  }
};

const outerItem = (scope: Scope, alias: Extract<Definition, { op: "alias-outer" }>): Entity => {
  let target: Scope | null = scope;
  for (let i = 0; i < alias.count && target; i++) target = target.outer;
  if (!target) throw malformed(`there are not ${alias.count} components around this one`, alias.at);
  if (alias.sort !== "type" && alias.sort !== "component") throw malformed(`a ${alias.sort} cannot be aliased from outside`, alias.at);
  return itemOf(target, alias, alias.at);
};
