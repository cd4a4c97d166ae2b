import type { ClusterClient, Selection } from "./client.ts";
import type { Clock, Random } from "./clock.ts";
import type { MetricsRegistry } from "./metrics.ts";
import type { ClusterObject, ResourceType } from "./object.ts";
import { Reflector, type ReflectorTiming, type ReflectorTrouble } from "./reflector.ts";
import { type Index, Store } from "./store.ts";

export interface InformerOptions<T extends ClusterObject> {
  readonly client: Pick<ClusterClient, "listPage" | "watch">;
  readonly type: ResourceType;
  readonly selection?: Selection;
  readonly indexes?: Readonly<Record<string, Index<T>>>;
  /** What is kept of an object: leave out what nobody reads, to save memory, but never the uid or the resource version. By default `managedFields` goes. */
  readonly trim?: (object: T) => T;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics?: MetricsRegistry;
  readonly onTrouble?: (trouble: ReflectorTrouble) => void;
  readonly timing?: ReflectorTiming;
}

/** A store that is kept like a collection of the API server while `run` runs. */
export class Informer<T extends ClusterObject> {
  readonly store: Store<T>;
  readonly #reflector: Reflector<T>;

  constructor({ indexes, trim = withoutManagedFields, ...options }: InformerOptions<T>) {
    const store = new Store<T>(indexes);
    this.store = store;
    this.#reflector = new Reflector<T>({
      ...options,
      sink: {
        replace: (objects) => store.replace([...objects].map(trim)),
        apply: (object) => store.apply(trim(object)),
        remove: (object) => store.remove(trim(object)),
      },
    });
  }

  /** Resolves when the store holds the first list. */
  get synced(): Promise<void> {
    return this.#reflector.synced;
  }

  get isSynced(): boolean {
    return this.#reflector.isSynced;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#reflector.run(signal);
  }
}

/** They are most of a small object's size, and only the API server needs them. */
const withoutManagedFields = <T extends ClusterObject>(object: T): T => {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
};
