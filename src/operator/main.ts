import { randomUUID } from "node:crypto";
import { isRefusedAddress } from "../egress/address.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock, Random } from "../kube/clock.ts";
import { EventRecorder } from "../kube/events.ts";
import { type ElectionEvent, type Leadership, runAsLeader } from "../kube/leader-election.ts";
import { noMetrics } from "../kube/metrics.ts";
import { openContentCache } from "../oci/content-cache.ts";
import { defaultMaxComponentBytes } from "../oci/pull.ts";
import { createTransport } from "../oci/transport.ts";
import type { ScrapedMetrics } from "../telemetry/prometheus.ts";
import { serveTelemetry, type TelemetryPlace } from "../telemetry/server.ts";
import { agentsAuthority } from "./agents-ca.ts";
import { gaugeCluster } from "./cluster-gauges.ts";
import { openComponentStore } from "./component-store.ts";
import type { Log, OperatorContext, Runs } from "./context.ts";
import { signedByRoot } from "./delivery/keyring.ts";
import { listingReader } from "./delivery/listing-reader.ts";
import { openKeyring } from "./delivery/own-keys.ts";
import { createDelivery } from "./delivery/reconciler.ts";
import type { CanaryPlace } from "./egress/canary.ts";
import { egressOf } from "./egress/egress.ts";
import { defaultEgressSettings, type EgressSettings } from "./egress/settings.ts";
import { isEnding } from "./ending-namespace.ts";
import { operatorInformers } from "./informers.ts";
import { leadingGauge } from "./leading-gauge.ts";
import { hostPort, ownObjects } from "./names.ts";
import { pullCredentials } from "./pull-credentials.ts";
import { ToolListings } from "./tool-listings.ts";
import { toolGrantControllers } from "./toolgrant/controllers.ts";
import { unlessAborted } from "./unless-aborted.ts";
import { workloadController } from "./workload/controller.ts";
import type { HostImage } from "./workload/pod-template.ts";

/** What an installation decides. */
export interface OperatorSettings {
  /** Ambit's own namespace. */
  readonly namespace: string;
  /** This replica's name: the pod's. */
  readonly instance: string;
  readonly host: HostImage;
  /** Folder for components that were pulled. */
  readonly cacheFolder: string;
  /** Registries, as images name them, that are spoken to without TLS. */
  readonly plainHttpRegistries: readonly string[];
  /** Address ranges on which registries may be although they are no public ones; link-local and loopback never. */
  readonly registryRanges: readonly string[];
  readonly egress?: EgressSettings;
  /** What sandboxes try to reach, to tell whether NetworkPolicies are in force. */
  readonly canary: CanaryPlace | null;
  readonly requireEnforcement: boolean;
}

/** Where companies keep registries (RFC 1918, RFC 6598, RFC 4193), and where those of a cluster are. */
export const privateNetworks: readonly string[] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

export interface OperatorSurroundings {
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Metrics, those of the client among them, and where they are served together with the probes. */
  readonly telemetry?: { readonly metrics: ScrapedMetrics; readonly place: TelemetryPlace };
}

/**
 * Runs a replica of the operator until the signal aborts: all replicas watch, one leads and writes. Rejects where something went wrong that the next start may find otherwise, such as
 * root keys that can't be read.
 */
