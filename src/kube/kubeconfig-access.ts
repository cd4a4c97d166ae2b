import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import { messageOf, Stalled } from "../api/errors.ts";
import type { AccessOptions, ClusterAccess, Credentials } from "./access.ts";
import type { Clock } from "./clock.ts";
import { held } from "./held-credentials.ts";

/** Access by the kubeconfig named, or the one that kubectl would take. Throws `Stalled` (`KubeconfigUnusable`). */
export const kubeconfigAccess = (clock: Clock, { file, context }: AccessOptions): ClusterAccess => {
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
const accessOf = (config: KubeConfig, source: string, clock: Clock): ClusterAccess => {
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
  const credentials = async (): Promise<Credentials> => {
    const options: RequestOptions = {};
    try {
      await config.applyToHTTPSOptions(options);
    } catch (thrown) {
      throw new Stalled("CredentialsUnusable", `the credentials that ${source} names cannot be had: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
    return credentialsOf(options);
  };
  return {
    server: new URL(cluster.server),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? "default",
    ...(proxy === undefined ? {} : { proxy }),
    credentials: held(clock, credentials),
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
