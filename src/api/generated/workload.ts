// Generated from crds/ by `npm run generate`. Do not edit.
import type { Condition } from "../condition.ts";
import type { JsonObject } from "../json.ts";
import type { ObjectMeta } from "../object-meta.ts";

/**
 * One or more WebAssembly components that run as tools, each in a sandbox of its own.
 */
export interface Workload {
  readonly apiVersion: "ambit.dev/v1alpha1";
  readonly kind: "Workload";
  readonly metadata: ObjectMeta;
  readonly spec: WorkloadSpec;
  readonly status?: WorkloadStatus;
}
/**
 * What should run and what it may reach.
 */
export interface WorkloadSpec {
  /**
   * Pods of each component. Also set by the scale subresource, so that an autoscaler can be pointed at the Workload. `ambit up` runs one host a component.
   */
  readonly replicas: number;
  /**
   * The components. Each gets its own sandbox and only the reach written beside it.
   *
   * @maxItems 16
   */
  readonly components: readonly WorkloadComponent[];
  /**
   * MCP servers whose tools are offered. Each gets a bridge: a component of Ambit's own in its own sandbox, which speaks MCP and reaches that server alone.
   *
   * @maxItems 16
   */
  readonly mcpServers?: readonly McpServer[];
  /**
   * Folders that components may mount.
   *
   * @maxItems 32
   */
  readonly volumes?: readonly Volume[];
  readonly pod?: PodPlacement;
  /**
   * Whether images may be named by a tag. What the tag meant when it was looked up is what runs, and shows in the status.
   */
  readonly allowTags: boolean;
  /**
   * Whether a draft ToolGrant is made for each tool that has none.
   */
  readonly draftGrants: boolean;
  /**
   * Withdraws the tools and stops the sandboxes, and keeps everything else.
   */
  readonly suspend: boolean;
}
/**
 * One component and its grant.
 */
export interface WorkloadComponent {
  /**
   * Name within the workload, a DNS label. Grants refer to it.
   */
  readonly name: string;
  /**
   * Where the component's bytes are: an OCI reference with a digest, such as `ghcr.io/example/tools/github@sha256:…`. A tag alone is accepted only with `allowTags`. `file:PATH`, relative to the manifest and optionally followed by `@sha256:…` of the bytes, is for development with `ambit up` and is refused in a cluster.
   */
  readonly image: string;
  readonly imagePullSecret?: PullSecret;
  readonly wit?: WitText;
  readonly tools?: ToolSelection;
  readonly localResources?: LocalResources;
  readonly limits: CallLimits;
  readonly resources?: PodResources;
  readonly reuse: InstanceReuse;
}
/**
 * A secret of the type `kubernetes.io/dockerconfigjson` in the same namespace, for Ambit to pull the component with. The sandbox never sees it. `ambit up` uses the Docker configuration of whoever runs it.
 */
export interface PullSecret {
  /**
   * Name of the secret.
   */
  readonly name: string;
}
/**
 * WIT text whose doc comments describe the component's functions, for components built without documentation sections. It adds words, never functions or types.
 */
export interface WitText {
  /**
   * One WIT document; it may hold several packages.
   */
  readonly inline: string;
}
/**
 * Which exported functions become tools.
 */
export interface ToolSelection {
  /**
   * Functions that are not offered: `name` for every function of that name, or `interface#name` with the full export id, such as `example:github/issues@0.1.0#list-issues`.
   *
   * @maxItems 256
   */
  readonly exclude?: readonly string[];
}
/**
 * What the component may touch. Absent means nothing.
 */
