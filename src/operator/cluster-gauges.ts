import type { MetricsRegistry } from "../kube/metrics.ts";
import type { OperatorStores } from "./context.ts";

/**
 * Counts Workloads by condition and grants by phase at each reading. Only who leads tells them, so that a sum over replicas is no multiple; its view is the one that counts.
 */
export const gaugeCluster = (
  metrics: MetricsRegistry,
  stores: Pick<OperatorStores, "workloads" | "toolGrants">,
  isLeading: () => boolean,
): void => {
  const conditions = metrics.gauge({
    name: "ambit_workload_conditions",
    help: "Workloads that have this condition with this status and reason; told by the leader.",
    labels: ["namespace", "type", "status", "reason"],
  });
  const phases = metrics.gauge({
    name: "ambit_toolgrants",
    help: "ToolGrants by phase; told by the leader.",
    labels: ["namespace", "phase"],
    collect: () => {
      conditions.clear();
      phases.clear();
      if (!isLeading()) return;
      const workloads = stores.workloads
        .list()
        .flatMap(({ metadata: { namespace = "" }, status }) =>
          (status?.conditions ?? []).map(({ type, status: holds, reason }) => ({ namespace, type, status: holds, reason })),
        );
      for (const [labels, count] of counted(workloads)) conditions.set(labels, count);
      const grants = stores.toolGrants
        .list()
        .map(({ metadata: { namespace = "" }, status }) => ({ namespace, phase: status?.phase ?? "Unknown" }));
      for (const [labels, count] of counted(grants)) phases.set(labels, count);
    },
  });
};

const counted = <T extends Readonly<Record<string, string>>>(all: readonly T[]): Iterable<[T, number]> => {
  const found = new Map<string, [T, number]>();
  for (const labels of all) {
    const key = JSON.stringify(labels);
    const known = found.get(key);
    if (known) known[1]++;
    else found.set(key, [labels, 1]);
  }
  return found.values();
};
