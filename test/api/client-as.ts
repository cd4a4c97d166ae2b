import { loadAccess } from "../../src/kube/access.ts";
import { ClusterClient } from "../../src/kube/client.ts";
import { systemClock } from "../../src/kube/clock.ts";
import { type MetricsRegistry, noMetrics } from "../../src/kube/metrics.ts";

/** A client of the kubeconfig's user, or as another user whom that one may impersonate. */
export const clientAs = async (kubeconfig: string, user?: string, metrics: MetricsRegistry = noMetrics): Promise<ClusterClient> => {
  const access = await loadAccess({ file: kubeconfig });
  const credentials: typeof access.credentials = async (fresh) => {
    const { headers, tls } = await access.credentials(fresh);
    return { headers: user === undefined ? headers : { ...headers, "impersonate-user": user }, tls };
  };
  return new ClusterClient({
    access: { ...access, credentials },
    clock: systemClock,
    random: Math.random,
    userAgent: "ambit-test",
    metrics,
  });
};