export interface LocalResources {
  /**
   * Hosts that it may send HTTP requests to: `host`, `host:port`, `scheme://host`, `scheme://host:port`, `*.suffix` in the same forms. Without a port only the scheme's default port is meant. Absent or empty means no network.
   *
   * @maxItems 64
   */
  readonly allowedHosts?: readonly string[];
  readonly environment?: GuestEnvironment;
  /**
   * Volumes that the guest sees as folders.
   *
   * @maxItems 16
   */
  readonly volumeMounts?: readonly VolumeMount[];
}
/**
 * Environment variables of the guest. There are none besides these. Where several have one name, `secretFrom` goes before `configFrom`, that before `config`, and a later entry of a list before an earlier one.
 */
export interface GuestEnvironment {
  /**
   * Names and values, written here in the open. Not a place for secrets.
   */
  readonly config?: {
    [k: string]: string;
  };
  /**
   * ConfigMaps of the same namespace, each key of which becomes a variable. A new call sees what they say then. Their values are in no review.
   *
   * @maxItems 16
   */
  readonly configFrom?: readonly EnvironmentConfigMap[];
  /**
   * Secrets of the same namespace, each key of which becomes a variable. Only the sandbox gets them, and their names are part of what is reviewed: adding one withholds the tools until somebody approves that. A new call sees what they hold then.
   *
   * @maxItems 16
   */
  readonly secretFrom?: readonly EnvironmentSecret[];
}
/**
 * One ConfigMap.
 */
export interface EnvironmentConfigMap {
  /**
   * Name of the ConfigMap.
   */
  readonly name: string;
}
/**
 * One secret.
 */
export interface EnvironmentSecret {
  /**
   * Name of the secret.
   */
  readonly name: string;
}
/**
 * One volume at one path.
 */
export interface VolumeMount {
  /**
   * The entry in `volumes`.
   */
  readonly name: string;
  /**
   * Absolute path as the guest sees it, without `.`, `..` and empty segments.
   */
  readonly mountPath: string;
  /**
   * Whether the guest may only read. The default is the narrower.
   */
  readonly readOnly: boolean;
}
/**
 * Bounds of one call, and how many run at once.
 */
export interface CallLimits {
  /**
   * How long a call may take, in `ms`, `s` or `m`, at most about a quarter of an hour.
   */
  readonly timeout: string;
  /**
   * Memory of one instance, all its memories and tables together, in `Mi` or `Gi`.
   */
  readonly memory: string;
  /**
   * Size of one result, in bytes, `Ki` or `Mi`, at most 64Mi.
   */
  readonly resultBytes: string;
  /**
   * Calls that run at once in one host; more wait in a bounded queue.
   */
  readonly concurrency: number;
}
/**
 * What the pod requests and may use, as for any container. Where it does not say, requests are small and the memory limit follows from `limits`.
 */
export interface PodResources {
  /**
   * What is set aside for the pod.
   */
  readonly requests?: {
    [k: string]: string;
  };
  /**
   * What the pod may use at most.
   */
  readonly limits?: {
    [k: string]: string;
  };
}
/**
 * Whether an instance serves more than one call. By default each call gets a fresh one.
 */
export interface InstanceReuse {
  /**
   * Calls that one instance may serve before it is replaced; it is always replaced after a failure. Above 1, calls can see what earlier calls of other callers left behind.
   */
  readonly calls: number;
}
/**
 * One MCP server, which is either a component of this workload or remote.
 */
export interface McpServer {
  /**
   * Name within the workload, a DNS label, and no component's. Grants refer to it, and its bridge runs under it.
   */
  readonly name: string;
  /**
   * Name of the component above that is the server: one that exports `wasi:http/incoming-handler`. It takes requests from this bridge alone.
   */
  readonly component?: string;
  /**
   * Where a component serves MCP; `/mcp` if absent.
   */
  readonly path?: string;
  readonly remote?: RemoteMcpServer;
  readonly tools?: McpToolSelection;
  readonly limits: McpCallLimits;
  readonly resources?: BridgeResources;
}
/**
 * A server elsewhere, spoken to by HTTP.
 */
