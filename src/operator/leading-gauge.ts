import type { ElectionEvent } from "../kube/leader-election.ts";
import type { MetricsRegistry } from "../kube/metrics.ts";

/** Whether this replica leads, under client-go's name for it; `name` is the lease's. */
export const leadingGauge = (metrics: MetricsRegistry, name: string) => {
  const status = metrics.gauge({
    name: "leader_election_master_status",
    help: "1 for the replica that leads, else 0.",
    labels: ["name"],
  });
  let isLeading = false;
  const tell = (leads: boolean): void => {
    isLeading = leads;
    status.set({ name }, leads ? 1 : 0);
  };
  tell(false);
  return {
    get isLeading() {
      return isLeading;
    },
    hear: ({ type }: ElectionEvent): void => {
      if (type !== "trouble") tell(type === "leading");
    },
  };
};
