import { type ClusterObject, keyOf } from "./object.ts";

/** What happened to an object, told in an order in which it may have happened. `previous` is what was told last. */
export type Change<T> =
  | { readonly type: "added"; readonly object: T }
  | { readonly type: "updated"; readonly object: T; readonly previous: T }
  | { readonly type: "deleted"; readonly object: T };

/** Hears each change once, after the store holds it. Must not throw: what it throws ends the reflector. */
export type ChangeListener<T> = (change: Change<T>) => void;

/** Values under which an object is found, for instance the name of the Workload that a ToolGrant refers to. */
export type Index<T> = (object: T) => readonly string[];

/** What a reflector writes to. */
export interface ReflectorSink<T> {
  /** All there is now: whatever is not in it is gone. */
  replace(objects: Iterable<T>): void;
  apply(object: T): void;
  remove(object: T): void;
}

/**
 * The objects of one kind as last seen, by key and by indexes. Objects are shared with everyone who reads them: never change one.
 *
 * An object under a known name with another uid is a new one: it is told as deleted, then added, however it arrived. Resource versions are only compared for
 * being the same.
 */
export class Store<T extends ClusterObject> implements ReflectorSink<T> {
  readonly #objects = new Map<string, T>();
  readonly #indexes: readonly (readonly [name: string, index: Index<T>, keys: Map<string, Set<string>>])[];
  readonly #listeners = new Set<ChangeListener<T>>();

  constructor(indexes: Readonly<Record<string, Index<T>>> = {}) {
    this.#indexes = Object.entries(indexes).map(([name, index]) => [name, index, new Map()]);
  }

  get size(): number {
    return this.#objects.size;
  }

  /** By `keyText`. */
  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  keys(): IterableIterator<string> {
    return this.#objects.keys();
  }

  /** The objects that an index finds under `value`. Throws `TypeError` for an index that the store was not made with. */
  find(index: string, value: string): T[] {
    const found = this.#indexes.find(([name]) => name === index);
    if (!found) throw new TypeError(`the store has no index ${JSON.stringify(index)}`);
    return [...(found[2].get(value) ?? [])].flatMap((key) => this.#objects.get(key) ?? []);
  }

  /** Tells the listener everything there is as added, then each change. The returned function ends that. */
  subscribe(listener: ChangeListener<T>): () => void {
    for (const object of this.list()) listener({ type: "added", object });
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  replace(objects: Iterable<T>): void {
    const now = new Map<string, T>();
    for (const object of objects) now.set(keyOf(object), object);
    for (const [key, object] of [...this.#objects]) if (!now.has(key)) this.#forget(key, object);
    for (const object of now.values()) this.apply(object);
  }

  apply(object: T): void {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous !== undefined && previous.metadata.uid !== object.metadata.uid) {
      this.#forget(key, previous);
      this.#keep(key, object);
    } else if (previous === undefined) {
      this.#keep(key, object);
    } else if (previous.metadata.resourceVersion !== object.metadata.resourceVersion) {
      this.#reindex(key, previous, object);
      this.#objects.set(key, object);
      this.#tell({ type: "updated", object, previous });
    }
  }

  /** Forgets the object; one of another uid under the same name stays. */
  remove(object: T): void {
    const key = keyOf(object);
    const known = this.#objects.get(key);
    if (known !== undefined && known.metadata.uid === object.metadata.uid) this.#forget(key, object);
  }

  #keep(key: string, object: T): void {
    this.#reindex(key, undefined, object);
    this.#objects.set(key, object);
    this.#tell({ type: "added", object });
  }

  #forget(key: string, object: T): void {
    this.#reindex(key, this.#objects.get(key), undefined);
    this.#objects.delete(key);
    this.#tell({ type: "deleted", object });
  }

  #reindex(key: string, before: T | undefined, after: T | undefined): void {
    for (const [, index, keys] of this.#indexes) {
      for (const value of before === undefined ? [] : index(before)) {
        const under = keys.get(value);
        under?.delete(key);
        if (under?.size === 0) keys.delete(value);
      }
      for (const value of after === undefined ? [] : index(after)) {
        const under = keys.get(value);
        if (under) under.add(key);
        else keys.set(value, new Set([key]));
      }
    }
  }

  #tell(change: Change<T>): void {
    for (const listener of this.#listeners) listener(change);
  }
}