export interface RemoteMcpServer {
  /**
   * The endpoint, such as `https://mcp.example.com/mcp`. Its scheme, host and port are all that the bridge may reach.
   */
  readonly url: string;
  /**
   * Secrets of the same namespace whose keys are names of headers and whose values are sent under them with every request, such as `Authorization`. Later entries win. Only the bridge gets them.
   *
   * @maxItems 8
   */
  readonly headersFrom?: readonly HeadersSecret[];
}
/**
 * One secret.
 */
export interface HeadersSecret {
  /**
   * Name of the secret.
   */
  readonly name: string;
}
/**
 * Which of its tools are offered.
 */
export interface McpToolSelection {
  /**
   * Names of tools that are not offered, byte for byte.
   *
   * @maxItems 256
   */
  readonly exclude?: readonly string[];
}
/**
 * Bounds of one call, and how many run at once.
 */
export interface McpCallLimits {
  /**
   * How long a call may take, in `ms`, `s` or `m`, at most about a quarter of an hour.
   */
  readonly timeout: string;
  /**
   * Memory of one instance, all its memories and tables together, in `Mi` or `Gi`.
   */
  readonly memory: string;
  /**
   * Size of one result, in bytes, `Ki` or `Mi`, at most 64Mi.
   */
  readonly resultBytes: string;
  /**
   * Calls that run at once in one host; more wait in a bounded queue.
   */
  readonly concurrency: number;
}
/**
 * What the pod requests and may use, as for any container. Where it does not say, requests are small and the memory limit follows from `limits`.
 */
export interface BridgeResources {
  /**
   * What is set aside for the pod.
   */
  readonly requests?: {
    [k: string]: string;
  };
  /**
   * What the pod may use at most.
   */
  readonly limits?: {
    [k: string]: string;
  };
}
/**
 * One volume, from exactly one source.
 */
export interface Volume {
  /**
   * Name within the workload, a DNS label.
   */
  readonly name: string;
  readonly ephemeral?: EphemeralVolume;
  readonly persistentVolumeClaim?: ClaimedVolume;
}
/**
 * An empty folder that lives as long as the sandbox.
 */
export interface EphemeralVolume {}
/**
 * A claim in the same namespace. `ambit up` takes a folder for it, named on its command line.
 */
export interface ClaimedVolume {
  /**
   * Name of the claim.
   */
  readonly claimName: string;
}
/**
 * Where the pods go and what else is written on them. Nothing here changes what a sandbox may do.
 */
export interface PodPlacement {
  /**
   * Further labels of the pods.
   */
  readonly labels?: {
    [k: string]: string;
  };
  /**
   * Further annotations of the pods.
   */
  readonly annotations?: {
    [k: string]: string;
  };
  /**
   * Labels that a node must have.
   */
  readonly nodeSelector?: {
    [k: string]: string;
  };
  /**
   * Taints of nodes that the pods tolerate, as in a pod's spec.
   *
   * @maxItems 32
   *
   * Items: One toleration.
   */
  readonly tolerations?: readonly JsonObject[];
  /**
   * Which nodes and pods to be near to, or far from, as in a pod's spec.
   */
  readonly affinity?: JsonObject;
  /**
   * How the pods are spread, as in a pod's spec.
   *
   * @maxItems 16
   *
   * Items: One constraint.
   */
  readonly topologySpreadConstraints?: readonly JsonObject[];
  /**
   * The container runtime, for instance one with a further sandbox around the pod.
   */
  readonly runtimeClassName?: string;
  /**
   * The pods' priority.
   */
  readonly priorityClassName?: string;
}
/**
 * What was observed. Written by Ambit alone.
 */
export interface WorkloadStatus {
  /**
   * The generation of the spec that this status is about.
   */
  readonly observedGeneration?: number;
  /**
   * Ready, Reconciling and Stalled as kstatus defines them, and more specific ones.
   *
   * @maxItems 16
   *
   * Items: One aspect of the state.
   */
  readonly conditions?: readonly Condition[];
  /**
   * Pods that each component has, by the one with the fewest; for autoscalers.
   */
  readonly replicas?: number;
  /**
   * Label selector of the pods, as text; for autoscalers.
   */
  readonly selector?: string;
  /**
   * What each component turned out to be, and the bridge of each MCP server.
   *
   * @maxItems 32
   */
  readonly components?: readonly ComponentStatus[];
}
/**
 * One component as observed.
 */
