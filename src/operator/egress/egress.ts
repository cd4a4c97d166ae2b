import { isDeepStrictEqual } from "node:util";
import { messageOf, Stalled } from "../../api/errors.ts";
import {
  afterProgrammed,
  beginProgress,
  type EgressPlan,
  type EgressProgress,
  nextStep,
  planEgress,
  policyPeers,
  publishTable,
  tableOf,
} from "../../egress/address-table.ts";
import { type EgressHostStatus, egressStatus } from "../../egress/egress-status.ts";
import { type Hop, hopStatus } from "../../egress/hop.ts";
import { type EntryIntent, egressIntents } from "../../egress/intent.ts";
import { componentPolicy, type NetworkPolicySpec, policyPeersOf } from "../../egress/network-policy.ts";
import type { Peer } from "../../egress/route.ts";
import { hopOf, sandboxedComponents } from "../../grants/sandboxed-component.ts";
import { ApiError } from "../../kube/api-error.ts";
import { Applier } from "../../kube/apply.ts";
import { Controller } from "../../kube/controller.ts";
import { type ClusterObject, isControlledBy, keyOf, keyText, type ObjectKey } from "../../kube/object.ts";
import { applyOwned, controlledBy } from "../../kube/owned.ts";
import { done, type Outcome } from "../../kube/reconciler.ts";
import { networkPolicies } from "../../kube/resource-types.ts";
import { conditionTime } from "../conditions.ts";
import type { OperatorContext, Runs } from "../context.ts";
import { isEnding } from "../ending-namespace.ts";
import { byWorkloadLabel } from "../informers.ts";
import { onJudged, unjudgedGrants } from "../judged.ts";
import type { ClusterWorkload } from "../kinds.ts";
import { componentLabels, componentObjectName, fieldManagers, labels } from "../names.ts";
import { Canary, type CanaryOptions, type Enforcement } from "./canary.ts";
import { type NameService, nameService } from "./name-service.ts";
import { type ReachedServices, reachedServices, serviceOfSlice } from "./reached-services.ts";
import { ResolvedNames } from "./resolved-names.ts";
import { defaultEgressSettings, type EgressSettings } from "./settings.ts";

/** Without a place to try nothing is signed. */
const noCanary: Pick<CanaryOptions, "place" | "requirement" | "sign"> = {
  place: null,
  requirement: "report",
  sign: () => {
    throw new TypeError("there is no canary to sign for");
  },
};

/** In a status: what enforces. */
const backend = "networkpolicy";

/** What a person has to mend may be nothing that is watched, such as a quota. */
const retryFaultMs = 60_000;
/** That grants were judged is heard of; this is for what was missed. */
const retryUnjudgedMs = 5_000;

/** Which component: as in `ComponentKey` of the catalogue. */
export interface EgressOf {
  readonly namespace: string;
  readonly workload: string;
  readonly component: string;
}

/** What a host is to be given under its boot id: `AddressTableDocument` without it. */
export interface TableToDeliver {
  /** Above that of every table before, also of an operator before this one. */
  readonly version: number;
  readonly table: Readonly<Record<string, readonly string[]>>;
}

/**
 * Egress of all Workloads: one resolver, a NetworkPolicy for each component and the table that its hosts dial by.
 *
 * The policy of a component is applied here and nowhere else; its tables are delivered by who delivers keys and bytes.
 */
export interface Egress extends Runs {
  /** What hosts of the component should have; undefined until every entry has settled once, when there is nothing to deliver yet. */
  tableFor(of: EgressOf): TableToDeliver | undefined;
  /** For the Workload's status; `before` is what it says now. Empty for a component without allowed hosts, and before it was looked at. */
  statusOf(of: EgressOf, before: readonly EgressHostStatus[]): EgressHostStatus[];
  /** Why the component's policy could not be applied, for its conditions. */
  faultOf(of: EgressOf): { readonly reason: string; readonly message: string } | undefined;
  /** Whether the component's policy is in force, as far as its hosts found. */
  enforcementOf(of: EgressOf): Enforcement;
  /** Has a host try what its policy forbids; throws `Waiting` where it must not get its component yet. */
  beforeComponent: Canary["check"];
  /** When and how hosts that have their component try again. */
  canary: Pick<Canary, "dueInMs" | "again">;
  /** Calls back with a component whose table or status came to be another. The returned function ends that. */
  subscribe(listener: (of: EgressOf) => void): () => void;
}

export interface EgressOptions {
  readonly settings?: EgressSettings;
  /** In place of DNS. */
  readonly ask?: NameService;
  readonly services?: ReachedServices;
  /** By default nothing is tried. */
  readonly canary?: Pick<CanaryOptions, "place" | "requirement" | "sign">;
}

