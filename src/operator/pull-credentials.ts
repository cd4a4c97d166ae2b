import { Stalled } from "../api/errors.ts";
import type { Workload, WorkloadComponent } from "../api/generated/workload.ts";
import { ApiError } from "../kube/api-error.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { ClusterObject } from "../kube/object.ts";
import { secrets } from "../kube/resource-types.ts";
import { anonymous, parseDockerConfig, type RegistryCredentials } from "../oci/docker-config.ts";

interface PullSecret extends ClusterObject {
  readonly type?: string;
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>;
}

const type = "kubernetes.io/dockerconfigjson";
const entry = ".dockerconfigjson";

/**
 * What a component's pull secret holds, read by its name for each pull: it is never kept, and a changed one counts at once. Throws `Stalled` (`PullSecretMissing`,
 * `PullSecretForbidden`, `PullSecretUnusable`), `Invalid` (`DockerConfigInvalid`) and as requests do.
 */
export const pullCredentials =
  (client: Pick<ClusterClient, "get">) =>
  async (workload: Workload, component: WorkloadComponent): Promise<RegistryCredentials> => {
    const name = component.imagePullSecret?.name;
    if (name === undefined) return anonymous;
    const namespace = workload.metadata.namespace ?? "default";
    const secret = await client.get<PullSecret>(secrets, { namespace, name }).catch((thrown: unknown) => {
      throw missing(thrown, `${namespace}/${name}`);
    });
    const text = secret.data?.[entry];
    if (secret.type !== type || text === undefined) {
      throw new Stalled(
        "PullSecretUnusable",
        `the secret ${namespace}/${name} is no pull secret: make one of the type ${type} with the entry ${entry}`,
      );
    }
    return parseDockerConfig(Buffer.from(text, "base64").toString("utf8"));
  };

const missing = (thrown: unknown, name: string): unknown => {
  const status = thrown instanceof ApiError ? thrown.status : 0;
  if (status === 404) return new Stalled("PullSecretMissing", `there is no secret ${name} to pull with: make it`, { cause: thrown });
  if (status !== 403) return thrown;
  return new Stalled("PullSecretForbidden", `the operator may not read the secret ${name}: name it in the chart's pullSecrets`, {
    cause: thrown,
  });
};
