import { Applier } from "../../kube/apply.ts";
import { Controller } from "../../kube/controller.ts";
import { keyOf } from "../../kube/object.ts";
import type { OperatorContext, Runs } from "../context.ts";
import { fieldManagers, labels } from "../names.ts";
import { draftReconciler } from "./draft-reconciler.ts";
import { workloadKey } from "./indexes.ts";
import type { ComponentReader } from "./observe.ts";
import { acceptsAnnotation, toolGrantReconciler } from "./reconciler.ts";

/** Reconciles at once: each may read a component that nobody has read yet. */
const workers = 4;

/** What judges grants, and what drafts them. */
export const toolGrantControllers = (context: OperatorContext): Runs[] => [grantController(context), draftController(context)];

const grantController = ({ client, clock, random, stores, components, events, log }: OperatorContext): Controller => {
  const reader: ComponentReader = { components, images: new Map() };
  const applier = new Applier({ client, fieldManager: fieldManagers.toolgrant });
  const controller = new Controller({
    name: "toolgrant",
    reconcile: toolGrantReconciler({ stores, reader, applier, events, clock }),
    workers,
    clock,
    random,
    onEvent: (event) => log({ message: event.type, controller: "toolgrant", ...event }),
  });
  const grantsOf = (key: string) => stores.toolGrants.find("workload", key).map(keyOf);
  controller.owns(stores.toolGrants);
  controller.watches(stores.workloads, (workload) => grantsOf(keyOf(workload)));
  controller.watches(stores.pods, ({ metadata }) => {
    const workload = metadata.labels?.[labels.workload];
    return workload === undefined ? [] : grantsOf(workloadKey(metadata.namespace, workload));
  });
  controller.watches(stores.toolGrants, ({ spec }) => stores.toolGrants.find("declaredName", spec.declaration.name).map(keyOf));
  stores.namespaces.subscribe((change) => {
    const before = change.type === "updated" ? change.previous : undefined;
    const { name, annotations } = change.object.metadata;
    if (before?.metadata.annotations?.[acceptsAnnotation] === annotations?.[acceptsAnnotation]) return;
    for (const grant of stores.toolGrants.find("subjectNamespace", name)) controller.enqueue(keyOf(grant));
  });
  return controller;
};

const draftController = ({ client, clock, random, stores, components, events, log }: OperatorContext): Controller => {
  const applier = new Applier({ client, fieldManager: fieldManagers.toolgrant });
  const controller = new Controller({
    name: "draft",
    reconcile: draftReconciler({ stores, components, client, applier, events }),
    workers: 1,
    clock,
    random,
    onEvent: (event) => log({ message: event.type, controller: "draft", ...event }),
  });
  controller.owns(stores.workloads);
  // A draft that a person deleted comes back, and one whose Workload is gone has to go.
  controller.watches(stores.toolGrants, ({ metadata, spec }) => [workloadKey(metadata.namespace, spec.tool.workload)]);
  return controller;
};
