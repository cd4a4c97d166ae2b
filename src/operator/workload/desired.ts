import type { Workload } from "../../api/generated/workload.ts";
import type { SandboxedComponent } from "../../grants/sandboxed-component.ts";
import type { Desired } from "../../kube/apply.ts";
import { ambitNamespace, componentLabels, componentObjectName, hostPort, labels, managedByAmbit, operatorPods } from "../names.ts";
import { configHash, hostConfigText, hostPlaces } from "./host-config.ts";
import { type Code, type HostImage, podTemplate } from "./pod-template.ts";

/** What is the same for all hosts of a cluster. */
export interface HostSettings extends HostImage {
  /** The operator's root public key, SPKI DER in base64. */
  readonly rootKey: string;
}

/** The objects of one component, in the order in which they are applied. */
export interface ComponentObjects {
  /** Never changes: another configuration is another ConfigMap. */
  readonly configMap: Desired;
  readonly service: Desired;
  readonly deployment: Desired;
  /** Null for at most one pod, which a budget would only keep from being moved. */
  readonly disruptionBudget: Desired | null;
}

/** Of one component that runs this code. `replicas` may be less than the spec asks for: none while it is suspended. */
export const componentObjects = (
  workload: Workload,
  component: SandboxedComponent,
  code: Code,
  replicas: number,
  settings: HostSettings,
): ComponentObjects => {
  const ownLabels = componentLabels(workload.metadata.name, component.name);
  const name = componentObjectName(workload.metadata.name, component.name);
  const metadata = { name, namespace: workload.metadata.namespace ?? "default", labels: ownLabels };
  const config = hostConfigText(component, code.digest, settings.rootKey);
  const configName = `${name}-${configHash(config)}`;
  return {
    configMap: { metadata: { ...metadata, name: configName }, immutable: true, data: { [hostPlaces.configFile]: config } },
    // Headless: it balances nothing, since each call is for one pod.
    service: {
      metadata,
      spec: {
        clusterIP: "None",
        selector: ownLabels,
        ports: [{ name: "calls", port: hostPort, targetPort: "calls", protocol: "TCP" }],
      },
    },
    deployment: {
      metadata,
      spec: {
        replicas,
        revisionHistoryLimit: 0,
        progressDeadlineSeconds: 600,
        selector: { matchLabels: ownLabels },
        // No pod goes before another is ready in its place.
        strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        template: podTemplate(workload, component, code, configName, settings),
      },
    },
    disruptionBudget:
      replicas > 1
        ? { metadata, spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow", selector: { matchLabels: ownLabels } } }
        : null,
  };
};

/** Name of the policy that stands before every sandbox of a namespace. */
export const sandboxPolicyName = "ambit-sandboxes";

/**
 * Selects every pod of Ambit's in a namespace: nothing goes out, and nothing comes in but from the operator. What a component may reach, and who calls it, is added by a policy of its own. It is
 * nobody's child, since all Workloads of the namespace need it.
 */
export const sandboxPolicy = (namespace: string, ambit: string = ambitNamespace): Desired => ({
  metadata: { name: sandboxPolicyName, namespace, labels: { [labels.managedBy]: managedByAmbit } },
  spec: {
    podSelector: { matchLabels: { [labels.managedBy]: managedByAmbit }, matchExpressions: [{ key: labels.component, operator: "Exists" }] },
    policyTypes: ["Ingress", "Egress"],
    ingress: [
      {
        from: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": ambit } }, podSelector: operatorPods }],
        ports: [{ port: hostPort, protocol: "TCP" }],
      },
    ],
  },
});
