import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { canonicalJson, type JsonValue } from "../api/json.ts";
import { ApiError } from "./api-error.ts";
import type { ClusterClient, QueryValue } from "./client.ts";
import { apiVersionOf, type ClusterMeta, type ClusterObject, objectPath, type ResourceType } from "./object.ts";

/** What one manager wants an object to be: only the fields it has an opinion on. */
export interface Desired {
  readonly metadata: Pick<ClusterMeta, "name" | "namespace" | "labels" | "annotations" | "ownerReferences" | "finalizers">;
  readonly [field: string]: unknown;
}

export interface ApplyOptions<T extends ClusterObject> {
  /** The object as last seen, from a store. Only that very object is changed: one made under its name since is a `Conflict`. */
  readonly live?: T | undefined;
  /** Only makes the object: one that has its name already is a `Conflict`, and stays as it is. */
  readonly mustBeNew?: boolean;
  /** `status`, for the fields that only a controller writes. */
  readonly subresource?: string;
  /** Takes fields over from other managers; without it they are an `ApplyConflict`. */
  readonly force?: boolean;
  readonly signal?: AbortSignal;
}

export interface Applied<T> {
  /** As the server has it now, or `live` where nothing was to be done. */
  readonly object: T;
  /** Whether the object changed. */
  readonly changed: boolean;
}

export interface ApplierOptions {
  readonly client: Pick<ClusterClient, "request">;
  /** One for each controller: it owns what it applied and nothing else. */
  readonly fieldManager: string;
  /** How many applies are remembered. */
  readonly remembered?: number;
}

/**
 * Server-side apply that asks nothing of the server where nothing can come of it.
 *
 * What an apply does depends on what is wanted and on the object's own content. So a want that was applied is not sent again while both are as they were right after:
 * changes by others to the status, or to who owns which field, don't count. After a restart each object is sent once; the server then writes nothing.
 *
 * Rejects as requests do; `ApplyConflict` names the fields that another manager holds, `Conflict` means that `live` is not there any more.
 */
export class Applier {
  readonly #client: Pick<ClusterClient, "request">;
  readonly #fieldManager: string;
  /** For each object and subresource: what was wanted, and what the object was after it. */
  readonly #settled: LRUCache<string, string>;

  constructor({ client, fieldManager, remembered = 20_000 }: ApplierOptions) {
    this.#client = client;
    this.#fieldManager = fieldManager;
    this.#settled = new LRUCache({ max: remembered });
  }

  async apply<T extends ClusterObject>(type: ResourceType, desired: Desired, options: ApplyOptions<T> = {}): Promise<Applied<T>> {
    const { live, mustBeNew = false, subresource, force = false, signal } = options;
    const path = objectPath(type, desired.metadata, subresource);
    const uid = live?.metadata.uid;
    const wanted = { ...desired, apiVersion: apiVersionOf(type), kind: type.kind, metadata: { ...desired.metadata, uid } };
    const wantedDigest = digestOf(wanted);
    if (live !== undefined && this.#settled.get(path) === `${wantedDigest} ${contentDigest(live, subresource)}`) {
      return { object: live, changed: false };
    }
    const body = mustBeNew ? { ...wanted, metadata: { ...wanted.metadata, resourceVersion: versionOfNothing } } : wanted;
    const object = await this.#send<T>(path, { fieldManager: this.#fieldManager, force, fieldValidation: "Strict" }, body, signal);
    // An object that was just made gets its uid by this answer, and is known by it from now on.
    const settledDigest =
      uid === undefined ? digestOf({ ...wanted, metadata: { ...wanted.metadata, uid: object.metadata.uid } }) : wantedDigest;
    this.#settled.set(path, `${settledDigest} ${contentDigest(object, subresource)}`);
    return { object, changed: object.metadata.resourceVersion !== live?.metadata.resourceVersion };
  }

  async #send<T>(path: string, query: Readonly<Record<string, QueryValue>>, body: object, signal: AbortSignal | undefined): Promise<T> {
    try {
      return (await this.#client.request({ method: "PATCH", path, query, contentType: "application/apply-patch+yaml", body, signal })) as T;
    } catch (thrown) {
      throw isOtherUid(thrown)
        ? new ApiError("Conflict", `${thrown.message} (it was made anew)`, { status: 409, causes: thrown.causes })
        : thrown;
    }
  }

  /** Forgets an object that is gone. */
  forget(type: ResourceType, key: { readonly namespace?: string; readonly name: string }, subresource?: string): void {
    this.#settled.delete(objectPath(type, key, subresource));
  }
}

/**
 * A version that no object ever has: etcd counts from it. The API server compares it with that of an object that is there, and passes over it where there is none, so it says
 * what server-side apply has no word for. (Seen with 1.36; test/api asks each server anew.)
 */
const versionOfNothing = "1";

/** The server calls another uid a conflict where the object is gone, and a wrong field where there is another by its name. */
const isOtherUid = (thrown: unknown): thrown is ApiError =>
  thrown instanceof ApiError && thrown.code === "Invalid" && thrown.causes.some(({ field }) => field === "metadata.uid");

const digestOf = (value: object): string =>
  createHash("sha256")
    .update(canonicalJson(value as JsonValue))
    .digest("base64");

/** What of an object decides what an apply does to it. */
const contentDigest = (object: ClusterObject, subresource: string | undefined): string => {
  const { metadata, status, ...rest } = object as ClusterObject & { status?: unknown };
  if (subresource === "status") return digestOf({ uid: metadata.uid, status });
  const { uid, labels, annotations, ownerReferences, finalizers, deletionTimestamp } = metadata;
  return digestOf({ ...rest, metadata: { uid, labels, annotations, ownerReferences, finalizers, deletionTimestamp } });
};
