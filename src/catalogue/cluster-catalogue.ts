import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { labels, managedByAmbit, ownObjects } from "../api/cluster-names.ts";
import { messageOf } from "../api/errors.ts";
import type { ClusterClient, Selection } from "../kube/client.ts";
import type { Clock, Random } from "../kube/clock.ts";
import { Informer } from "../kube/informer.ts";
import { noMetrics } from "../kube/metrics.ts";
import type { ClusterObject, ResourceType } from "../kube/object.ts";
import { configMaps, namespaces, pods, secrets, toolGrants } from "../kube/resource-types.ts";
import type { Index } from "../kube/store.ts";
import type { ScrapedMetrics } from "../telemetry/prometheus.ts";
import { serveTelemetry, type TelemetryPlace, type TelemetryServer } from "../telemetry/server.ts";
import type { CallPolicy } from "./call-policy.ts";
import { type Catalogue, createCatalogue } from "./catalogue.ts";
import type { ConfigMapObject, GrantObject, PodObject, SecretObject } from "./cluster-objects.ts";
import { ClusterFeed, podIndexes } from "./cluster-state.ts";
import { type Counters, ProcessCounters } from "./counters.ts";
import { DeliveredKeys } from "./delivered-keys.ts";
import { dispatchToHost } from "./dispatch.ts";
import type { Journal } from "./journal.ts";
import { replicaSelector, shareAmong } from "./replicas.ts";
import { CatalogueState } from "./state.ts";
import type { CounterStore } from "./store-counters.ts";
import { tokenReviewer } from "./token-review.ts";
import type { CallTracing } from "./tracing.ts";

export interface ClusterCatalogueSettings {
  readonly address: string;
  readonly port: number;
  /** Where the operator keeps the keys. */
  readonly namespace: string;
  /** Names that agents may call the catalogue by. */
  readonly hosts: readonly string[];
  /** What tokens must have been made for. */
  readonly audience: string;
  /** Name of this replica's pod. */
  readonly instance: string;
  /** What the installation decides about callers. */
  readonly policy?: CallPolicy;
  /** Where replicas count together what callers use; without it each takes its share of the limits. */
  readonly counterStore?: CounterStore;
  /** Without TLS: only where something in front of it speaks TLS. */
  readonly plainHttp: boolean;
}

/** What a run tells; nothing of it is an argument or a result of a call. */
export type ClusterCatalogueEvent =
  | { readonly kind: "listening" | "telemetry"; readonly address: AddressInfo }
  | { readonly kind: "ready" }
  | { readonly kind: "closing" }
  | { readonly kind: "fault"; readonly what: string; readonly message: string };

export interface ClusterCatalogueDeps {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Journal;
  readonly tell: (event: ClusterCatalogueEvent) => void;
  /** Metrics, those of the client among them, and where they are served together with the probes. */
  readonly telemetry?: { readonly metrics: ScrapedMetrics; readonly place: TelemetryPlace };
  /** Makes spans of requests and calls. */
  readonly tracing?: CallTracing;
}

/**
 * The catalogue in a cluster: callers are who the API server says they are, offers and hosts are what informers hold, and nothing is looked up while a call waits. Listens when
 * it has a certificate, is ready when it knows everything, and serves until `signal` aborts; then it takes no more and lets calls under way finish.
 */
