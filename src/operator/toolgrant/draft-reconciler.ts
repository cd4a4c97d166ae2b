import { LRUCache } from "lru-cache";
import { AmbitError, Transient, Waiting } from "../../api/errors.ts";
import { draftLabel } from "../../grants/draft.ts";
import { sandboxedComponents } from "../../grants/sandboxed-component.ts";
import { ApiError, isConflict, isNotFound } from "../../kube/api-error.ts";
import type { Applier, Desired } from "../../kube/apply.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { EventRecorder } from "../../kube/events.ts";
import { keyText, type ManagedFields, type ObjectKey, objectPath } from "../../kube/object.ts";
import { done, type Outcome, type Reconciler } from "../../kube/reconciler.ts";
import { toolGrants } from "../../kube/resource-types.ts";
import type { ComponentStore } from "../component-store.ts";
import type { OperatorStores } from "../context.ts";
import type { ClusterToolGrant, ClusterWorkload } from "../kinds.ts";
import { fieldManagers } from "../names.ts";
import { offeringOf, type ToolListings } from "../tool-listings.ts";
import { type DraftPlan, decideDrafts, type SeenTools } from "./drafts.ts";

export interface DraftDeps {
  readonly stores: Pick<OperatorStores, "toolGrants" | "workloads" | "namespaces">;
  readonly components: ComponentStore;
  readonly listings: ToolListings;
  readonly client: Pick<ClusterClient, "get" | "request" | "delete">;
  /** Under the field manager `ambit-toolgrant`. */
  readonly applier: Applier;
  readonly events: Pick<EventRecorder, "record">;
}

/** A component that could not be had is asked for again after this. */
const retryMs = 15_000;
/** What the API server takes from one Workload at once. */
const draftsAtOnce = 8;
const touchedKept = 20_000;

/**
 * Keeps a draft for each tool of a Workload that nobody has granted. A draft is ours while no other field manager ever wrote to it: then it follows the component, and goes when
 * the tool goes. Whatever a person or Git touched is never written again, nor deleted.
 */
export const draftReconciler = (deps: DraftDeps): Reconciler => {
  /** UIDs of drafts that others wrote to: they stay theirs. */
  const touched = new LRUCache<string, true>({ max: touchedKept });
  return async (key, signal) => {
    // A namespace that ends takes nothing new, and takes everything with it.
    if (deps.stores.namespaces.get(key.namespace ?? "")?.metadata.deletionTimestamp !== undefined) return done;
    const { workload, components, passing } = await gather(deps, key, signal);
    const plan = decideDrafts({
      namespace: key.namespace ?? "",
      workload: key.name,
      exists: workload !== undefined,
      draftGrants: workload?.spec.draftGrants ?? false,
      components,
      grants: deps.stores.toolGrants.find("workload", keyText(key)),
    });
    const made = await apply(deps, workload, withoutTaken(deps, key, plan), touched, signal);
    if (workload && made > 0)
      deps.events.record(workload, { type: "Normal", reason: "Drafted", action: "Draft", note: draftedNote(key, made, plan) });
    return passing ?? done;
  };
};

const draftedNote = ({ namespace }: ObjectKey, made: number, { leftToPersons }: DraftPlan): string => {
  const waiting = `${made} ${made === 1 ? "tool waits" : "tools wait"} for review: \`kubectl ambit review -n ${namespace}\` lists them`;
  return leftToPersons === 0
    ? waiting
    : `${waiting}; ${leftToPersons} more were not drafted: \`ambit draft\` writes them, or says why it can't`;
};

interface Gathered {
  readonly workload: ClusterWorkload | undefined;
  readonly components: SeenTools["components"];
  readonly passing: Outcome | null;
}

