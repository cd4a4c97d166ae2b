import type { Primitive } from "../api/wit.ts";
import type { Definition } from "./syntax.ts";

/**
 * Where a named type was given its name: an interface by its id, null for the world itself. Undefined until the instance is imported or exported, and for
 * good where it never is, as between components that were composed.
 */
export interface Place {
  id: string | null | undefined;
}

/** The names of a type, the latest first: `type a = b` and `use` add one in front of those that there were. */
export interface NameChain {
  readonly name: string;
  readonly place: Place;
  readonly older: NameChain | null;
}

export type ValueShape =
  | { readonly kind: Primitive | "error-context" }
  | { readonly kind: "list"; readonly element: ValueType; readonly length: number | null }
  | { readonly kind: "map"; readonly key: ValueType; readonly value: ValueType }
  | { readonly kind: "tuple"; readonly items: readonly ValueType[] }
  | { readonly kind: "option"; readonly some: ValueType }
  | { readonly kind: "result"; readonly ok: ValueType | null; readonly err: ValueType | null }
  | { readonly kind: "record"; readonly fields: readonly { readonly name: string; readonly type: ValueType }[] }
  | { readonly kind: "variant"; readonly cases: readonly { readonly name: string; readonly type: ValueType | null }[] }
  | { readonly kind: "enum" | "flags"; readonly labels: readonly string[] }
  | { readonly kind: "own" | "borrow"; readonly resource: ResourceType }
  | { readonly kind: "stream" | "future"; readonly element: ValueType | null };

/** `depth` and `size` are those of the whole tree below, written out. */
export interface ValueType {
  readonly sort: "value-type";
  readonly shape: ValueShape;
  readonly names: NameChain | null;
  readonly depth: number;
  readonly size: number;
}

/** `isFresh`: introduced where it is named, rather than another name for a resource from elsewhere. */
export interface ResourceType {
  readonly sort: "resource-type";
  readonly names: NameChain | null;
  readonly isFresh: boolean;
}

export interface FunctionType {
  readonly sort: "function-type";
  readonly async: boolean;
  /** Lifted so that it may block in the middle of its stack; false for what is only described by a type. */
  readonly isStackful: boolean;
  readonly params: readonly { readonly name: string; readonly type: ValueType }[];
  readonly result: ValueType | null;
}

/** An instance or component type, opened anew wherever it is used: its resources are others each time. */
export interface BodyType {
  readonly sort: "instance-type" | "component-type";
  readonly body: readonly Definition[];
  readonly scope: Scope;
}

export type TypeEntity = ValueType | ResourceType | FunctionType | BodyType;

export interface InstanceEntity {
  readonly place: Place;
  readonly exports: ReadonlyMap<string, Entity>;
}

/** A component that can be instantiated: its definitions, and the scope that its outer aliases look into. */
export interface ComponentEntity {
  readonly body: readonly Definition[];
  readonly scope: Scope | null;
}

export type Entity =
  | { readonly sort: "module" }
  | { readonly sort: "type"; readonly type: TypeEntity }
  | { readonly sort: "function"; readonly type: FunctionType }
  | { readonly sort: "instance"; readonly instance: InstanceEntity }
  | { readonly sort: "component"; readonly component: ComponentEntity };

/** The index spaces of one component, or of one component or instance type, while its definitions are evaluated. */
export class Scope {
  readonly outer: Scope | null;
  readonly place: Place;
  readonly depth: number;
  readonly types: TypeEntity[] = [];
  readonly functions: FunctionType[] = [];
  readonly instances: InstanceEntity[] = [];
  readonly components: ComponentEntity[] = [];

  constructor(outer: Scope | null, place: Place, depth: number) {
    this.outer = outer;
    this.place = place;
    this.depth = depth;
  }
}
