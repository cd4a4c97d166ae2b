import type { PodObject } from "./cluster-objects.ts";
import type { Share } from "./counters.ts";

/** Labels of the catalogue's own pods, as the chart gives them. */
export const replicaSelector = "app.kubernetes.io/name=ambit,app.kubernetes.io/component=catalogue";

/**
 * Which replica this is among those that take calls, by the order of their names, so that each finds the same. `own` is the name of its pod, which counts whether it is ready or
 * not; one that is on its way out counts until it is no longer ready, since it finishes its calls.
 */
export const shareAmong = (pods: readonly PodObject[], own: string): Share => {
  const names = new Set(pods.filter(isReady).map(({ metadata }) => metadata.name));
  names.add(own);
  return { index: [...names].filter((name) => name < own).length, of: names.size };
};

const isReady = ({ status }: PodObject): boolean =>
  status?.conditions?.some((condition) => condition.type === "Ready" && condition.status === "True") ?? false;
