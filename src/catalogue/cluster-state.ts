import { isIPv6 } from "node:net";
import { hostPort, labels, podAnnotations } from "../api/cluster-names.ts";
import { isSha256Digest } from "../api/digest.ts";
import { AmbitError } from "../api/errors.ts";
import type { ToolGrantSpec } from "../api/generated/toolgrant.ts";
import { canonicalJson } from "../api/json.ts";
import { digestOfDefinitionText } from "../grants/definition.ts";
import { toolOfDefinition } from "../grants/definition-function.ts";
import { grantDigest } from "../grants/grant-digest.ts";
import { readPodReach } from "../grants/reach.ts";
import { hostTls, verifyHostCertificate } from "../identity/host-identity.ts";
import type { ClusterObject } from "../kube/object.ts";
import type { Index, Store } from "../kube/store.ts";
import type { GrantObject, PodObject } from "./cluster-objects.ts";
import {
  type CatalogueId,
  type CatalogueState,
  type ComponentKey,
  catalogueId,
  componentKeyText,
  type Endpoint,
  type LiveGrant,
} from "./state.ts";

/** The annotation by which a namespace accepts other namespaces' grants. */
const acceptsGrantsFrom = "ambit.dev/accepts-grants-from";

/** As long as a call may take at all: what is waited for an answer of a pod that doesn't say how long its calls may take. */
const longestCallMs = 15 * 60_000;

/**
 * What the catalogue offers of a ToolGrant: null unless the operator called this very generation live, and what was reviewed is, by digests computed here, what the grant and the
 * observed definition are now. So a status that is behind, or that says more than a review did, offers nothing.
 *
 * Of a grant that is offered already (`before`) the verdict goes on while a newer generation waits for its own, where that decides the same and only lists other code: approving a
 * rollout ahead of it loses no call.
 */
export const offeredGrant = ({ metadata, spec, status }: GrantObject, before: LiveGrant | null = null): LiveGrant | null => {
  const { review } = spec;
  const { text, digest, code: behindBridge } = status?.observed ?? {};
  if (status?.phase !== "Active" || metadata.deletionTimestamp !== undefined || !review || text === undefined) return null;
  const grant = grantDigest(spec);
  const definition = digestOfDefinitionText(text);
  if (review.grant !== grant || review.definition !== definition || digest !== definition) return null;
  const isJudged = status.observedGeneration !== undefined && status.observedGeneration === metadata.generation;
  if (!isJudged && !(before?.grant === grant && before.definition === definition && hasSameReach(before.spec, spec))) return null;
  const isReviewed = (code: string | undefined): boolean =>
    review.component.includes("any") || (code !== undefined && review.component.includes(code));
  // What runs is a bridge, where a server's code was reviewed.
  const components = (status.components ?? [])
    .filter(isSha256Digest)
    .filter((code) => isReviewed(spec.tool.mcpServer === undefined ? code : behindBridge));
  if (components.length === 0) return null;
  try {
    const fn = toolOfDefinition(text);
    return { namespace: metadata.namespace ?? "default", name: metadata.name, spec, grant, definition, components, fn };
  } catch (thrown) {
    // A definition of a version that this Ambit doesn't know, by an operator that does.
    if (thrown instanceof AmbitError) return null;
    throw thrown;
  }
};

const hasSameReach = (a: ToolGrantSpec, b: ToolGrantSpec): boolean =>
  canonicalJson({ ...a.review?.reach }) === canonicalJson({ ...b.review?.reach });

/**
 * The host in a pod, if calls may go there now: the pod is ready and stays, and its annotations name a start of its host for which Ambit's own authority (`ca`, PEM) issued a
 * certificate. Whoever may write annotations can so take a pod out, but not put one in.
 */
export const endpointOf = ({ metadata, status }: PodObject, ca: string, now: number): Endpoint | null => {
  const { annotations = {}, uid, deletionTimestamp } = metadata;
  const boot = annotations[podAnnotations.boot];
  const component = annotations[podAnnotations.delivered];
  const certificate = annotations[podAnnotations.hostCertificate];
  const reach = readPodReach(annotations[podAnnotations.reach] ?? "");
  const address = status?.podIP;
  const isReady = status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false;
  if (!isReady || deletionTimestamp !== undefined || !uid || !address || !boot || !component || !certificate) return null;
  if (!isSha256Digest(component) || reach === null) return null;
  const identity = { podUid: uid, boot };
  try {
    verifyHostCertificate(certificate, ca, identity, now);
  } catch (thrown) {
    if (thrown instanceof AmbitError) return null;
    throw thrown;
  }
  return {
    url: `https://${isIPv6(address) ? `[${address}]` : address}:${hostPort}`,
    tls: hostTls(identity, ca),
    podUid: uid,
    bootId: boot,
    component,
    deadlineMs: deadlineOf(annotations[podAnnotations.timeout]),
    reach,
  };
};

