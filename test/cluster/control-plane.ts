import type { Credentials } from "./credentials.ts";

/** Addresses inside a test cluster, the same in every one: none of them leaves its network namespace. */
export const clusterAddresses = {
  services: "10.96.0.0/16",
  /** Of the Service `kubernetes`: the first of the range. */
  apiService: "10.96.0.1",
  dnsService: "10.96.0.10",
  pods: "10.244.0.0/16",
  nodePods: "10.244.0.0/24",
  node: "10.99.0.1",
  /** Where the node's default route leads. */
  world: "10.99.0.254",
} as const;

/** Every name under which a client may reach an API server's certificate. */
export const certificateNames: readonly string[] = [
  ...["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"].map(
    (name) => `DNS:${name}`,
  ),
  ...["127.0.0.1", clusterAddresses.apiService, clusterAddresses.node].map((address) => `IP:${address}`),
];

export interface EtcdPorts {
  readonly client: number;
  readonly peer: number;
}

/** etcd for as long as a test lasts: what is lost with the machine may be lost. */
export const etcdArguments = (folder: string, { client, peer }: EtcdPorts): string[] => [
  `--data-dir=${folder}`,
  `--listen-client-urls=http://127.0.0.1:${client}`,
  `--advertise-client-urls=http://127.0.0.1:${client}`,
  `--listen-peer-urls=http://127.0.0.1:${peer}`,
  `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
  `--initial-cluster=default=http://127.0.0.1:${peer}`,
  "--unsafe-no-fsync",
  "--log-level=warn",
];

export interface ApiServerOptions {
  readonly credentials: Credentials;
  /** Folder for what it writes by itself. */
  readonly folder: string;
  readonly etcdPort: number;
  readonly port: number;
  readonly listen: string;
  readonly advertise: string;
  /** Where it notes what ServiceAccounts ask of it, and by which policy. */
  readonly audit?: { readonly policy: string; readonly log: string };
}

/** Who asked for what, and what it came to; no bodies. Of ServiceAccounts alone: the node's own parts and the tests ask for much more. */
export const auditPolicy = JSON.stringify({
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived", "ResponseStarted"],
  rules: [{ level: "Metadata", userGroups: ["system:serviceaccounts"] }, { level: "None" }],
});

/** An API server that knows service accounts, RBAC and admission, as in production. */
export const apiServerArguments = ({ credentials, folder, etcdPort, port, listen, advertise, audit }: ApiServerOptions): string[] => [
  `--etcd-servers=http://127.0.0.1:${etcdPort}`,
  `--bind-address=${listen}`,
  `--advertise-address=${advertise}`,
  `--secure-port=${port}`,
  `--cert-dir=${folder}`,
  `--tls-cert-file=${credentials.certificate}`,
  `--tls-private-key-file=${credentials.key}`,
  `--token-auth-file=${credentials.tokens}`,
  "--authorization-mode=Node,RBAC",
  "--service-account-issuer=https://kubernetes.default.svc",
  "--api-audiences=https://kubernetes.default.svc",
  `--service-account-signing-key-file=${credentials.serviceAccountKey}`,
  `--service-account-key-file=${credentials.serviceAccountPublicKey}`,
  `--service-cluster-ip-range=${clusterAddresses.services}`,
  // The node's name is in no DNS.
  "--kubelet-preferred-address-types=InternalIP",
  "--allow-privileged=true",
  "--profiling=false",
  ...(audit
    ? [`--audit-policy-file=${audit.policy}`, `--audit-log-path=${audit.log}`, "--audit-log-maxsize=256", "--audit-log-maxbackup=1"]
    : []),
];
