import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { messageOf, Stalled } from "../api/errors.ts";
import type { ClusterAccess, Credentials } from "./access.ts";
import type { Clock } from "./clock.ts";
import { held } from "./held-credentials.ts";

export interface PodPlaces {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where the kubelet mounts the service account's token. */
  readonly folder: string;
}

export const podPlaces: PodPlaces = { environment: process.env, folder: "/var/run/secrets/kubernetes.io/serviceaccount" };

/**
 * Access as the service account of the pod that this process runs in; null where it runs in none.
 *
 * Written here since a pod's way in is two files and two variables, while client-node, which knows all the others, costs some 85 MB and a second at each start.
 */
export const podAccess = async (clock: Clock, { environment, folder }: PodPlaces = podPlaces): Promise<ClusterAccess | null> => {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  const read = (name: string): Promise<string> => readFile(join(folder, name), "utf8");
  const isThere = await read("token").then(
    () => true,
    () => false,
  );
  if (!host || !port || !isThere) return null;
  const credentials = async (): Promise<Credentials> => {
    try {
      const [token, ca] = await Promise.all([read("token"), read("ca.crt")]);
      return { headers: { authorization: `Bearer ${token.trim()}` }, tls: { ca } };
    } catch (thrown) {
      throw new Stalled("CredentialsUnusable", `the pod's service account cannot be read from ${folder}: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
  };
  return {
    server: new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`),
    namespace: (await read("namespace").catch(() => "")).trim() || "default",
    credentials: held(clock, credentials),
  };
};
