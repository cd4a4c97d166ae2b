import { type GivenSource, givenSources, type SandboxedComponent } from "../../grants/sandboxed-component.ts";
import { ApiError } from "../../kube/api-error.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { ClusterObject } from "../../kube/object.ts";
import { events } from "../../kube/resource-types.ts";
import type { Pod } from "../kinds.ts";
import type { Fault } from "./gather.ts";

/** What is read of an event. */
export interface PodEvent extends ClusterObject {
  readonly reason?: string;
  readonly note?: string;
}

/** Pods of one component that are asked about: those that wait for the same tell the same. */
const askedPods = 2;
const readEvents = 20;

/** What a pod that waits may wait for is looked up again after this; kubelet tells it to nobody but in an event. */
export const askAgainMs = 5_000;

/** Whether kubelet has taken the pod and no container of it runs, as while a volume can't be mounted. */
export const isNotStarted = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.phase === "Pending" &&
  (status.containerStatuses ?? []).some(({ state }) => state?.waiting !== undefined);

/**
 * Which Secret or ConfigMap keeps a component's pods from starting, as kubelet says in their events (`FailedMount`, `secret "name" not found`); null where it has said nothing of that
 * kind. Nobody else can tell without reading Secrets.
 */
export const missingSource = async (
  client: Pick<ClusterClient, "listPage">,
  component: SandboxedComponent,
  waiting: readonly Pod[],
  signal: AbortSignal,
): Promise<Fault | null> => {
  for (const { metadata } of waiting.slice(0, askedPods)) {
    const { namespace = "default", uid } = metadata;
    const found = missingIn(await failedMounts(client, namespace, uid ?? "", signal), givenSources(component), namespace);
    if (found) return found;
  }
  return null;
};

/** Pure. */
export const missingIn = (said: readonly PodEvent[], sources: readonly GivenSource[], namespace: string): Fault | null => {
  for (const { kind, name, as } of sources) {
    const words = `${kind.toLowerCase()} "${name}" not found`;
    if (!said.some(({ reason, note }) => reason === "FailedMount" && note?.includes(words))) continue;
    const field = as === "headers" ? "headersFrom" : kind === "Secret" ? "secretFrom" : "configFrom";
    const message = `there is no ${kind} ${namespace}/${name}: make it, or take it out of ${field}; its pods start within two minutes of that`;
    return { reason: `${kind}Missing`, message, passing: false };
  }
  return null;
};

const failedMounts = async (
  client: Pick<ClusterClient, "listPage">,
  namespace: string,
  uid: string,
  signal: AbortSignal,
): Promise<readonly PodEvent[]> => {
  try {
    const selection = { namespace, fieldSelector: `regarding.uid=${uid},reason=FailedMount` };
    return (await client.listPage<PodEvent>(events, selection, { limit: readEvents, signal })).items;
  } catch (error) {
    // Without the right to read events, or while they can't be had, a rollout is told of without its reason.
    if (error instanceof ApiError) return [];
    throw error;
  }
};
