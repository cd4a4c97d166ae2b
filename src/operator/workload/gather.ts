import { AmbitError, Invalid, Stalled, Transient, Waiting } from "../../api/errors.ts";
import { incomingHandlerExport, servesNoHttp } from "../../api/http-server.ts";
import { givenSources, type SandboxedComponent, sandboxedComponents } from "../../grants/sandboxed-component.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { type ClusterObject, isControlledBy, keyText, type ObjectKey, type ResourceType } from "../../kube/object.ts";
import { configMaps, deployments, disruptionBudgets, services } from "../../kube/resource-types.ts";
import type { ComponentStore, StoredComponent } from "../component-store.ts";
import type { OperatorStores } from "../context.ts";
import { unjudgedGrants } from "../judged.ts";
import type { ClusterWorkload, Pod } from "../kinds.ts";
import { labels } from "../names.ts";
import { type Offering, offeringOf, type ToolListings } from "../tool-listings.ts";
import type { ConfigMap, Deployment, DisruptionBudget, Service } from "./kinds.ts";
import { isNotStarted, missingSource } from "./not-started.ts";

/** Why a component is not run as the spec has it. A `passing` fault may go away by itself. */
export interface Fault {
  readonly reason: string;
  readonly message: string;
  readonly passing: boolean;
  /** When it is worth to look again, where that is known. */
  readonly retryAfterMs?: number;
}

/** What a component turned out to be. */
export interface KnownComponent extends Offering {
  readonly stored: StoredComponent;
}

export interface SeenComponent {
  readonly component: SandboxedComponent;
  readonly found: KnownComponent | Fault;
}

/** Whether it has anything that could be called, or serves what has. */
export const isRun = ({ serves }: SandboxedComponent, { offered, listing }: KnownComponent): boolean =>
  serves !== undefined || offered.length > 0 || listing !== "none";

export const isFault = (found: KnownComponent | Fault): found is Fault => "passing" in found;

/** All that is read before anything is decided. */
export interface Seen {
  readonly workload: ClusterWorkload;
  /** In the order of the spec; none where the Workload is being deleted. */
  readonly components: readonly SeenComponent[];
  /** Objects that this very Workload controls. */
  readonly deployments: readonly Deployment[];
  readonly services: readonly Service[];
  readonly configMaps: readonly ConfigMap[];
  readonly disruptionBudgets: readonly DisruptionBudget[];
  /** With its labels, whoever controls them: those of a ReplicaSet of ours, or of nobody. */
  readonly pods: readonly Pod[];
  /** Of components that are given Secrets or ConfigMaps and have pods that do not start: what is missing, or null while nobody knows. */
  readonly notStarted: ReadonlyMap<string, Fault | null>;
  /** Grants through which a tool of this Workload is offered now. */
  readonly activeGrants: number;
  /** Of these, those that were judged by what the Workload was before. */
  readonly unjudgedGrants: number;
  /** Whether another Workload of the namespace stays, or pods of one are still there. */
  readonly needsSandboxPolicy: boolean;
}

/** Null where there is no such Workload any more. Never rejects for what an image or a registry does: that is a component's fault in the result. */
export const gather = async (
  stores: OperatorStores,
  known: { readonly components: ComponentStore; readonly listings: ToolListings; readonly client: Pick<ClusterClient, "listPage"> },
  key: ObjectKey,
  signal: AbortSignal,
): Promise<Seen | null> => {
  const workload = stores.workloads.get(keyText(key));
  if (!workload) return null;
  const isGoing = workload.metadata.deletionTimestamp !== undefined;
  const seenComponents = isGoing
    ? []
    : await Promise.all(
        sandboxedComponents(workload.spec).map(async (component) => ({ component, found: await look(known, workload, component, signal) })),
      );
  const index = keyText(key);
  const uid = workload.metadata.uid ?? "";
  const pods = stores.pods.find("workload", index);
  const own = <T extends ClusterObject>(objects: readonly T[]): T[] => objects.filter((object) => isControlledBy(object, uid));
  return {
    workload,
    components: seenComponents,
    deployments: own(stores.deployments.find("workload", index)),
    services: own(stores.services.find("workload", index)),
    configMaps: own(stores.configMaps.find("workload", index)),
    disruptionBudgets: own(stores.disruptionBudgets.find("workload", index)),
    pods,
    notStarted: await notStarted(known.client, seenComponents, pods, signal),
    activeGrants: stores.toolGrants.find("workload", index).filter(({ status }) => status?.phase === "Active").length,
    unjudgedGrants: unjudgedGrants(stores, workload),
    needsSandboxPolicy: needsSandboxPolicy(stores, workload),
  };
};

const notStarted = async (
  client: Pick<ClusterClient, "listPage">,
  components: readonly SeenComponent[],
  pods: readonly Pod[],
  signal: AbortSignal,
): Promise<Map<string, Fault | null>> => {
  const found = new Map<string, Fault | null>();
  for (const { component } of components) {
    if (givenSources(component).length === 0) continue;
    const waiting = pods.filter((pod) => pod.metadata.labels?.[labels.component] === component.name && isNotStarted(pod));
    if (waiting.length > 0) found.set(component.name, await missingSource(client, component, waiting, signal));
  }
  return found;
};

/** Whether the policy before all sandboxes of the namespace must stay when this Workload has gone. */
export const needsSandboxPolicy = (stores: OperatorStores, going: ClusterWorkload): boolean => {
  const { namespace, name } = going.metadata;
  const isOther = (object: ClusterObject, workload: string | undefined) => object.metadata.namespace === namespace && workload !== name;
  return (
    stores.workloads.list().some((other) => isOther(other, other.metadata.name)) ||
    stores.pods.list().some((pod) => pod.metadata.namespace === namespace)
  );
};

const look = async (
  { components, listings }: { readonly components: ComponentStore; readonly listings: ToolListings },
  workload: ClusterWorkload,
  component: SandboxedComponent,
  signal: AbortSignal,
): Promise<KnownComponent | Fault> => {
  try {
    const stored = await components.fetch(workload, component, signal);
    if (component.serves !== undefined && incomingHandlerExport(stored.interface) === null)
      throw new Stalled(servesNoHttp.code, servesNoHttp.message);
    const { namespace = "", name } = workload.metadata;
    return { stored, ...offeringOf(stored, component, { namespace, workload: name, component: component.name }, listings) };
  } catch (thrown) {
    signal.throwIfAborted();
    return faultOf(thrown);
  }
};

/** An error of ours as a component's fault; any other is thrown on. */
export const faultOf = (thrown: unknown): Fault => {
  if (!(thrown instanceof AmbitError)) throw thrown;
  const at = thrown instanceof Invalid && thrown.at ? ` (at ${thrown.at})` : "";
  return {
    reason: thrown.code,
    message: `${thrown.message}${at}`,
    passing: thrown instanceof Transient || thrown instanceof Waiting,
    ...(thrown instanceof Waiting ? { retryAfterMs: thrown.retryAfterMs } : {}),
  };
};

/** The objects that a Workload controls, with their kinds. */
export const controlled = (seen: Seen): { readonly type: ResourceType; readonly object: ClusterObject }[] => [
  ...seen.deployments.map((object) => ({ type: deployments, object })),
  ...seen.disruptionBudgets.map((object) => ({ type: disruptionBudgets, object })),
  ...seen.services.map((object) => ({ type: services, object })),
  ...seen.configMaps.map((object) => ({ type: configMaps, object })),
];