export interface ComponentStatus {
  /**
   * Name within the workload.
   */
  readonly name: string;
  /**
   * sha256 of the component's bytes.
   */
  readonly digest?: string;
  /**
   * The image with the digest that it was resolved to.
   */
  readonly resolved?: string;
  readonly fault?: ComponentFaultStatus;
  /**
   * Ready pods, by the code that they run. During a rollout there are two kinds.
   *
   * @maxItems 16
   */
  readonly pods?: readonly ReadyPodsStatus[];
  /**
   * Its allowed hosts, and whether they can be reached now.
   *
   * @maxItems 64
   */
  readonly egress?: readonly AllowedHostStatus[];
  /**
   * What it imports, and therefore all that it could use.
   *
   * @maxItems 256
   */
  readonly imports?: readonly string[];
  /**
   * How many functions are offered as tools.
   */
  readonly toolCount?: number;
  /**
   * The first hundred of them.
   *
   * @maxItems 100
   */
  readonly tools?: readonly OfferedFunctionStatus[];
  /**
   * Functions that are no tools, and why.
   *
   * @maxItems 100
   */
  readonly notOffered?: readonly NotOfferedFunctionStatus[];
}
/**
 * Why it is not known, or not run, as it is in the spec. What ran before still runs.
 */
export interface ComponentFaultStatus {
  /**
   * Why, as a stable word.
   */
  readonly reason: string;
  /**
   * Why, for a person, and what to do.
   */
  readonly message: string;
}
/**
 * The pods with one code.
 */
export interface ReadyPodsStatus {
  /**
   * sha256 of the component's bytes.
   */
  readonly digest: string;
  /**
   * How many are ready for calls.
   */
  readonly ready: number;
}
/**
 * One entry of `allowedHosts`.
 */
export interface AllowedHostStatus {
  /**
   * The entry, as written.
   */
  readonly host: string;
  /**
   * Where it may be dialled, the first sixteen; absent while it is closed.
   *
   * @maxItems 16
   */
  readonly addresses?: readonly string[];
  /**
   * How many there are.
   */
  readonly addressCount?: number;
  /**
   * What lets these packets out and no others; absent while it is closed.
   */
  readonly enforcedBy?: string;
  readonly notEnforcedBecause?: ClosedHostReason;
  /**
   * Since when it is open, or closed for this reason.
   */
  readonly since: string;
}
/**
 * Why it is closed; of an open entry, what part of it is.
 */
export interface ClosedHostReason {
  /**
   * Why, as a stable word.
   */
  readonly reason: string;
  /**
   * Why, for a person, and what to do.
   */
  readonly message: string;
}
/**
 * One offered function, or one tool that the component lists itself.
 */
export interface OfferedFunctionStatus {
  /**
   * Export id with its version; absent for a function of the world itself.
   */
  readonly interface?: string;
  /**
   * Name as in WIT.
   */
  readonly function?: string;
  /**
   * The name that an untyped tool is listed under.
   */
  readonly tool?: string;
  /**
   * Digest of its definition.
   */
  readonly definition: string;
}
/**
 * One function, or one listed tool, that is not offered.
 */
export interface NotOfferedFunctionStatus {
  /**
   * Export id with its version; absent for a function of the world itself.
   */
  readonly interface?: string;
  /**
   * Name as in WIT.
   */
  readonly function?: string;
  /**
   * The name that an untyped tool is listed under, as far as it is one.
   */
  readonly tool?: string;
  /**
   * Why, in a sentence.
   */
  readonly reason: string;
}