const gather = async ({ stores, components: store, listings }: DraftDeps, key: ObjectKey, signal: AbortSignal): Promise<Gathered> => {
  const found = stores.workloads.get(keyText(key));
  const workload = found?.metadata.deletionTimestamp === undefined ? found : undefined;
  const components: SeenTools["components"][number][] = [];
  let passing: Outcome | null = null;
  if (workload === undefined) return { workload, components, passing };
  for (const component of sandboxedComponents(workload.spec)) {
    try {
      const stored = await store.fetch(workload, component, signal);
      const of = { namespace: key.namespace ?? "", workload: key.name, component: component.name };
      const { offered, listing } = offeringOf(stored, component, of, listings);
      // As long as a part is not known, a draft of it must not go.
      components.push({ source: component, offered: listing === "awaited" ? null : offered });
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof AmbitError)) throw thrown;
      components.push({ source: component, offered: null });
      if (thrown instanceof Transient || thrown instanceof Waiting)
        passing = { kind: "waiting", retryAfterMs: retryMs, on: thrown.message };
    }
  }
  return { workload, components, passing };
};

/** Without drafts whose name another grant has: one that a person turned to another tool. */
const withoutTaken = ({ stores }: DraftDeps, key: ObjectKey, plan: DraftPlan): DraftPlan => ({
  ...plan,
  create: plan.create.filter(({ metadata }) => stores.toolGrants.get(keyText({ ...key, name: metadata.name })) === undefined),
});

/** Resolves to how many drafts were made. */
const apply = async (
  deps: DraftDeps,
  workload: ClusterWorkload | undefined,
  plan: DraftPlan,
  touched: LRUCache<string, true>,
  signal: AbortSignal,
): Promise<number> => {
  const { client, applier } = deps;
  let made = 0;
  const refused: string[] = [];
  const rest = plan.create.values();
  const makeRest = async (): Promise<void> => {
    for (const grant of rest) {
      try {
        await applier.apply<ClusterToolGrant>(toolGrants, grant as unknown as Desired, { mustBeNew: true, signal });
        made++;
      } catch (thrown) {
        // Somebody made one meanwhile: theirs stays. One that the API server won't have keeps no other from being made.
        if (thrown instanceof ApiError && thrown.code === "Invalid") refused.push(thrown.message);
        else if (!isConflict(thrown)) throw thrown;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: draftsAtOnce }, makeRest));
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  if (workload && refused[0] !== undefined)
    deps.events.record(workload, {
      type: "Warning",
      reason: "DraftRefused",
      action: "Draft",
      note: `${refused.length} drafts are refused: ${refused[0]}`,
    });
  for (const { live, wanted } of plan.refresh) {
    const now = await untouched(client, live, touched, signal);
    if (!now) continue;
    const { resourceVersion, uid } = now.metadata;
    await client.request({
      method: "PATCH",
      path: objectPath(toolGrants, now.metadata),
      query: { fieldManager: fieldManagers.toolgrant, fieldValidation: "Strict" },
      contentType: "application/apply-patch+yaml",
      body: { ...wanted, metadata: { ...wanted.metadata, resourceVersion, uid } },
      signal,
    });
  }
  for (const live of plan.sweep) {
    const now = await untouched(client, live, touched, signal);
    if (!now) continue;
    const { resourceVersion = "", uid = "" } = now.metadata;
    await client.delete(toolGrants, now.metadata, { resourceVersion, uid }, signal);
  }
  return made;
};

/** The draft as the API server has it now, if it is the very one that was seen and nobody but us ever wrote to it. */
const untouched = async (
  client: Pick<ClusterClient, "get">,
  seen: ClusterToolGrant,
  touched: LRUCache<string, true>,
  signal: AbortSignal,
): Promise<ClusterToolGrant | null> => {
  if (touched.has(seen.metadata.uid ?? "")) return null;
  try {
    const now = await client.get<ClusterToolGrant>(toolGrants, seen.metadata, signal);
    if (now.metadata.uid !== seen.metadata.uid) return null;
    const isOurs =
      now.spec.review === undefined && now.metadata.labels?.[draftLabel] === "true" && isSoleManager(now.metadata.managedFields ?? []);
    if (isOurs) return now;
    if (now.metadata.uid !== undefined) touched.set(now.metadata.uid, true);
    return null;
  } catch (thrown) {
    if (isNotFound(thrown)) return null;
    throw thrown;
  }
};

/** An object without any record was taken over by somebody who cleared it. */
const isSoleManager = (managedFields: readonly ManagedFields[]): boolean =>
  managedFields.length > 0 && managedFields.every(({ manager }) => manager === fieldManagers.toolgrant);
