import type { Sha256Digest } from "../../api/digest.ts";
import type { ComponentKey } from "../../catalogue/state.ts";
import type { ObjectKey } from "../../kube/object.ts";
import type { Pod } from "../kinds.ts";
import { hostContainer, labels, podAnnotations } from "../names.ts";

/** A pod whose host runs and can be delivered to. */
export interface HostPod {
  readonly key: Required<ObjectKey>;
  readonly uid: string;
  readonly of: ComponentKey;
  /** The start of its code's digest. */
  readonly shortDigest: string;
  readonly address: string;
  /** Another with each restart of the container. */
  readonly containerId: string;
  /** Which end of an MCP server's hop its host was started as. */
  readonly hop: "server" | "bridge" | null;
  /** What the last delivery wrote on the pod, if there was one. */
  readonly noted: DeliveryNote | undefined;
}

/** What a delivery that succeeded writes on its pod. */
export interface DeliveryNote {
  readonly boot: string;
  readonly component: Sha256Digest | string;
  readonly certificate: string;
}

/** The pod as a place to deliver to; undefined while there is none: it does not run yet, or not any more, or shares its address with others. */
export const hostPodOf = (pod: Pod): HostPod | undefined => {
  const { metadata, spec, status } = pod;
  const { uid, namespace, name, labels: given = {} } = metadata;
  const workload = given[labels.workload];
  const component = given[labels.component];
  const shortDigest = given[labels.digest];
  const container = status?.containerStatuses?.find((one) => one.name === hostContainer);
  const address = status?.podIP;
  if (uid === undefined || namespace === undefined || !workload || !component || !shortDigest || !address) return undefined;
  if (metadata.deletionTimestamp !== undefined || status?.phase !== "Running" || spec?.hostNetwork === true) return undefined;
  if (container?.state?.running === undefined || !container.containerID) return undefined;
  return {
    key: { namespace, name },
    uid,
    of: { namespace, workload, component },
    shortDigest,
    address,
    containerId: container.containerID,
    hop: hopIn(metadata.annotations?.[podAnnotations.hop]),
    noted: noteOf(metadata.annotations ?? {}),
  };
};

/** Whether it is still the same container, in the same pod, at the same address. */
export const isSamePlace = (a: HostPod, b: HostPod | undefined): boolean =>
  b !== undefined && a.uid === b.uid && a.address === b.address && a.containerId === b.containerId;

const hopIn = (end: string | undefined): HostPod["hop"] => (end === "server" || end === "bridge" ? end : null);

const noteOf = (annotations: Readonly<Record<string, string>>): DeliveryNote | undefined => {
  const boot = annotations[podAnnotations.boot];
  const component = annotations[podAnnotations.delivered];
  const certificate = annotations[podAnnotations.hostCertificate];
  return boot && component && certificate ? { boot, component, certificate } : undefined;
};

export const noteAnnotations = ({ boot, component, certificate }: DeliveryNote): Record<string, string> => ({
  [podAnnotations.boot]: boot,
  [podAnnotations.delivered]: component,
  [podAnnotations.hostCertificate]: certificate,
});

/** What a delivery that the host won't have writes on its pod, instead of the note: for the Workload's conditions. */
export const refusedAnnotation = (code: string, message: string): Record<string, string> => ({
  [podAnnotations.refused]: `${code}: ${message}`.slice(0, 1000),
});
