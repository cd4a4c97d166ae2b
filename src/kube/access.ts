import { type Clock, systemClock } from "./clock.ts";
import { type PodPlaces, podAccess, podPlaces } from "./pod-access.ts";

/** Where the API server is and how to be known to it. */
export interface ClusterAccess {
  readonly server: URL;
  /** The namespace that the configuration names, or `default`. */
  readonly namespace: string;
  /** Names an HTTP proxy to go through. */
  readonly proxy?: string;
  /** What a request carries now; `fresh` after the server did not accept what it carried last. Throws `Stalled` (`CredentialsUnusable`). */
  credentials(fresh?: boolean): Promise<Credentials>;
}

export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsOptions;
}

export interface TlsOptions {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface AccessOptions {
  /** A kubeconfig; by default what `$KUBECONFIG` names, else the pod's service account, else `~/.kube/config`. */
  readonly file?: string;
  readonly context?: string;
}

/**
 * Access to the cluster that this process runs in, or that a kubeconfig names. Throws `Stalled` (`KubeconfigUnusable`).
 *
 * What reads kubeconfigs is loaded only where there is one to read: see `podAccess`.
 */
export const loadAccess = async (
  options: AccessOptions = {},
  clock: Clock = systemClock,
  pod: PodPlaces = podPlaces,
): Promise<ClusterAccess> => {
  const isNamed = options.file !== undefined || options.context !== undefined || !!pod.environment.KUBECONFIG;
  const inPod = isNamed ? null : await podAccess(clock, pod);
  return inPod ?? (await import("./kubeconfig-access.ts")).kubeconfigAccess(clock, options);
};
