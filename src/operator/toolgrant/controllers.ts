import { isDeepStrictEqual } from "node:util";
import { draftLabel } from "../../grants/draft.ts";
import { Applier } from "../../kube/apply.ts";
import { Controller } from "../../kube/controller.ts";
import { type ClusterObject, keyOf } from "../../kube/object.ts";
import type { Store } from "../../kube/store.ts";
import type { OperatorContext, Runs } from "../context.ts";
import type { ClusterWorkload } from "../kinds.ts";
import { fieldManagers, labels, podAnnotations } from "../names.ts";
import type { ToolListings } from "../tool-listings.ts";
import { draftReconciler } from "./draft-reconciler.ts";
import { workloadKey } from "./indexes.ts";
import { type ComponentReader, isReady } from "./observe.ts";
import { acceptsAnnotation, toolGrantReconciler } from "./reconciler.ts";

/** Reconciles at once: each may wait for a component. */
const workers = 8;

/** What judges grants, and what drafts them. */
export const toolGrantControllers = (context: OperatorContext, listings: ToolListings): Runs[] => [
  grantController(context, listings),
  draftController(context, listings),
];

const grantController = (
  { client, clock, random, metrics, stores, components, events, log }: OperatorContext,
  listings: ToolListings,
): Controller => {
  const reader: ComponentReader = { components, clock, listings, images: new Map() };
  const applier = new Applier({ client, fieldManager: fieldManagers.toolgrant });
  const controller = new Controller({
    name: "toolgrant",
    reconcile: toolGrantReconciler({ stores, reader, applier, events, clock }),
    workers,
    clock,
    random,
    metrics,
    onEvent: (event) => log({ message: event.type, controller: "toolgrant", ...event }),
  });
  const grantsOf = (key: string) => stores.toolGrants.find("workload", key).map(keyOf);
  const look = (key: string) => controller.enqueue(key);
  controller.owns(stores.toolGrants);
  // Under one name only who is offered it, and to whom, counts for the others.
  onNews(
    stores.toolGrants,
    ({ metadata, spec, status }) => [metadata.generation, spec.declaration.name, status?.phase === "Active"],
    look,
    ({ spec, status }) => (status?.phase === "Active" ? stores.toolGrants.find("declaredName", spec.declaration.name).map(keyOf) : []),
  );
  onNews(stores.workloads, whatRuns, look, (workload) => grantsOf(keyOf(workload)));
  onNews(
    stores.pods,
    (pod) => [isReady(pod), pod.metadata.annotations?.[podAnnotations.delivered]],
    look,
    ({ metadata }) => {
      const workload = metadata.labels?.[labels.workload];
      return workload === undefined ? [] : grantsOf(workloadKey(metadata.namespace, workload));
    },
  );
  onNews(
    stores.namespaces,
    ({ metadata }) => [metadata.annotations?.[acceptsAnnotation]],
    look,
    ({ metadata }) => stores.toolGrants.find("subjectNamespace", metadata.name).map(keyOf),
  );
  listings.subscribe(({ namespace, workload }) => {
    for (const grant of grantsOf(workloadKey(namespace, workload))) look(grant);
  });
  return controller;
};

const draftController = (
  { client, clock, random, metrics, stores, components, events, log }: OperatorContext,
  listings: ToolListings,
): Controller => {
  const applier = new Applier({ client, fieldManager: fieldManagers.toolgrant });
  const controller = new Controller({
    name: "draft",
    reconcile: draftReconciler({ stores, components, listings, client, applier, events }),
    workers,
    clock,
    random,
    metrics,
    onEvent: (event) => log({ message: event.type, controller: "draft", ...event }),
  });
  const look = (key: string) => controller.enqueue(key);
  onNews(stores.workloads, whatRuns, look, (workload) => [keyOf(workload)]);
  // A draft that a person deleted comes back, and one whose Workload is gone has to go.
  onNews(
    stores.toolGrants,
    ({ metadata }) => [metadata.generation, metadata.deletionTimestamp, metadata.labels?.[draftLabel]],
    look,
    (grant) => [workloadKey(grant.metadata.namespace, grant.spec.tool.workload)],
  );
  listings.subscribe(({ namespace, workload }) => look(workloadKey(namespace, workload)));
  return controller;
};

/** What of a Workload decides what its tools are. A tag is what the status says that it was resolved to. */
const whatRuns = ({ metadata, status }: ClusterWorkload): readonly unknown[] => [
  metadata.generation,
  metadata.deletionTimestamp,
  ...(status?.components ?? []).map(({ resolved }) => resolved),
];

/** Has the objects looked at that one of another kind concerns, when that comes, goes, or changes in what counts: most changes are to statuses, and concern nobody else. */
const onNews = <T extends ClusterObject>(
  store: Store<T>,
  whatCounts: (object: T) => readonly unknown[],
  look: (key: string) => void,
  affects: (object: T) => readonly string[],
): void => {
  store.subscribe((change) => {
    const before = change.type === "updated" ? [change.previous] : [];
    if (before.some((previous) => isDeepStrictEqual(whatCounts(previous), whatCounts(change.object)))) return;
    for (const key of new Set([...before, change.object].flatMap(affects))) look(key);
  });
};
