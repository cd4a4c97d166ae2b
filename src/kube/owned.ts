import { Stalled } from "../api/errors.ts";
import { isNotFound } from "./api-error.ts";
import type { Applied, Applier, ApplyOptions, Desired } from "./apply.ts";
import type { ClusterClient } from "./client.ts";
import { type ClusterObject, isControlledBy, type OwnerReference, type ResourceType } from "./object.ts";

/** An object that belongs to another: what it should be, and whose it is. */
export interface OwnedWant<T extends ClusterObject> {
  readonly type: ResourceType;
  readonly desired: Desired;
  /** Becomes the object's controller; unlike other references there is only one such. */
  readonly owner: OwnerReference;
  /** As last seen, from a store. */
  readonly live: T | undefined;
}

/** The reference that makes `owner` an object's controller: the object goes when it goes. */
export const controlledBy = (owner: ClusterObject): OwnerReference => {
  const { apiVersion, kind, metadata } = owner;
  if (apiVersion === undefined || kind === undefined || metadata.uid === undefined) {
    throw new TypeError(`${metadata.name} can own nothing before the API server knows it`);
  }
  return { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true, blockOwnerDeletion: true };
};

/**
 * Applies an object that `owner` controls, and takes over nothing that it doesn't: an object of somebody else under the wanted name is `Stalled` (`ForeignObject`).
 *
 * Fields of our own objects are taken back from whoever changed them. One that isn't there, as far as the store knows, is looked for once more and then only made: what another
 * made in that moment is a `Conflict`.
 */
export const applyOwned = async <T extends ClusterObject>(
  { applier, client }: { readonly applier: Applier; readonly client: Pick<ClusterClient, "get"> },
  { type, desired, owner, live }: OwnedWant<T>,
  signal: AbortSignal,
): Promise<Applied<T>> => {
  const known = live ?? (await client.get<T>(type, desired.metadata, signal).catch(undefinedIfMissing));
  if (known !== undefined && !isControlledBy(known, owner.uid)) throw foreign(type, known);
  const wanted = { ...desired, metadata: { ...desired.metadata, ownerReferences: [owner] } };
  const options: ApplyOptions<T> = known === undefined ? { signal, mustBeNew: true } : { signal, force: true, live: known };
  return applier.apply<T>(type, wanted, options);
};

const undefinedIfMissing = (thrown: unknown): undefined => {
  if (isNotFound(thrown)) return undefined;
  throw thrown;
};

const foreign = ({ kind }: ResourceType, { metadata }: ClusterObject): Stalled => {
  const controller = metadata.ownerReferences?.find((reference) => reference.controller === true);
  const whose = controller === undefined ? "somebody else" : `the ${controller.kind} ${controller.name}`;
  const where = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
  return new Stalled("ForeignObject", `the ${kind} ${where} belongs to ${whose} and is left alone; rename or delete it to go on`);
};