export const runOperator = async (settings: OperatorSettings, surroundings: OperatorSurroundings, signal: AbortSignal): Promise<void> => {
  const { client, clock, random, log, telemetry } = surroundings;
  const metrics = telemetry?.metrics ?? noMetrics;
  const informers = operatorInformers({ ...surroundings, metrics });
  const leading = leadingGauge(metrics, ownObjects.lease);
  gaugeCluster(metrics, informers.stores, () => leading.isLeading);
  let isSynced = false;
  informers.synced.then(() => {
    isSynced = true;
  });
  const report = (error: unknown): void => log({ message: "telling metrics failed", error });
  const telling =
    telemetry &&
    (await serveTelemetry(telemetry.place, { metrics: telemetry.metrics, isReady: () => isSynced && !signal.aborted, report }));
  if (telling) log({ message: "telemetry is served", ...telling.address });
  const ending = new AbortController();
  const ends = AbortSignal.any([signal, ending.signal]);
  const watching = informers.run(ends);
  // Told by who leads, or at the end.
  watching.catch(() => {});
  const lead = async (leadership: Leadership): Promise<void> => {
    await unlessAborted(informers.synced, leadership.signal);
    log({ message: "every store is synced" });
    const guarded = client.guardedBy(leadership.assertHeld);
    const events = new EventRecorder({
      client: guarded,
      clock,
      controller: "ambit.dev/operator",
      instance: settings.instance,
      uniqueName: randomUUID,
      isEnding: (namespace) => isEnding(informers.stores, namespace),
    });
    const parts = await operatorParts(
      settings,
      { ...surroundings, client: guarded, events, metrics, stores: informers.stores },
      leadership.signal,
    );
    await together([events, ...parts, { run: (until) => unlessAborted(watching, until) }], leadership.signal);
  };
  try {
    while (!signal.aborted) {
      await runAsLeader(
        {
          client,
          lease: { namespace: settings.namespace, name: ownObjects.lease },
          identity: `${settings.instance}_${randomUUID()}`,
          clock,
          random,
          onEvent: (event) => {
            leading.hear(event);
            log({ message: electionMessages[event.type], ...event });
          },
        },
        lead,
        signal,
      );
    }
  } finally {
    ending.abort();
    await watching;
    await telling?.close();
  }
};

const electionMessages: Readonly<Record<ElectionEvent["type"], string>> = {
  following: "another replica leads",
  leading: "this replica leads",
  lost: "this replica leads no more",
  trouble: "the lease could not be read or renewed",
};

type Shared = Omit<OperatorContext, "components" | "namespace">;

/** All controllers, wired together; what they share is made anew for each term of leading. */
const operatorParts = async (settings: OperatorSettings, shared: Shared, signal: AbortSignal): Promise<readonly Runs[]> => {
  const { client } = shared;
  const cache = openContentCache(settings.cacheFolder);
  const components = openComponentStore({
    cache,
    transport: createTransport({
      refusedAddress: (address) => isRefusedAddress(address, { privateRanges: settings.registryRanges }),
    }),
    isPlainHttp: (registry) => settings.plainHttpRegistries.includes(registry),
    clock: shared.clock,
    credentials: pullCredentials(client),
  });
  const context: OperatorContext = { ...shared, components, namespace: settings.namespace };
  const keyring = await openKeyring(context, signal);
  const egress = egressOf(context, {
    settings: settings.egress ?? defaultEgressSettings,
    canary: {
      place: settings.canary,
      requirement: settings.requireEnforcement ? "require" : "report",
      sign: (document) => signedByRoot(keyring.root, document),
    },
  });
  const delivery = createDelivery(context, {
    keyring,
    egress,
    cached: (digest) => cache.read(digest, defaultMaxComponentBytes),
    beforeComponent: egress.beforeComponent,
    canary: egress.canary,
  });
  const listings = new ToolListings();
  const reader = listingReader(context, { keyring, listings, placeOf: ({ address }) => ({ address, port: hostPort }) });
  const workload = workloadController(context, { ...settings.host, rootKey: keyring.rootPublicKey }, egress, listings);
  const agents = agentsAuthority(context, keyring.root.catalogue.certificate);
  return [keyring, egress, delivery, reader, workload, agents, ...toolGrantControllers(context, listings)];
};

/** Runs all until the signal aborts; the first that fails ends the others, and is what it rejects with. */
const together = async (parts: readonly Runs[], signal: AbortSignal): Promise<void> => {
  const failing = new AbortController();
  const ends = AbortSignal.any([signal, failing.signal]);
  const running = parts.map((part) =>
    part.run(ends).catch((thrown: unknown) => {
      failing.abort(thrown);
      throw thrown;
    }),
  );
  const outcomes = await Promise.allSettled(running);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw failing.signal.aborted ? failing.signal.reason : outcome.reason;
};
