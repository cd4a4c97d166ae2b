import type { Sha256Digest } from "../../api/digest.ts";
import type { Workload, WorkloadSpec } from "../../api/generated/workload.ts";
import { podReachText } from "../../grants/reach.ts";
import { type GivenSource, givenSources, hopOf, type SandboxedComponent } from "../../grants/sandboxed-component.ts";
import { podUidVariable } from "../../host/pod-uid.ts";
import { hostLimits } from "../../manifests/quantities.ts";
import { componentLabels, hopPort, hostContainer, hostPort, joinedName, labels, podAnnotations, shortDigest } from "../names.ts";
import { givenPlace, hostPlaces } from "./host-config.ts";

/** Ambit's own image, in which hosts run. */
export interface HostImage {
  readonly image: string;
  readonly pullPolicy: "Always" | "IfNotPresent" | "Never";
  /** Names of secrets in the Workload's namespace. */
  readonly pullSecrets: readonly string[];
}

/** Unlike root and everybody's own user; the image's. */
const hostUser = 65532;

/** The catalogue hears within this time that a pod is on its way out, and sends it no more calls. */
const farewellSeconds = 5;
/** What a host takes to end besides the calls that it lets finish. */
const shutdownSeconds = 5;

/** What a host takes besides its instances: Node, what was compiled, results on their way. */
const hostMemory = 256;
const cacheSize = "1Gi";
const ephemeralSize = "1Gi";

/** What a pod runs: `watches` where its component has an instance that waits for changes besides those that serve calls. */
export interface Code {
  readonly digest: Sha256Digest;
  readonly watches: boolean;
}

/**
 * The pod of a component: satisfies the Pod Security Standard *restricted*, has no token, no service links, no DNS and nothing to write to but its cache and its volumes.
 */
export const podTemplate = (workload: Workload, component: SandboxedComponent, code: Code, configMap: string, host: HostImage): object => {
  const { pod = {} } = workload.spec;
  const hop = hopOf(component);
  return {
    metadata: {
      labels: {
        ...pod.labels,
        ...componentLabels(workload.metadata.name, component.name),
        [labels.digest]: shortDigest(code.digest),
      },
      annotations: {
        ...pod.annotations,
        "kubectl.kubernetes.io/default-container": hostContainer,
        [podAnnotations.timeout]: String(hostLimits(component.limits).timeoutMs),
        [podAnnotations.reach]: podReachText(workload.spec, component.name),
        ...(hop === null ? {} : { [podAnnotations.hop]: hop.end }),
      },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // A host resolves nothing, and this way it could not.
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["127.0.0.1"] },
      terminationGracePeriodSeconds: farewellSeconds + Math.ceil(hostLimits(component.limits).timeoutMs / 1000) + shutdownSeconds,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: hostUser,
        runAsGroup: hostUser,
        fsGroup: hostUser,
        seccompProfile: { type: "RuntimeDefault" },
      },
      ...(host.pullSecrets.length > 0 ? { imagePullSecrets: host.pullSecrets.map((name) => ({ name })) } : {}),
      ...placement(workload.spec),
      containers: [container(component, code, host)],
      volumes: [
        { name: "ambit-config", configMap: { name: configMap } },
        { name: "ambit-cache", emptyDir: { sizeLimit: cacheSize } },
        ...mountedVolumes(workload.spec, component),
        ...givenSources(component).map(givenVolume),
      ],
    },
  };
};

const placement = ({ pod = {} }: WorkloadSpec): object => {
  const { nodeSelector, tolerations, affinity, topologySpreadConstraints, runtimeClassName, priorityClassName } = pod;
  const written = { nodeSelector, tolerations, affinity, topologySpreadConstraints, runtimeClassName, priorityClassName };
  return Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
};