const deadlineOf = (text: string | undefined): number => {
  const ms = Number(text);
  return text !== undefined && Number.isSafeInteger(ms) && ms > 0 ? Math.min(ms, longestCallMs) : longestCallMs;
};

/** Whose pod it is, null for one that is no tool's. */
export const componentOf = ({ metadata }: ClusterObject): ComponentKey | null => {
  const workload = metadata.labels?.[labels.workload];
  const component = metadata.labels?.[labels.component];
  return workload && component ? { namespace: metadata.namespace ?? "default", workload, component } : null;
};

/** The index that the store of pods must have. */
export const byComponent = "component";

export const podIndexes: Readonly<Record<typeof byComponent, Index<PodObject>>> = {
  [byComponent]: (pod) => {
    const key = componentOf(pod);
    return key === null ? [] : [componentKeyText(key)];
  },
};

const distinctComponents = (pods: readonly PodObject[]): Iterable<ComponentKey> => {
  const keys = new Map<string, ComponentKey>();
  for (const pod of pods) {
    const key = componentOf(pod);
    if (key !== null) keys.set(componentKeyText(key), key);
  }
  return keys.values();
};

export interface ClusterStores {
  readonly grants: Store<GrantObject>;
  /** With `podIndexes`. */
  readonly pods: Store<PodObject>;
  readonly namespaces: Store<ClusterObject>;
}

/** Tells a catalogue's state what is in these stores, and each change, until it is closed. */
export class ClusterFeed {
  readonly #state: CatalogueState;
  readonly #stores: ClusterStores;
  readonly #now: () => number;
  readonly #offered = new Map<CatalogueId, LiveGrant>();
  readonly #ends: readonly (() => void)[];
  #ca: string | null = null;

  constructor(state: CatalogueState, stores: ClusterStores, now: () => number) {
    this.#state = state;
    this.#stores = stores;
    this.#now = now;
    this.#ends = [
      stores.namespaces.subscribe(({ type, object }) => this.#setNamespace(object, type === "deleted")),
      stores.grants.subscribe(({ type, object }) => this.#setGrant(object, type === "deleted")),
      stores.pods.subscribe((change) => {
        const pods = change.type === "updated" ? [change.previous, change.object] : [change.object];
        for (const key of distinctComponents(pods)) this.#setEndpoints(key);
      }),
    ];
  }

  /** The authority for hosts changed, or became known: every pod is judged anew. */
  setAuthority(ca: string | null): void {
    if (ca === this.#ca) return;
    this.#ca = ca;
    for (const key of distinctComponents(this.#stores.pods.list())) this.#setEndpoints(key);
  }

  close(): void {
    for (const end of this.#ends) end();
  }

  #setNamespace({ metadata }: ClusterObject, isGone: boolean): void {
    const text = isGone ? null : (metadata.annotations?.[acceptsGrantsFrom] ?? null);
    this.#state.apply([{ kind: "namespace", name: metadata.name, acceptsGrantsFrom: text === "" ? null : text }]);
  }

  #setGrant(object: GrantObject, isGone: boolean): void {
    const id = catalogueId({ namespace: object.metadata.namespace ?? "default", name: object.metadata.name });
    const before = this.#offered.get(id) ?? null;
    const grant = isGone ? null : offeredGrant(object, before);
    if (grant === null) {
      if (this.#offered.delete(id)) this.#state.apply([{ kind: "grant-withdrawn", id }]);
      return;
    }
    // A status is written for many reasons; what is offered changes for few.
    this.#offered.set(id, grant);
    if (before === null || printOf(before) !== printOf(grant)) this.#state.apply([{ kind: "grant", grant }]);
  }

  #setEndpoints(key: ComponentKey): void {
    this.#state.apply([{ kind: "endpoints", of: key, endpoints: this.#ca === null ? [] : this.#endpoints(key, this.#ca) }]);
  }

  #endpoints(key: ComponentKey, ca: string): Endpoint[] {
    return this.#stores.pods.find(byComponent, componentKeyText(key)).flatMap((pod) => endpointOf(pod, ca, this.#now()) ?? []);
  }
}

const printOf = ({ grant, definition, components, spec }: LiveGrant): string =>
  [grant, definition, ...components, canonicalJson({ ...spec.review?.reach })].join();
