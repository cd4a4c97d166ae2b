import type { ObjectMeta } from "../api/object-meta.ts";

/** An object's metadata as an API server gives it. */
export interface ClusterMeta extends ObjectMeta {
  readonly generateName?: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly managedFields?: readonly ManagedFields[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Who set which fields (`metav1.ManagedFieldsEntry`). */
export interface ManagedFields {
  readonly manager?: string;
  readonly operation?: "Apply" | "Update";
  readonly subresource?: string;
  readonly fieldsV1?: unknown;
}

/** Any object of a cluster. Lists leave `apiVersion` and `kind` out of their items; what this folder hands out has both. */
export interface ClusterObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ClusterMeta;
}

/** A kind as the API server's paths need it. The core group is `""`. */
export interface ResourceType {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

export interface ObjectKey {
  /** Absent where the kind is not namespaced. */
  readonly namespace?: string;
  readonly name: string;
}

/** `namespace/name`, or the name alone: what queues and stores go by. */
export const keyText = ({ namespace, name }: ObjectKey): string => (namespace === undefined ? name : `${namespace}/${name}`);

export const keyOf = (object: ClusterObject): string => keyText(object.metadata);

/** The inverse of `keyText`; neither part can hold a slash. */
export const parseKey = (text: string): ObjectKey => {
  const slash = text.indexOf("/");
  return slash < 0 ? { name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
};

export const apiVersionOf = ({ group, version }: ResourceType): string => (group === "" ? version : `${group}/${version}`);

/** `/apis/apps/v1/namespaces/agents/deployments`; without a namespace, that of all of them. Throws `TypeError` for a namespace that can't be one. */
export const collectionPath = (type: ResourceType, namespace?: string): string => {
  const root = type.group === "" ? "/api" : `/apis/${type.group}`;
  const within = type.namespaced && namespace !== undefined ? `/namespaces/${segment(type, namespace)}` : "";
  return `${root}/${type.version}${within}/${type.plural}`;
};

/** `/apis/apps/v1/namespaces/agents/deployments/github/status`. Throws `TypeError` for a key that can't be one. */
export const objectPath = (type: ResourceType, key: ObjectKey, subresource?: string): string => {
  if (type.namespaced && !key.namespace) throw new TypeError(`a ${type.kind} lives in a namespace, and none was given for ${key.name}`);
  const path = `${collectionPath(type, key.namespace)}/${segment(type, key.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
};

/** A name may hold nothing that makes another path of it: it comes from a spec that anybody wrote. */
const segment = (type: ResourceType, name: string): string => {
  if (name === "" || name === "." || name === ".." || /[/%]/.test(name)) {
    throw new TypeError(`a ${type.kind} can't be found by the name ${JSON.stringify(name)}`);
  }
  return encodeURIComponent(name);
};

/** Whether `owner` is the controller of this object. */
export const isControlledBy = (object: ClusterObject, ownerUid: string): boolean =>
  (object.metadata.ownerReferences ?? []).some((reference) => reference.controller === true && reference.uid === ownerUid);