export const runClusterCatalogue = async (
  settings: ClusterCatalogueSettings,
  deps: ClusterCatalogueDeps,
  signal: AbortSignal,
): Promise<void> => {
  const { clock, tell, telemetry } = deps;
  const fault = (what: string) => (thrown: unknown) => tell({ kind: "fault", what, message: messageOf(thrown) });
  const informers = informersOf(settings, deps);
  const state = new CatalogueState();
  const feed = new ClusterFeed(
    state,
    { grants: informers.grants.store, pods: informers.pods.store, namespaces: informers.namespaces.store },
    clock.now,
  );
  const certificate = Promise.withResolvers<SecureContextOptions>();
  let catalogue: Catalogue | undefined;
  const keys = new DeliveredKeys(
    { tickets: informers.tickets.store, tls: informers.tls.store, authorities: informers.authorities.store },
    {
      onAuthority: (ca) => feed.setAuthority(ca),
      onTls: (tls) => {
        certificate.resolve(tls);
        catalogue?.renewTls(tls);
      },
      onFault: fault("keys"),
    },
    clock.now,
  );
  const all = Object.values(informers);
  const running = new AbortController();
  const runs = all.map((informer) => informer.run(running.signal));
  const dispatcher = dispatchToHost();
  const counters = await countersOf(settings, informers.replicas, clock, fault("counters"));
  let isKnown = false;
  const isReady = (): boolean => isKnown && keys.canSign;
  let telling: TelemetryServer | undefined;
  try {
    if (telemetry) {
      const { place, metrics } = telemetry;
      telling = await serveTelemetry(place, { metrics, isReady: () => isReady() && !signal.aborted, report: fault("telemetry") });
      tell({ kind: "telemetry", address: telling.address });
    }
    const tls = settings.plainHttp ? null : await until(certificate.promise, signal);
    if (tls === undefined) return;
    catalogue = createCatalogue(
      {
        state,
        authenticate: tokenReviewer({ client: deps.client, clock, audience: settings.audience }),
        signer: () => keys.signer(),
        dispatch: dispatcher.dispatch,
        journal: deps.journal,
        now: clock.now,
        monotonic: clock.elapsed,
        random: (bytes) => randomBytes(bytes),
        isReady,
        counters,
        ...(telemetry && { metrics: telemetry.metrics }),
        ...(deps.tracing && { tracing: deps.tracing }),
        report: fault("request"),
      },
      { hosts: settings.hosts, ...(settings.policy && { policy: settings.policy }), ...(tls === null ? {} : { tls }) },
    );
    tell({ kind: "listening", address: await catalogue.listen(settings.address, settings.port) });
    const synced = Promise.all(all.map((informer) => informer.synced));
    if ((await until(synced, signal)) !== undefined) {
      isKnown = true;
      tell({ kind: "ready" });
      await until(new Promise<never>(() => {}), signal);
    }
    tell({ kind: "closing" });
    await catalogue.close();
  } finally {
    running.abort();
    keys.close();
    feed.close();
    await Promise.all(runs);
    await counters.close();
    await dispatcher.close();
    await telling?.close();
  }
};

/** In a store where there is one, else in this process. */
const countersOf = async (
  { counterStore, instance }: ClusterCatalogueSettings,
  replicas: Informer<PodObject>,
  clock: Clock,
  report: (fault: unknown) => void,
): Promise<Counters> => {
  if (counterStore === undefined) return new ProcessCounters(clock.elapsed, () => shareAmong(replicas.store.list(), instance));
  // The client is only loaded for whom a store is configured.
  const { StoreCounters } = await import("./store-counters.ts");
  return new StoreCounters(counterStore, report);
};

/** What a promise gives, or undefined as soon as the signal aborts. */
const until = <T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> =>
  new Promise((resolve, reject) => {
    const stop = (): void => resolve(undefined);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });

const informersOf = ({ namespace }: ClusterCatalogueSettings, { client, clock, random, tell, telemetry }: ClusterCatalogueDeps) => {
  const informer = <T extends ClusterObject>(
    type: ResourceType,
    selection: Selection = {},
    options: { readonly indexes?: Readonly<Record<string, Index<T>>>; readonly trim?: (object: T) => T } = {},
  ): Informer<T> =>
    new Informer<T>({
      client,
      type,
      selection,
      clock,
      random,
      metrics: telemetry?.metrics ?? noMetrics,
      ...options,
      onTrouble: ({ error }) => tell({ kind: "fault", what: type.plural, message: messageOf(error) }),
    });
  const named = (name: string): Selection => ({ namespace, fieldSelector: `metadata.name=${name}` });
  return {
    grants: informer<GrantObject>(toolGrants),
    pods: informer<PodObject>(
      pods,
      { labelSelector: `${labels.managedBy}=${managedByAmbit},${labels.component}` },
      { indexes: podIndexes, trim: trimmedPod },
    ),
    replicas: informer<PodObject>(pods, { namespace, labelSelector: replicaSelector }, { trim: trimmedPod }),
    namespaces: informer<ClusterObject>(namespaces),
    tickets: informer<SecretObject>(secrets, named(ownObjects.tickets)),
    tls: informer<SecretObject>(secrets, named(ownObjects.catalogueTls)),
    authorities: informer<ConfigMapObject>(configMaps, named(ownObjects.ca)),
  };
};

/** Most of a pod is its spec, which says nothing to the catalogue. */
const trimmedPod = ({ apiVersion, kind, metadata, status }: PodObject): PodObject => {
  const { managedFields: _, ownerReferences: __, ...kept } = metadata;
  const { podIP, conditions } = status ?? {};
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata: kept,
    status: { ...(podIP === undefined ? {} : { podIP }), ...(conditions === undefined ? {} : { conditions }) },
  };
};
