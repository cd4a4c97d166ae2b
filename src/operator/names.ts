import { createHash } from "node:crypto";
import type { Sha256Digest } from "../api/digest.ts";

/** Where Ambit itself runs, and keeps its keys. */
export const ambitNamespace = "ambit-system";

/** Labels of everything that Ambit makes for a Workload. */
export const labels = {
  managedBy: "app.kubernetes.io/managed-by",
  workload: "ambit.dev/workload",
  component: "ambit.dev/component",
  /** Of pods: the start of the code's digest, `shortDigest`. */
  digest: "ambit.dev/digest",
} as const;

/** The value of `labels.managedBy`. */
export const managedByAmbit = "ambit";

/** What a delivery that succeeded says on the pod. Calls go only to pods that have all of them. */
export const podAnnotations = {
  /** Which start of the host was delivered to. */
  boot: "ambit.dev/boot",
  /** sha256 of the component's bytes, in full. */
  delivered: "ambit.dev/delivered",
  /** PEM, issued for the pod's UID by Ambit's own authority. */
  hostCertificate: "ambit.dev/host-certificate",
} as const;

/** Field managers: who of us owns which fields. */
export const fieldManagers = {
  workload: "ambit-workload",
  toolgrant: "ambit-toolgrant",
  egress: "ambit-egress",
  delivery: "ambit-delivery",
} as const;

/** Objects in Ambit's own namespace. */
export const ownObjects = {
  /** Secret: the root key, and the key and certificate of the authority for hosts. */
  root: "ambit-root",
  /** Secret: the ticket keys, the current one and the next. */
  tickets: "ambit-tickets",
  /** ConfigMap: certificates of the authorities for hosts and for the catalogue. */
  ca: "ambit-ca",
  /** Lease of the operator that leads. */
  lease: "ambit-operator",
} as const;

/** Where a host listens in its pod, with TLS. */
export const hostPort = 8443;

/** Name of the container in a tool's pod. */
export const hostContainer = "host";

/** Service names are labels of RFC 1035: shorter than 64, and no digit comes first. */
const serviceName = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

/** Leaves room in 63 characters for what a Deployment adds to the names of its pods. */
const longestName = 50;
const hashDigits = 8;

/**
 * Name of a component's Deployment, Service and NetworkPolicy: `<workload>-<component>` where that is short enough and a Service may have it, else the start of it
 * and a hash of both parts.
 *
 * Two pairs can still come to one name (`a-b` and `c`, `a` and `b-c`): who comes second is told that the object belongs to the other.
 */
export const componentObjectName = (workload: string, component: string): string => {
  const plain = `${workload}-${component}`;
  if (plain.length <= longestName && serviceName.test(plain)) return plain;
  const hash = createHash("sha256")
    .update(JSON.stringify([workload, component]))
    .digest("hex")
    .slice(0, hashDigits);
  const lettersFirst = /^[a-z]/.test(plain) ? plain : `w-${plain}`;
  const start = lettersFirst
    .replaceAll(".", "-")
    .slice(0, longestName - hashDigits - 1)
    .replace(/-+$/, "");
  return `${start}-${hash}`;
};

/** The first 16 hexadecimal digits of a digest, for labels, which cannot hold all of them. */
export const shortDigest = (digest: Sha256Digest): string => digest.slice("sha256:".length, "sha256:".length + 16);

/** Labels of an object that belongs to a component of a Workload. */
export const componentLabels = (workload: string, component: string): Record<string, string> => ({
  [labels.managedBy]: managedByAmbit,
  [labels.workload]: workload,
  [labels.component]: component,
});
