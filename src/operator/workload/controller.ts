import { Applier } from "../../kube/apply.ts";
import { Controller } from "../../kube/controller.ts";
import { keyOf, keyText } from "../../kube/object.ts";
import type { OperatorContext, Runs } from "../context.ts";
import type { Egress } from "../egress/egress.ts";
import { byWorkloadLabel } from "../informers.ts";
import { fieldManagers } from "../names.ts";
import type { ToolListings } from "../tool-listings.ts";
import type { HostSettings } from "./desired.ts";
import { workloadReconciler } from "./reconciler.ts";
import { SandboxPolicies } from "./sandbox-policy.ts";

/** Reconciles at once: each may wait for a registry. */
const workers = 4;

/** Keeps the objects and the status of all Workloads. */
export const workloadController = (
  context: OperatorContext,
  settings: HostSettings,
  egress: Pick<Egress, "statusOf" | "faultOf" | "enforcementOf" | "subscribe">,
  listings: ToolListings,
): Runs => {
  const { client, clock, random, metrics, stores, components, events, log, namespace } = context;
  const applier = new Applier({ client, fieldManager: fieldManagers.workload });
  const sandboxPolicies = new SandboxPolicies({ client, applier, store: stores.networkPolicies, ambit: namespace });
  const controller = new Controller({
    name: "workload",
    reconcile: workloadReconciler({
      stores,
      components,
      listings,
      client,
      applier,
      sandboxPolicies,
      settings,
      events,
      clock,
      egress: {
        statusOf: (of, before) => egress.statusOf(of, before),
        faultOf: (of) => egress.faultOf(of),
        enforcementOf: (of) => egress.enforcementOf(of),
      },
    }),
    workers,
    clock,
    random,
    metrics,
    onEvent: (event) => {
      if (event.type === "reconciled" && event.outcome.kind === "done") return;
      log({ message: event.type, controller: "workload", ...event });
    },
  });
  controller.owns(stores.workloads);
  for (const store of [stores.deployments, stores.services, stores.configMaps, stores.disruptionBudgets, stores.pods]) {
    controller.watches(store, byWorkloadLabel);
  }
  // The tools of a Workload are withdrawn before it goes.
  controller.watches(stores.toolGrants, ({ metadata, spec }) => [`${metadata.namespace ?? ""}/${spec.tool.workload}`]);
  // The policy before all sandboxes has no Workload of its own.
  controller.watches(stores.networkPolicies, (policy) =>
    byWorkloadLabel(policy).length > 0
      ? []
      : stores.workloads
          .list()
          .filter((workload) => workload.metadata.namespace === policy.metadata.namespace)
          .map(keyOf),
  );
  egress.subscribe(({ namespace: of, workload }) => controller.enqueue(keyText({ namespace: of, name: workload })));
  listings.subscribe(({ namespace: of, workload }) => controller.enqueue(keyText({ namespace: of, name: workload })));
  return controller;
};
