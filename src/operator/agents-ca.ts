import { Stalled } from "../api/errors.ts";
import { isNotFound } from "../kube/api-error.ts";
import { Applier } from "../kube/apply.ts";
import { Controller } from "../kube/controller.ts";
import { keyText } from "../kube/object.ts";
import { done, type Outcome } from "../kube/reconciler.ts";
import { configMaps } from "../kube/resource-types.ts";
import type { OperatorContext, Runs } from "./context.ts";
import type { ClusterToolGrant } from "./kinds.ts";
import { fieldManagers, labels, managedByAmbit, ownObjects } from "./names.ts";
import { grantIndexes } from "./toolgrant/indexes.ts";
import type { ConfigMap } from "./workload/kinds.ts";

/** A namespace with this label has agents, whatever grants say. */
export const agentsLabel = "ambit.dev/agents";

/** The entry that agents read. */
export const catalogueAuthority = "catalogue-ca.crt";

/**
 * Keeps the certificate of the catalogue's authority in each namespace with agents, for their pods to mount: in those that have the label, and in those of the ServiceAccounts that a grant
 * names, in another namespace than its own once it is live, which asks that this namespace has accepted it. It goes when neither holds, and nobody's object of that name is taken over.
 */
export const agentsAuthority = (context: OperatorContext, certificate: string): Runs => {
  const { client, clock, random, stores, log, metrics, namespace: ambit } = context;
  const applier = new Applier({ client, fieldManager: fieldManagers.agents });

  const needs = (namespace: string): "yes" | "no" | "as it is" => {
    if (stores.namespaces.get(namespace)?.metadata.labels?.[agentsLabel] === "true") return "yes";
    const grants = stores.toolGrants.find("subjectNamespace", namespace);
    if (grants.some(({ metadata, status }) => metadata.namespace === namespace || status?.phase === "Active")) return "yes";
    // A tool that is withheld comes back, and pods that mount it must not wait until then.
    return grants.length > 0 ? "as it is" : "no";
  };

  const reconcile = async ({ name: namespace }: { readonly name: string }, signal: AbortSignal): Promise<Outcome> => {
    const found = stores.namespaces.get(namespace);
    // Ambit's own is kept with the keys; one that ends takes nothing new.
    if (namespace === ambit || found === undefined || found.metadata.deletionTimestamp !== undefined) return done;
    const key = { namespace, name: ownObjects.ca };
    const live = stores.configMaps.get(keyText(key));
    const need = needs(namespace);
    if (need === "yes") {
      const desired = { metadata: { ...key, labels: { [labels.managedBy]: managedByAmbit } }, data: { [catalogueAuthority]: certificate } };
      if (live === undefined && (await isTaken(key, signal))) throw foreign(namespace);
      await applier.apply<ConfigMap>(configMaps, desired, live ? { live, force: true, signal } : { mustBeNew: true, signal });
    } else if (need === "no" && live !== undefined) {
      await client.delete(configMaps, key, live.metadata.uid === undefined ? {} : { uid: live.metadata.uid }, signal);
      applier.forget(configMaps, key);
    }
    return done;
  };

  const isTaken = async (key: { readonly namespace: string; readonly name: string }, signal: AbortSignal): Promise<boolean> => {
    try {
      const { metadata } = await client.get<ConfigMap>(configMaps, key, signal);
      return metadata.labels?.[labels.managedBy] !== managedByAmbit;
    } catch (thrown) {
      if (isNotFound(thrown)) return false;
      throw thrown;
    }
  };

  const controller = new Controller({
    name: "agents-ca",
    reconcile,
    workers: 2,
    clock,
    random,
    metrics,
    onEvent: (event) => {
      if (event.type === "failed" || (event.type === "reconciled" && event.outcome.kind !== "done"))
        log({ message: event.type, controller: "agents-ca", ...event });
    },
  });

  return {
    run: async (signal) => {
      const ends = [
        controller.owns(stores.namespaces),
        controller.watches(stores.configMaps, ({ metadata }) => (metadata.name === ownObjects.ca ? [metadata.namespace ?? ""] : [])),
        controller.watches(stores.toolGrants, namespacesOf),
      ];
      try {
        await controller.run(signal);
      } finally {
        for (const end of ends) end();
      }
    },
  };
};

const namespacesOf = (grant: ClusterToolGrant): string[] => [...new Set(grantIndexes.subjectNamespace(grant))];

const foreign = (namespace: string): Stalled =>
  new Stalled(
    "ForeignObject",
    `the ConfigMap ${namespace}/${ownObjects.ca} belongs to somebody else and is left alone; rename or delete it for agents there to get the catalogue's authority`,
  );
