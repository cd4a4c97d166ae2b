import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import { messageOf, Stalled } from "../api/errors.ts";
import { type Clock, systemClock } from "./clock.ts";

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

/** Tokens and certificates on disk are replaced while we run; they are read again as often. */
const credentialsHoldMs = 10_000;

/**
 * Reads the configuration as kubectl does: the file named, or `$KUBECONFIG`, `~/.kube/config`, or the service account of the pod. Throws `Stalled`
 * (`KubeconfigUnusable`).
 */
export const loadAccess = ({
  file,
  context,
  clock = systemClock,
}: {
  file?: string;
  context?: string;
  clock?: Clock;
} = {}): ClusterAccess => {
  const config = new KubeConfig();
  const source = file ?? "the kubeconfig";
  try {
    if (file === undefined) config.loadFromDefault();
    else config.loadFromFile(file);
    if (context !== undefined) config.setCurrentContext(context);
  } catch (thrown) {
    throw new Stalled("KubeconfigUnusable", `${source} cannot be read: ${messageOf(thrown)}`, { cause: thrown });
  }
  if (isGuess(config)) {
    throw new Stalled(
      "KubeconfigUnusable",
      "no kubeconfig was found and this is no pod; name one in $KUBECONFIG, or put it where kubectl looks: ~/.kube/config",
    );
  }
  return accessOf(config, source, clock);
};

/** What client-node makes up when it finds nothing. */
const isGuess = (config: KubeConfig): boolean =>
  config.getCurrentContext() === "loaded-context" && config.getCurrentCluster()?.server === "http://localhost:8080";

/** Access by a configuration of client-node; `source` names it in errors. Throws `Stalled` (`KubeconfigUnusable`). */
export const accessOf = (config: KubeConfig, source: string, clock: Clock = systemClock): ClusterAccess => {
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new Stalled(
      "KubeconfigUnusable",
      `${source} names no cluster for its context ${JSON.stringify(config.getCurrentContext() ?? "")}`,
    );
  }
  if (!URL.canParse(cluster.server))
    throw new Stalled("KubeconfigUnusable", `${source} gives ${cluster.server} as server, which is no URL`);
  const proxy = cluster.proxyUrl;
  if (proxy !== undefined && !/^https?:/.test(proxy)) {
    throw new Stalled("KubeconfigUnusable", `${source} asks for the proxy ${proxy}; only http and https proxies are supported`);
  }
  let kept: { readonly credentials: Credentials; readonly at: number } | undefined;
  const credentials = async (fresh = false): Promise<Credentials> => {
    if (!fresh && kept !== undefined && clock.elapsed() - kept.at < credentialsHoldMs) return kept.credentials;
    const options: RequestOptions = {};
    try {
      await config.applyToHTTPSOptions(options);
    } catch (thrown) {
      throw new Stalled("CredentialsUnusable", `the credentials that ${source} names cannot be had: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
    kept = { credentials: credentialsOf(options), at: clock.elapsed() };
    return kept.credentials;
  };
  return {
    server: new URL(cluster.server),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? "default",
    ...(proxy === undefined ? {} : { proxy }),
    credentials,
  };
};

const credentialsOf = ({ headers = {}, auth, ca, cert, key, servername, rejectUnauthorized }: RequestOptions): Credentials => {
  const sent: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) sent[name.toLowerCase()] = String(value);
  if (auth) sent.authorization ??= `Basic ${Buffer.from(auth).toString("base64")}`;
  return {
    headers: sent,
    tls: {
      ...(ca === undefined ? {} : { ca: ca as string | Buffer }),
      ...(cert === undefined ? {} : { cert: cert as string | Buffer }),
      ...(key === undefined ? {} : { key: key as string | Buffer }),
      ...(servername === undefined ? {} : { servername }),
      ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    },
  };
};
