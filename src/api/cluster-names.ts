import type { Sha256Digest } from "./digest.ts";

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

/** What Ambit's own pods have, in its own namespace: those of the operator and of the catalogue, which may come to a host. */
export const ownPods = {
  matchLabels: { "app.kubernetes.io/name": "ambit" },
  matchExpressions: [{ key: "app.kubernetes.io/component", operator: "In", values: ["operator", "catalogue"] }],
} as const;

/** Of these the operator's alone. */
export const operatorPods = { matchLabels: { "app.kubernetes.io/name": "ambit", "app.kubernetes.io/component": "operator" } } as const;

/** The value of `labels.managedBy`. */
export const managedByAmbit = "ambit";

/** What a pod says of itself. Calls go only to pods that have the first three, which a delivery that succeeded wrote, and the reach. */
export const podAnnotations = {
  /** Which start of the host was delivered to. */
  boot: "ambit.dev/boot",
  /** sha256 of the component's bytes, in full. */
  delivered: "ambit.dev/delivered",
  /** PEM, issued for the pod's UID by Ambit's own authority. */
  hostCertificate: "ambit.dev/host-certificate",
  /** Instead of the three above: `<code>: <message>`, why the pod's host won't have what was delivered. */
  refused: "ambit.dev/refused",
  /** From the Deployment: after how many milliseconds the host ends a call. */
  timeout: "ambit.dev/timeout-ms",
  /** From the Deployment: what the pod was made to touch, as `podReachText` writes it. */
  reach: "ambit.dev/reach",
  /** From the Deployment: which end of an MCP server's hop the pod's host is, `server` or `bridge`. */
  hop: "ambit.dev/hop",
} as const;

/** Objects in Ambit's own namespace. */
export const ownObjects = {
  /** Secret: the root key, and the key and certificate of the authority for hosts. */
  root: "ambit-root",
  /** Secret: the ticket keys, the current one and the next. */
  tickets: "ambit-tickets",
  /** ConfigMap: certificates of the authorities for hosts and for the catalogue. */
  ca: "ambit-ca",
  /** Secret of the type `kubernetes.io/tls`: what the catalogue shows to agents. */
  catalogueTls: "ambit-catalogue-tls",
  /** Lease of the operator that leads. */
  lease: "ambit-operator",
} as const;

/** Where a host listens in its pod, with TLS. */
export const hostPort = 8443;

/** Where the host of an MCP server takes the requests of its bridge, with TLS. */
export const hopPort = 8444;

/** The first 16 hexadecimal digits of a digest, for labels, which cannot hold all of them. */
export const shortDigest = (digest: Sha256Digest): string => digest.slice("sha256:".length, "sha256:".length + 16);
