import { clusterAddresses } from "./control-plane.ts";

export const corednsImage = "localhost/coredns:test";

/** Nothing is cached, so that a name that a test changes has changed. */
const corefile = `.:53 {
    errors
    ready
    kubernetes cluster.local in-addr.arpa {
        ttl 2
    }
    forward . ${clusterAddresses.world}
}
`;

const labels = { "k8s-app": "kube-dns" };
const metadata = { name: "coredns", namespace: "kube-system" };

interface Manifest {
  readonly path: string;
  readonly object: object;
}

/** The cluster's DNS as other clusters have it: pods labelled `k8s-app: kube-dns` in kube-system behind the Service `kube-dns`. */
export const clusterDns: readonly Manifest[] = [
  { path: "/api/v1/namespaces/kube-system/serviceaccounts/coredns", object: { apiVersion: "v1", kind: "ServiceAccount", metadata } },
  {
    path: "/apis/rbac.authorization.k8s.io/v1/clusterroles/coredns",
    object: {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "coredns" },
      rules: [
        { apiGroups: [""], resources: ["endpoints", "services", "pods", "namespaces"], verbs: ["list", "watch"] },
        { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
      ],
    },
  },
  {
    path: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/coredns",
    object: {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "coredns" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "coredns" },
      subjects: [{ kind: "ServiceAccount", ...metadata }],
    },
  },
  {
    path: "/api/v1/namespaces/kube-system/configmaps/coredns",
    object: { apiVersion: "v1", kind: "ConfigMap", metadata, data: { Corefile: corefile } },
  },
  {
    path: "/api/v1/namespaces/kube-system/services/kube-dns",
    object: {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "kube-dns", namespace: "kube-system", labels },
      spec: {
        clusterIP: clusterAddresses.dnsService,
        selector: labels,
        ports: [
          { name: "dns", protocol: "UDP", port: 53 },
          { name: "dns-tcp", protocol: "TCP", port: 53 },
        ],
      },
    },
  },
  {
    path: "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
    object: {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { ...metadata, labels },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: "coredns",
            priorityClassName: "system-cluster-critical",
            dnsPolicy: "Default",
            volumes: [{ name: "config", configMap: { name: "coredns" } }],
            containers: [
              {
                name: "coredns",
                image: corednsImage,
                imagePullPolicy: "Never",
                args: ["-conf", "/etc/coredns/Corefile"],
                volumeMounts: [{ name: "config", mountPath: "/etc/coredns", readOnly: true }],
                ports: [
                  { name: "dns", protocol: "UDP", containerPort: 53 },
                  { name: "dns-tcp", protocol: "TCP", containerPort: 53 },
                ],
                readinessProbe: { httpGet: { path: "/ready", port: 8181 }, periodSeconds: 1 },
              },
            ],
          },
        },
      },
    },
  },
];