const container = (component: SandboxedComponent, code: Code, { image, pullPolicy }: HostImage): object => ({
  name: hostContainer,
  image,
  imagePullPolicy: pullPolicy,
  args: ["host", "--config", `${hostPlaces.config}/${hostPlaces.configFile}`],
  env: [{ name: podUidVariable, valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } }],
  ports: [
    { name: "calls", containerPort: hostPort, protocol: "TCP" },
    ...(component.serves === undefined ? [] : [{ name: "hop", containerPort: hopPort, protocol: "TCP" }]),
  ],
  // Ready once everything was delivered.
  readinessProbe: {
    httpGet: { path: "/readyz", port: "calls", scheme: "HTTPS" },
    periodSeconds: 1,
    timeoutSeconds: 2,
    failureThreshold: 3,
  },
  livenessProbe: {
    httpGet: { path: "/healthz", port: "calls", scheme: "HTTPS" },
    initialDelaySeconds: 5,
    periodSeconds: 10,
    timeoutSeconds: 5,
    failureThreshold: 6,
  },
  lifecycle: { preStop: { sleep: { seconds: farewellSeconds } } },
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  },
  resources: resourcesOf(component, code),
  volumeMounts: [
    { name: "ambit-config", mountPath: hostPlaces.config, readOnly: true },
    { name: "ambit-cache", mountPath: hostPlaces.cache },
    ...volumeMounts(component),
    // Whole folders: of a single file of one, kubelet would bring no change.
    ...givenSources(component).map((source) => ({ name: givenVolumeName(source), mountPath: givenPlace(source), readOnly: true })),
  ],
});

/** The memory limit has room for as many instances as run at once, each as large as it may become; what is asked for is what a host takes when nothing runs. */
const resourcesOf = ({ limits, resources }: SandboxedComponent, { watches }: Code): object => {
  const { memoryBytes, concurrency } = hostLimits(limits);
  const memory = hostMemory + Math.ceil(memoryBytes / 1024 ** 2) * (concurrency + (watches ? 1 : 0));
  return {
    requests: { cpu: "50m", memory: "128Mi", ...resources?.requests },
    limits: { cpu: String(Math.min(concurrency, 4)), memory: `${memory}Mi`, ...resources?.limits },
  };
};

/** Name of the pod's volume. */
export const givenVolumeName = ({ kind, name }: Pick<GivenSource, "kind" | "name">): string => joinedName(kind.toLowerCase(), name);

/** For the host's group to read, as `fsGroup` has it; nobody's to write. */
const givenMode = 0o440;

const givenVolume = (source: GivenSource): object => {
  const name = givenVolumeName(source);
  return source.kind === "Secret"
    ? { name, secret: { secretName: source.name, defaultMode: givenMode } }
    : { name, configMap: { name: source.name, defaultMode: givenMode } };
};

/** Names of a component's volumes, and whether it only reads them. */
const mountedNames = (component: SandboxedComponent): Map<string, boolean> => {
  const readOnly = new Map<string, boolean>();
  for (const mount of component.localResources?.volumeMounts ?? []) {
    readOnly.set(mount.name, mount.readOnly && (readOnly.get(mount.name) ?? true));
  }
  return readOnly;
};

/** A prefix keeps a person's names apart from ours. */
const volumeName = (name: string): string => joinedName("volume", name);

const volumeMounts = (component: SandboxedComponent): object[] =>
  [...mountedNames(component)].map(([name, readOnly]) => ({
    name: volumeName(name),
    mountPath: `${hostPlaces.volumes}/${name}`,
    readOnly,
  }));

const mountedVolumes = (spec: WorkloadSpec, component: SandboxedComponent): object[] => {
  const names = mountedNames(component);
  return (spec.volumes ?? [])
    .filter(({ name }) => names.has(name))
    .map(({ name, persistentVolumeClaim }) => ({
      name: volumeName(name),
      ...(persistentVolumeClaim
        ? { persistentVolumeClaim: { claimName: persistentVolumeClaim.claimName, readOnly: names.get(name) === true } }
        : { emptyDir: { sizeLimit: ephemeralSize } }),
    }));
};