interface Held {
  /** What the plan was made from. */
  allowedHosts: readonly string[];
  hop: Hop | null;
  plan: EgressPlan;
  progress: EgressProgress;
  fault: Stalled | undefined;
}

/** A component and what it may reach now. */
interface Asked {
  readonly component: string;
  readonly allowedHosts: readonly string[];
  readonly hop: Hop | null;
}

export const egressOf = (context: OperatorContext, options: EgressOptions = {}): Egress => new EgressController(context, options);

type NetworkPolicy = ClusterObject & { readonly spec?: NetworkPolicySpec };

class EgressController implements Egress {
  readonly #context: OperatorContext;
  readonly #settings: EgressSettings;
  readonly #services: ReachedServices;
  readonly #names: ResolvedNames;
  readonly #controller: Controller;
  readonly #applier: Applier;
  readonly canary: Canary;
  readonly #held = new Map<string, Map<string, Held>>();
  /** By Workload and component, what listeners know. */
  readonly #told = new Map<string, ReadonlyMap<string, string>>();
  /** By Workload, the Services that it names; few do. */
  readonly #servicesOf = new Map<string, ReadonlySet<string>>();
  readonly #listeners = new Set<(of: EgressOf) => void>();

  constructor(context: OperatorContext, { settings = defaultEgressSettings, ask, services, canary = noCanary }: EgressOptions) {
    const { client, clock, random, log, metrics } = context;
    this.#context = context;
    this.#settings = settings;
    this.#services = services ?? reachedServices(context);
    this.canary = new Canary({ ...canary, clock, random, changed: (of) => this.#tellOf(of) });
    this.#applier = new Applier({ client, fieldManager: fieldManagers.egress });
    this.#controller = new Controller({
      name: "egress",
      workers: 2,
      clock,
      random,
      metrics,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      onEvent: (event) => {
        if (event.type === "failed") log({ message: "egress failed", key: event.key, error: messageOf(event.error) });
      },
    });
    this.#names = new ResolvedNames({
      ask: ask ?? nameService({ servers: settings.nameServers, timeoutMs: 2_000, tries: 2 }),
      policy: settings.rules.addresses,
      timing: settings.names,
      clock,
      random,
      concurrency: 16,
      changed: (workload) => this.#controller.enqueue(workload),
    });
  }

  tableFor(of: EgressOf): TableToDeliver | undefined {
    const progress = this.#heldOf(of)?.progress;
    if (progress === undefined || progress.published === null) return undefined;
    return { version: progress.version, table: tableOf(progress.published) };
  }

  statusOf(of: EgressOf, before: readonly EgressHostStatus[]): EgressHostStatus[] {
    const held = this.#heldOf(of);
    if (held === undefined) return [...before];
    const now = conditionTime(this.#context.clock.now());
    return [
      ...egressStatus(backend, held.plan, held.progress, before, now),
      ...hopStatus(backend, held.hop, this.faultOf(of), before, now),
    ];
  }

  faultOf(of: EgressOf): { readonly reason: string; readonly message: string } | undefined {
    const fault = this.#heldOf(of)?.fault;
    return fault && { reason: fault.code, message: fault.message };
  }

  enforcementOf(of: EgressOf): Enforcement {
    return this.canary.of(of);
  }

  readonly beforeComponent: Canary["check"] = (pod, session, signal) => this.canary.check(pod, session, signal);

  subscribe(listener: (of: EgressOf) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    const { stores } = this.#context;
    const ends = [
      this.#controller.owns(stores.workloads),
      this.#controller.watches(stores.networkPolicies, byWorkloadLabel),
      this.#watchPolicies(),
      onJudged(stores.toolGrants, (workload) => this.#controller.enqueue(workload)),
      this.#controller.watches(this.#services.services, (service) => this.#usersOf(keyOf(service))),
      this.#controller.watches(this.#services.slices, (slice) => serviceOfSlice(slice).flatMap((service) => this.#usersOf(service))),
    ];
    // Entries that name a Service wait for these; an operator that may not list them serves all others.
    void this.#services.synced.then(() => {
      for (const key of stores.workloads.keys()) this.#controller.enqueue(key);
    });
    try {
      await Promise.all([this.#controller.run(signal), this.#services.run(signal)]);
    } finally {
      for (const end of ends) end();
      this.#names.close();
    }
  }

  #heldOf({ namespace, workload, component }: EgressOf): Held | undefined {
    return this.#held.get(keyText({ namespace, name: workload }))?.get(component);
  }

  #tell({ namespace = "default", name }: ObjectKey, held: ReadonlyMap<string, Held>): void {
    const workload = keyText({ namespace, name });
    const before = this.#told.get(workload) ?? new Map<string, string>();
    const now = seenOf(held);
    this.#told.set(workload, now);
    for (const component of new Set([...before.keys(), ...now.keys()])) {
      if (before.get(component) === now.get(component)) continue;
      this.#tellOf({ namespace, workload: name, component });
    }
  }

  /** Has components tried again whose policies became others, ours or the one before all sandboxes. */
  #watchPolicies(): () => void {
    const { networkPolicies: policies, workloads } = this.#context.stores;
    const suspect = (of: EgressOf): void => {
      if (this.canary.dueInMs(of) === Number.POSITIVE_INFINITY) return;
      this.canary.suspect(of);
      this.#tellOf(of);
    };
    return policies.subscribe((change) => {
      if (change.type === "added" || (change.type === "updated" && isDeepStrictEqual(specOf(change.previous), specOf(change.object))))
        return;
      const { namespace = "default", labels: has = {} } = change.object.metadata;
      const only = has[labels.component];
      for (const { metadata, spec } of workloads.list().filter(({ metadata }) => metadata.namespace === namespace)) {
        if (only !== undefined && has[labels.workload] !== metadata.name) continue;
        for (const { name: component } of sandboxedComponents(spec))
          if (only === undefined || only === component) suspect({ namespace, workload: metadata.name, component });
      }
    });
  }

  #tellOf(of: EgressOf): void {
    for (const listener of this.#listeners) listener(of);
  }

  /** The Workloads that were looked at and have an entry that names a Service. */
  #usersOf(service: string): string[] {
    return [...this.#servicesOf].flatMap(([workload, services]) => (services.has(service) ? [workload] : []));
  }

  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<Outcome> {
    const name = keyText(key);
    const workload = this.#context.stores.workloads.get(name);
    if (workload === undefined) {
      for (const component of this.#held.get(name)?.keys() ?? [])
        this.canary.forget({ namespace: key.namespace ?? "", workload: key.name, component });
      this.#held.delete(name);
      this.#told.delete(name);
      this.#servicesOf.delete(name);
      this.#names.use(name, []);
      return done;
    }
    // Its hosts keep the tables they have, and nothing is made in a namespace that ends.
    const { deletionTimestamp, namespace: of } = workload.metadata;
    if (deletionTimestamp !== undefined || isEnding(this.#context.stores, of)) return done;
    const held = this.#held.get(name) ?? new Map<string, Held>();
    this.#held.set(name, held);
    // Until its live tools were judged by what it asks for now, what they may reach stays what it was: nothing, where that was not seen by this process.
    const waits = unjudgedGrants(this.#context.stores, workload) > 0;
    const components = sandboxedComponents(workload.spec).flatMap((sandboxed): Asked[] => {
      const { name: component, localResources } = sandboxed;
      const { allowedHosts, hop } = waits
        ? (held.get(component) ?? {})
        : { allowedHosts: localResources?.allowedHosts ?? [], hop: hopOf(sandboxed) };
      return allowedHosts === undefined ? [] : [{ component, allowedHosts, hop: hop ?? null }];
    });
    const { namespace = "default" } = workload.metadata;
    const intents = components.flatMap(({ allowedHosts }) => egressIntents(allowedHosts, namespace, this.#settings.rules));
    const named = intents.flatMap((intent) =>
      intent.kind === "service" ? [keyText({ namespace: intent.namespace, name: intent.service })] : [],
    );
    if (named.length > 0) this.#servicesOf.set(name, new Set(named));
    else this.#servicesOf.delete(name);
    this.#names.use(
      name,
      intents.flatMap((intent) => (intent.kind === "name" ? [intent.name] : [])),
    );
    let next = Number.POSITIVE_INFINITY;
    for (const asked of components) next = Math.min(next, await this.#converge(workload, asked, held, signal));
    if (waits) next = Math.min(next, this.#context.clock.elapsed() + retryUnjudgedMs);
    await this.#removeLeftOver(workload, held, signal);
    this.#tell(key, held);
    const fault = [...held.values()].find((one) => one.fault !== undefined)?.fault;
    if (next < Number.POSITIVE_INFINITY) {
      const retryAfterMs = Math.max(next - this.#context.clock.elapsed(), 1);
      return { kind: "waiting", retryAfterMs, on: fault?.message ?? "addresses to settle or to drain" };
    }
    return fault === undefined ? done : { kind: "stalled", reason: fault.code, message: fault.message };
  }

  /** Brings the table and then the policy of one component a step further. Returns when the next one is due. */
  async #converge(
    workload: ClusterWorkload,
    { component, allowedHosts, hop }: Asked,
    held: Map<string, Held>,
    signal: AbortSignal,
  ): Promise<number> {
    const { clock, stores } = this.#context;
    const { converge, rules, routeLimit } = this.#settings;
    const { namespace = "default", name, uid = "" } = workload.metadata;
    const live = stores.networkPolicies.get(keyText({ namespace, name: componentObjectName(name, component) })) as
      | NetworkPolicy
      | undefined;
    const now = clock.elapsed();
    const found = live !== undefined && isControlledBy(live, uid) ? policyPeersOf(live.spec) : [];
    const intents = egressIntents(allowedHosts, namespace, rules);
    const plan = this.#plan(intents, now, routeLimit);
    const one: Held = held.get(component) ?? {
      allowedHosts,
      hop,
      plan,
      progress: beginProgress(found, now, converge),
      fault: undefined,
    };
    held.set(component, one);
    one.allowedHosts = allowedHosts;
    one.hop = hop;
    one.plan = plan;
    one.progress = publishTable(one.progress, plan, now, clock.now(), converge);
    const peers = policyPeers(one.progress, plan, now);
    try {
      await this.#applyPolicy(workload, one.hop, component, peers, live, signal);
      one.fault = undefined;
      one.progress = afterProgrammed(one.progress, peers, clock.elapsed());
      // With nothing to settle, the first table need not wait for another look.
      one.progress = publishTable(one.progress, plan, clock.elapsed(), clock.now(), converge);
    } catch (thrown) {
      // Others of the Workload go on; this one's pods stay behind the policy that denies all.
      const fault = faultOf(thrown);
      if (fault === undefined) throw thrown;
      one.fault = fault;
      return clock.elapsed() + retryFaultMs;
    }
    return nextStep(one.progress, plan, clock.elapsed(), converge);
  }

  #plan(intents: readonly EntryIntent[], now: number, routeLimit: number): EgressPlan {
    const services = this.#services;
    const plan = planEgress(
      intents,
      {
        name: (name) => this.#names.get(name),
        service: (namespace, name) => services.services.get(keyText({ namespace, name })),
        slices: (namespace, name) => services.slicesOf(namespace, name),
      },
      now,
      routeLimit,
    );
    if (services.isSynced) return plan;
    const entries = plan.entries.map((entry, index) =>
      intents[index]?.kind === "service" && entry.closed?.reason === "ServiceMissing" ? { ...entry, pending: true } : entry,
    );
    return { ...plan, entries };
  }

  async #applyPolicy(
    workload: ClusterWorkload,
    hop: Hop | null,
    component: string,
    peers: readonly Peer[],
    live: NetworkPolicy | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = "default", name } = workload.metadata;
    const desired = {
      metadata: { name: componentObjectName(name, component), namespace, labels: componentLabels(name, component) },
      spec: componentPolicy(name, component, this.#context.namespace, peers, hop),
    };
    const want = { type: networkPolicies, desired, owner: controlledBy(workload), live };
    await applyOwned<NetworkPolicy>({ applier: this.#applier, client: this.#context.client }, want, signal);
  }

  /** Removes the policies of components that the Workload has no more; their pods are behind the policy that denies all. */
  async #removeLeftOver(workload: ClusterWorkload, held: Map<string, Held>, signal: AbortSignal): Promise<void> {
    const { client, stores } = this.#context;
    const components = new Set(sandboxedComponents(workload.spec).map(({ name }) => name));
    for (const component of [...held.keys()].filter((one) => !components.has(one))) {
      held.delete(component);
      this.canary.forget({ namespace: workload.metadata.namespace ?? "", workload: workload.metadata.name, component });
    }
    for (const policy of stores.networkPolicies.find("workload", keyOf(workload))) {
      const { name, namespace = "default", uid = "", labels: has } = policy.metadata;
      const component = has?.[labels.component];
      if (component === undefined || components.has(component) || !isControlledBy(policy, workload.metadata.uid ?? "")) continue;
      await client.delete(networkPolicies, { namespace, name }, { uid }, signal);
      this.#applier.forget(networkPolicies, { namespace, name });
    }
  }
}

/** A foreign object, or a policy that the API server won't have; undefined for what passes by itself. */
const faultOf = (thrown: unknown): Stalled | undefined => {
  if (thrown instanceof Stalled) return thrown;
  const isRefused = thrown instanceof ApiError && (thrown.code === "Forbidden" || thrown.code === "Invalid");
  return isRefused
    ? new Stalled("PolicyRefused", `the API server refuses the NetworkPolicy: ${thrown.message}`, { cause: thrown })
    : undefined;
};

const specOf = (policy: ClusterObject): unknown => (policy as NetworkPolicy).spec;

/** By component, what listeners are told of: tables, and what a status says of entries. */
const seenOf = (held: ReadonlyMap<string, Held>): ReadonlyMap<string, string> =>
  new Map(
    [...held].map(([component, { plan, progress, fault, hop }]) => [
      component,
      JSON.stringify([
        hop,
        progress.published === null ? null : progress.version,
        plan.entries.map(({ entry, closed, caveat, pending, routes }) => [entry, closed, caveat, pending, routes.length > 0]),
        fault?.message ?? null,
      ]),
    ]),
  );
