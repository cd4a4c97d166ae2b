import { sha256Of } from "../../../src/api/digest.ts";
import type { Workload, WorkloadComponent, WorkloadSpec } from "../../../src/api/generated/workload.ts";
import type { ComponentInterface } from "../../../src/api/wit.ts";
import { controlledBy } from "../../../src/kube/owned.ts";
import type { ClusterWorkload, Pod } from "../../../src/operator/kinds.ts";
import { componentLabels, componentObjectName } from "../../../src/operator/names.ts";
import type { HostSettings } from "../../../src/operator/workload/desired.ts";
import type { Fault, KnownComponent, Seen } from "../../../src/operator/workload/gather.ts";
import type { ConfigMap, Deployment } from "../../../src/operator/workload/kinds.ts";
import { listIssues } from "../grants/issues-tool.ts";

/** Workloads and what is seen of them, for tests of what follows. */

export const settings: HostSettings = { image: "ambit:1.0", pullPolicy: "IfNotPresent", pullSecrets: [], rootKey: "cm9vdA==" };

export const digest = sha256Of("the component");

export const component = (changes: Partial<WorkloadComponent> = {}): WorkloadComponent => ({
  name: "issues",
  image: `registry.test/issues@sha256:${"0".repeat(64)}`,
  limits: { timeout: "30s", memory: "256Mi", resultBytes: "1Mi", concurrency: 4 },
  reuse: { calls: 1 },
  ...changes,
});

export const workload = (spec: Partial<WorkloadSpec> = {}, changes: Partial<ClusterWorkload> = {}): ClusterWorkload & Workload => ({
  apiVersion: "ambit.dev/v1alpha1",
  kind: "Workload",
  metadata: { name: "github", namespace: "agents", uid: "uid-of-github", generation: 3, resourceVersion: "7" },
  spec: { components: [component()], replicas: 1, allowTags: false, draftGrants: true, suspend: false, ...spec },
  ...changes,
});

const emptyInterface: ComponentInterface = { imports: [], exports: [], functions: [], isAsynchronous: false, docs: { sources: [] } };

export const known = (changes: Partial<KnownComponent> = {}): KnownComponent => ({
  stored: {
    digest,
    resolved: `registry.test/issues@sha256:${"0".repeat(64)}`,
    interface: emptyInterface,
    bytes: async () => new TextEncoder().encode("the component"),
  },
  offered: [listIssues()],
  notOffered: [],
  listing: "none",
  ...changes,
});

export const fault = (changes: Partial<Fault> = {}): Fault => ({
  reason: "ImageNotFound",
  message: "registry.test has no such image",
  passing: false,
  ...changes,
});

/** As seen before anything was made; each component of the spec is known. */
export const seen = (of: ClusterWorkload = workload(), changes: Partial<Seen> = {}): Seen => ({
  workload: of,
  components: of.spec.components.map((one) => ({ component: one, found: known() })),
  deployments: [],
  services: [],
  configMaps: [],
  disruptionBudgets: [],
  pods: [],
  activeGrants: 0,
  unjudgedGrants: 0,
  notStarted: new Map(),
  needsSandboxPolicy: false,
  ...changes,
});

const owned = (of: ClusterWorkload, name: string, ownName: string) => ({
  name: ownName,
  namespace: of.metadata.namespace ?? "",
  uid: `uid-of-${ownName}`,
  generation: 2,
  labels: componentLabels(of.metadata.name, name),
  ownerReferences: [controlledBy(of)],
});

/** With the configuration of this name, rolled out unless `status` says otherwise. */
export const deployment = (
  of: ClusterWorkload,
  name: string,
  config: string,
  replicas = 1,
  status: Deployment["status"] = {
    observedGeneration: 2,
    replicas,
    updatedReplicas: replicas,
    availableReplicas: replicas,
  },
): Deployment => ({
  metadata: owned(of, name, componentObjectName(of.metadata.name, name)),
  spec: { replicas, template: { spec: { volumes: [{ configMap: { name: config } }] } } },
  ...(status ? { status } : {}),
});

export const configMap = (of: ClusterWorkload, name: string, config: string): ConfigMap => ({ metadata: owned(of, name, config) });

export const pod = (of: ClusterWorkload, name: string, annotations: Record<string, string>, labels: Record<string, string> = {}): Pod => ({
  metadata: {
    name: "pod",
    namespace: of.metadata.namespace ?? "",
    labels: { ...componentLabels(of.metadata.name, name), ...labels },
    annotations,
  },
  status: { conditions: [{ type: "Ready", status: "True" }] },
});
