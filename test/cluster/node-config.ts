import { join } from "node:path";
import { stringify } from "yaml";
import { clusterAddresses } from "./control-plane.ts";
import type { NodePlaces } from "./places.ts";

/** The name of the one node. */
export const nodeName = "node";

/** The image of the process that holds a pod's namespaces. */
export const pauseImage = "localhost/pause:1";

export const containerdSocket = ({ run }: NodePlaces): string => join(run, "containerd.sock");

export interface ContainerdChoices {
  readonly cniFolder: string;
  /** `native` copies whole file systems, where overlays can't be stacked. */
  readonly snapshotter: "overlayfs" | "native";
}

export const containerdConfig = (places: NodePlaces, { cniFolder, snapshotter }: ContainerdChoices): string => `version = 3
root = "${places.state}/containerd"
state = "${places.run}/containerd"

[grpc]
  address = "${containerdSocket(places)}"
[ttrpc]
  address = "${containerdSocket(places)}.ttrpc"

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "${snapshotter}"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "${pauseImage}"

[plugins.'io.containerd.cri.v1.runtime']
  # Root without CAP_SYS_RESOURCE may not lower the score, and the sandbox would die with "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["${cniFolder}"]
  conf_dir = "${places.state}/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
`;

/**
 * Pods on one bridge, nothing masqueraded: whoever is reached sees the pod's own address. Pods have IPv4 alone, as the cluster: kube-router heeds none of the link-local addresses of IPv6 that
 * every interface gets by itself, by which pods of one node would reach each other past every policy.
 */
export const cniConfig = (places: NodePlaces): string =>
  JSON.stringify({
    cniVersion: "1.0.0",
    name: "pods",
    plugins: [
      {
        type: "bridge",
        bridge: "pods0",
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: join(places.state, "cni-addresses"),
          ranges: [[{ subnet: clusterAddresses.nodePods }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "tuning", sysctl: { "net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1" } },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  });

export const kubeletConfig = (places: NodePlaces): string =>
  stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    cgroupDriver: "cgroupfs",
    // A kubelet removes pods' control groups that it does not know: another node's, if they shared a root.
    cgroupRoot: `/${places.name}`,
    // How soon pods see another value of a Secret: a minute by default, which a test would wait for.
    syncFrequency: "10s",
    failCgroupV1: false,
    failSwapOn: false,
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    containerRuntimeEndpoint: `unix://${containerdSocket(places)}`,
    clusterDNS: [clusterAddresses.dnsService],
    clusterDomain: "cluster.local",
    resolvConf: join(places.state, "resolv.conf"),
    podCIDR: clusterAddresses.nodePods,
    podLogsDir: join(places.state, "pod-logs"),
    // The machine's disk is not the node's own: its pods shall not be evicted since something else fills it.
    evictionHard: { "imagefs.available": "1%", "nodefs.available": "1%", "memory.available": "100Mi" },
    imageGCHighThresholdPercent: 100,
  });

/** What each daemon of Kubernetes is started with; all of them speak to the API server as its admin. */
export const kubernetesArguments = (places: NodePlaces, kubeconfig: string, serviceAccountKey: string, certificate: string) => ({
  "kube-controller-manager": [
    `--kubeconfig=${kubeconfig}`,
    `--service-account-private-key-file=${serviceAccountKey}`,
    `--root-ca-file=${certificate}`,
    "--use-service-account-credentials",
    `--cluster-cidr=${clusterAddresses.pods}`,
    "--allocate-node-cidrs=true",
    "--leader-elect=false",
    `--cert-dir=${join(places.state, "controller-manager")}`,
  ],
  "kube-scheduler": [`--kubeconfig=${kubeconfig}`, "--leader-elect=false", `--cert-dir=${join(places.state, "scheduler")}`],
  kubelet: [
    `--kubeconfig=${kubeconfig}`,
    `--config=${join(places.state, "kubelet.yaml")}`,
    `--root-dir=${join(places.state, "kubelet")}`,
    `--cert-dir=${join(places.state, "kubelet-pki")}`,
    `--hostname-override=${nodeName}`,
    `--node-ip=${clusterAddresses.node}`,
  ],
  "kube-proxy": [
    `--kubeconfig=${kubeconfig}`,
    "--proxy-mode=nftables",
    `--cluster-cidr=${clusterAddresses.pods}`,
    `--hostname-override=${nodeName}`,
    // The machine's connection table is not ours to size.
    "--conntrack-max-per-core=0",
    "--conntrack-min=0",
  ],
  // Only what enforces NetworkPolicies. The one of Kubernetes' SIG needs a queue in the kernel that not every machine has.
  "kube-router": [
    `--kubeconfig=${kubeconfig}`,
    "--run-firewall=true",
    "--run-router=false",
    "--run-service-proxy=false",
    `--hostname-override=${nodeName}`,
    `--service-cluster-ip-range=${clusterAddresses.services}`,
  ],
});

/** Names of the world, as the tests write them into a hosts file; whatever is not in it does not exist. */
export const worldCorefile = (hosts: string): string => `.:53 {
    bind ${clusterAddresses.world}
    errors
    hosts ${hosts} {
        ttl 2
        reload 1s
        no_reverse
    }
}
`;
