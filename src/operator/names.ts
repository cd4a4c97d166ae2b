import { createHash } from "node:crypto";
import { labels, managedByAmbit } from "../api/cluster-names.ts";

export {
  ambitNamespace,
  hopPort,
  hostPort,
  labels,
  managedByAmbit,
  operatorPods,
  ownObjects,
  ownPods,
  podAnnotations,
  shortDigest,
} from "../api/cluster-names.ts";

/** Field managers: who of us owns which fields. */
export const fieldManagers = {
  workload: "ambit-workload",
  toolgrant: "ambit-toolgrant",
  egress: "ambit-egress",
  delivery: "ambit-delivery",
  agents: "ambit-agents",
} as const;

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
export const componentObjectName = (workload: string, component: string): string => joinedName(workload, component);

/** Two names as one that a Service, a label or a volume may have. */
export const joinedName = (first: string, second: string): string => {
  const plain = `${first}-${second}`;
  if (plain.length <= longestName && serviceName.test(plain)) return plain;
  const hash = createHash("sha256")
    .update(JSON.stringify([first, second]))
    .digest("hex")
    .slice(0, hashDigits);
  const lettersFirst = /^[a-z]/.test(plain) ? plain : `w-${plain}`;
  const start = lettersFirst
    .replaceAll(".", "-")
    .slice(0, longestName - hashDigits - 1)
    .replace(/-+$/, "");
  return `${start}-${hash}`;
};

/** Labels of an object that belongs to a component of a Workload. */
export const componentLabels = (workload: string, component: string): Record<string, string> => ({
  [labels.managedBy]: managedByAmbit,
  [labels.workload]: workload,
  [labels.component]: component,
});
