import { isDeepStrictEqual } from "node:util";
import { Refused, Stalled } from "../../api/errors.ts";
import type { ComponentKey } from "../../catalogue/state.ts";
import { Applier } from "../../kube/apply.ts";
import { Controller } from "../../kube/controller.ts";
import { keyOf, keyText, type ObjectKey } from "../../kube/object.ts";
import { done, type Outcome } from "../../kube/reconciler.ts";
import { pods } from "../../kube/resource-types.ts";
import type { OperatorContext, Runs } from "../context.ts";
import type { Egress } from "../egress/egress.ts";
import type { Pod } from "../kinds.ts";
import { fieldManagers, hopPort, hostPort, labels, podAnnotations } from "../names.ts";
import { type CachedBytes, componentBytes } from "./component-bytes.ts";
import { confirmPod } from "./confirm.ts";
import { type DeliverDeps, type Delivered, deliver, isSettled, visitHost, type Wanted } from "./deliver.ts";
import { type HopDeps, hopToDeliver } from "./hop.ts";
import { type HostPod, hostPodOf, noteAnnotations, refusedAnnotation } from "./host-pod.ts";
import type { HostPlace, HostSession } from "./host-session.ts";
import type { Keyring } from "./own-keys.ts";

/** A host is looked at this often although nothing changed: its certificate is renewed in time. */
const lookAgainMs = 6 * 60 * 60 * 1000;

/** Refusals of a host that was busy or short of memory, rather than of what it was sent. */
const maybePassing: ReadonlySet<string> = new Set(["ComponentUnstartable", "TranspileTimedOut", "Internal"]);
const anotherTryMs = 2 * 60 * 1000;

export interface DeliveryOptions {
  readonly keyring: Keyring;
  /** Where components' allowed hosts may be dialled now, and when that changes. */
  readonly egress: Pick<Egress, "tableFor" | "subscribe">;
  /** Bytes of components that were pulled before, for pods whose Workload names other code by now. */
  readonly cached?: CachedBytes;
  /** Looks at a host that has everything but its component; throws `Waiting` where it must not get it yet. */
  readonly beforeComponent?: (pod: HostPod, session: HostSession, signal: AbortSignal) => Promise<void>;
  /** When and how hosts that have their component look again whether their policy is in force. By default never. */
  readonly canary?: Egress["canary"];
  /** Where a pod's host listens: by default at the pod's address, on `hostPort`. */
  readonly placeOf?: (pod: HostPod) => HostPlace;
  /** Where it takes a bridge's requests, if it is an MCP server's: by default at the pod's address, on `hopPort`. */
  readonly hopPlaceOf?: (pod: HostPod) => HostPlace;
}

export interface Delivery extends Runs {
  /** Looks at all pods of a component again: what `beforeComponent` waited for is there. */
  changed(of: ComponentKey): void;
}

