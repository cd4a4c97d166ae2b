import { Invalid } from "../api/errors.ts";
import { malformed, offsetText } from "./byte-reader.ts";
import type { FunctionType, ResourceType, Scope, TypeEntity, ValueShape, ValueType } from "./entity.ts";
import type { DecodeLimits } from "./limits.ts";
import type { TypeSyntax, ValueSyntax } from "./syntax.ts";

/** Makes types of their syntax: indices resolved, depth and written-out size known, so that no tree is ever walked to find that it is too large. */
export class TypeBuilder {
  readonly #limits: DecodeLimits;
  readonly #step: (steps: number, at: number) => void;

  constructor(limits: DecodeLimits, step: (steps: number, at: number) => void) {
    this.#limits = limits;
    this.#step = step;
  }

  build(scope: Scope, syntax: TypeSyntax, at: number): TypeEntity {
    const value = (type: ValueSyntax): ValueType => this.#value(scope, type, at);
    const optional = (type: ValueSyntax | null): ValueType | null => (type === null ? null : value(type));
    switch (syntax.kind) {
      case "value":
        return value(syntax.type);
      case "record": {
        this.#step(syntax.fields.length, at);
        const fields = syntax.fields.map(({ name, type }) => ({ name, type: value(type) }));
        return this.#shaped(
          { kind: "record", fields },
          fields.map((field) => field.type),
          at,
        );
      }
      case "variant": {
        this.#step(syntax.cases.length, at);
        const cases = syntax.cases.map(({ name, type }) => ({ name, type: optional(type) }));
        return this.#shaped(
          { kind: "variant", cases },
          cases.map((one) => one.type),
          at,
        );
      }
      case "list": {
        const element = value(syntax.element);
        return this.#shaped({ kind: "list", element, length: syntax.length }, [element], at);
      }
      case "map": {
        const [key, entry] = [value(syntax.key), value(syntax.value)];
        return this.#shaped({ kind: "map", key, value: entry }, [key, entry], at);
      }
      case "tuple": {
        this.#step(syntax.items.length, at);
        const items = syntax.items.map(value);
        return this.#shaped({ kind: "tuple", items }, items, at);
      }
      case "flags":
      case "enum":
        this.#step(syntax.labels.length, at);
        return this.#shaped({ kind: syntax.kind, labels: syntax.labels }, [], at);
      case "option": {
        const some = value(syntax.some);
        return this.#shaped({ kind: "option", some }, [some], at);
      }
      case "result": {
        const [ok, err] = [optional(syntax.ok), optional(syntax.err)];
        return this.#shaped({ kind: "result", ok, err }, [ok, err], at);
      }
      case "own":
      case "borrow":
        return this.#shaped({ kind: syntax.kind, resource: resourceType(scope, syntax.resource, at) }, [], at);
      case "stream":
      case "future": {
        const element = optional(syntax.element);
        return this.#shaped({ kind: syntax.kind, element }, [element], at);
      }
      case "function":
        return this.#function(scope, syntax, at);
      case "resource":
        return { sort: "resource-type", names: null, isFresh: true };
      case "instance":
      case "component":
        return { sort: syntax.kind === "instance" ? "instance-type" : "component-type", body: syntax.body, scope };
    }
  }

  #function(scope: Scope, syntax: Extract<TypeSyntax, { kind: "function" }>, at: number): FunctionType {
    this.#step(syntax.params.length, at);
    const params = syntax.params.map(({ name, type }) => ({ name, type: this.#value(scope, type, at) }));
    const result = syntax.result === null ? null : this.#value(scope, syntax.result, at);
    this.#measure([...params.map((param) => param.type), result], params.length, at);
    return { sort: "function-type", async: syntax.async, isStackful: false, params, result };
  }

  #value(scope: Scope, syntax: ValueSyntax, at: number): ValueType {
    if (typeof syntax !== "number") return { sort: "value-type", shape: { kind: syntax }, names: null, depth: 1, size: 1 };
    const type = scope.types[syntax];
    if (type === undefined) throw malformed(`there is no type ${syntax}`, at);
    if (type.sort !== "value-type") throw malformed(`type ${syntax} is not the type of a value`, at);
    return type;
  }

  #shaped(shape: ValueShape, parts: readonly (ValueType | null)[], at: number): ValueType {
    const members = "labels" in shape ? shape.labels.length : parts.length;
    return { sort: "value-type", shape, names: null, ...this.#measure(parts, members, at) };
  }

  #measure(parts: readonly (ValueType | null)[], members: number, at: number): { depth: number; size: number } {
    let depth = 1;
    let size = 1 + members;
    for (const part of parts) {
      if (part === null) continue;
      depth = Math.max(depth, part.depth + 1);
      size += part.size;
    }
    if (depth > this.#limits.maxDepth) {
      throw new Invalid("ComponentTooDeep", `a type is nested deeper than the ${this.#limits.maxDepth} allowed`, offsetText(at));
    }
    if (size > this.#limits.maxTypeSize) {
      throw new Invalid(
        "ComponentTooLarge",
        `a type written out has more than the ${this.#limits.maxTypeSize} parts allowed`,
        offsetText(at),
      );
    }
    return { depth, size };
  }
}

const resourceType = (scope: Scope, index: number, at: number): ResourceType => {
  const type = scope.types[index];
  if (type === undefined) throw malformed(`there is no type ${index}`, at);
  if (type.sort !== "resource-type") throw malformed(`type ${index} is not a resource`, at);
  return type;
};