/** Gives each host what it runs on, and says on its pod that it has it. */
export const createDelivery = (context: OperatorContext, options: DeliveryOptions): Delivery => {
  const { client, clock, random, metrics, stores, log } = context;
  const { keyring, egress, canary } = options;
  const applier = new Applier({ client, fieldManager: fieldManagers.delivery });
  /** By pod UID. */
  const delivered = new Map<string, Delivered>();
  const deps: DeliverDeps = {
    root: keyring.root,
    placeOf: options.placeOf ?? (({ address }) => ({ address, port: hostPort })),
    confirm: confirmPod(context),
    componentBytes: componentBytes(context, options.cached),
    beforeComponent: options.beforeComponent,
    now: () => clock.now(),
    signingTime: keyring.signingTime,
  };

  const hops: HopDeps = {
    stores,
    root: keyring.root,
    hopPlaceOf: options.hopPlaceOf ?? (({ address }) => ({ address, port: hopPort })),
    now: () => clock.now(),
  };

  const reconcile = async (key: ObjectKey, signal: AbortSignal): Promise<Outcome> => {
    const pod = stores.pods.get(keyText(key));
    const host = pod && hostPodOf(pod);
    if (!pod || !host) return done;
    const { hop, changeInMs } = hopToDeliver(hops, host) ?? {};
    const wanted: Wanted = { keys: keyring.ticketKeys(), table: egress.tableFor(host.of)?.table, hop };
    const before = delivered.get(host.uid);
    if (isSettled(host, before, wanted, clock.now())) {
      if (canary?.dueInMs(host.of) === 0) await visitHost(deps, host, before, (session) => canary.again(host, session, signal), signal);
      return lookAgain(host, changeInMs);
    }
    try {
      const now = await deliver(deps, host, wanted, before, (far) => void delivered.set(host.uid, far), signal);
      await annotate(pod, noteAnnotations(now), signal);
      return lookAgain(host, changeInMs);
    } catch (thrown) {
      if (!(thrown instanceof Stalled || thrown instanceof Refused)) throw thrown;
      const { code, message } = thrown;
      context.events.record(pod, { type: "Warning", reason: code, action: "Deliver", note: message });
      if (thrown instanceof Refused) throw thrown;
      await annotate(pod, refusedAnnotation(code, message), signal);
      if (maybePassing.has(code)) return { kind: "waiting", retryAfterMs: anotherTryMs, on: message };
      return { kind: "stalled", reason: code, message };
    }
  };

  const lookAgain = ({ of }: HostPod, hopChangesInMs = lookAgainMs): Outcome => ({
    kind: "waiting",
    retryAfterMs: Math.max(1, Math.min(lookAgainMs, hopChangesInMs, canary?.dueInMs(of) ?? lookAgainMs)),
    on: "the certificate and the clock of the host, and its policy",
  });

  const annotate = async (pod: Pod, annotations: Record<string, string>, signal: AbortSignal): Promise<void> => {
    const { name, namespace } = pod.metadata;
    await applier.apply(
      pods,
      { metadata: { name, ...(namespace === undefined ? {} : { namespace }), annotations } },
      { live: pod, force: true, signal },
    );
  };

  const controller = new Controller({
    name: "delivery",
    reconcile,
    workers: 16,
    clock,
    random,
    metrics,
    onEvent: (event) => {
      if (event.type === "failed") log({ message: "delivering failed", key: event.key, error: event.error });
    },
  });

  const changed = ({ namespace, workload, component }: ComponentKey): void => {
    for (const pod of stores.pods.find("workload", `${namespace}/${workload}`)) {
      if (pod.metadata.labels?.[labels.component] === component) controller.enqueue(keyOf(pod));
    }
  };

  const lookAtHops = (namespace: string, workload: string, ends: readonly string[]): void => {
    for (const pod of stores.pods.find("workload", `${namespace}/${workload}`)) {
      if (ends.includes(pod.metadata.annotations?.[podAnnotations.hop] ?? "")) controller.enqueue(keyOf(pod));
    }
  };

  return {
    changed,
    run: async (signal) => {
      const ends = [
        controller.owns(stores.pods),
        stores.pods.subscribe((change) => {
          if (change.type !== "deleted") return;
          delivered.delete(change.object.metadata.uid ?? "");
          applier.forget(pods, change.object.metadata);
        }),
        stores.pods.subscribe((change) => {
          if (change.object.metadata.annotations?.[podAnnotations.hop] !== "server") return;
          const before = change.type === "updated" ? hostPodOf(change.previous) : undefined;
          const now = change.type === "deleted" ? undefined : hostPodOf(change.object);
          const { namespace = "", labels: has = {} } = change.object.metadata;
          // An MCP server's pod came, went, or has another start of its host.
          if (change.type === "deleted" || !isDeepStrictEqual(before, now)) lookAtHops(namespace, has[labels.workload] ?? "", ["bridge"]);
        }),
        stores.workloads.subscribe((change) => {
          const { namespace = "", name, generation } = change.object.metadata;
          if (change.type === "updated" && change.previous.metadata.generation === generation) return;
          // The same pods may serve another bridge now.
          lookAtHops(namespace, name, ["server", "bridge"]);
        }),
        egress.subscribe(changed),
        keyring.onTicketKeys(() => {
          for (const key of stores.pods.keys()) controller.enqueue(key);
        }),
      ];
      try {
        await controller.run(signal);
      } finally {
        for (const end of ends) end();
      }
    },
  };
};
