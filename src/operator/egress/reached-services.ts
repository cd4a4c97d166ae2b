import type { ServiceView, SliceView } from "../../egress/service-routes.ts";
import { Informer } from "../../kube/informer.ts";
import { type ClusterObject, keyText, type ResourceType } from "../../kube/object.ts";
import { services } from "../../kube/resource-types.ts";
import type { Store } from "../../kube/store.ts";
import type { OperatorContext } from "../context.ts";

export type ReachedService = ClusterObject & ServiceView;
export type ReachedSlice = ClusterObject & SliceView;

const slices: ResourceType = {
  group: "discovery.k8s.io",
  version: "v1",
  kind: "EndpointSlice",
  plural: "endpointslices",
  namespaced: true,
};

const serviceName = "kubernetes.io/service-name";
/** The endpoint slice controller's, on slices of Services without an address of their own. */
const headlessOnly = "service.kubernetes.io/headless";

/** The Services of the cluster, and the pods' addresses of those that have none of their own. */
export interface ReachedServices {
  readonly services: Store<ReachedService>;
  readonly slices: Store<ReachedSlice>;
  readonly isSynced: boolean;
  readonly synced: Promise<unknown>;
  slicesOf(namespace: string, service: string): readonly ReachedSlice[];
  run(signal: AbortSignal): Promise<void>;
}

export const reachedServices = ({
  client,
  clock,
  random,
  log,
  metrics,
}: Pick<OperatorContext, "client" | "clock" | "random" | "log" | "metrics">): ReachedServices => {
  const common = { client, clock, random, metrics };
  const trouble =
    (kind: string) =>
    ({ error, next, inMs }: { readonly error: unknown; readonly next: string; readonly inMs: number }): void =>
      log({ message: "watching failed", kind, error, next, inMs });
  const service = new Informer<ReachedService>({ ...common, type: services, trim: trimmedService, onTrouble: trouble("Service") });
  const slice = new Informer<ReachedSlice>({
    ...common,
    type: slices,
    selection: { labelSelector: headlessOnly },
    indexes: { service: serviceOfSlice },
    onTrouble: trouble("EndpointSlice"),
  });
  return {
    services: service.store,
    slices: slice.store,
    get isSynced() {
      return service.isSynced && slice.isSynced;
    },
    synced: Promise.all([service.synced, slice.synced]),
    slicesOf: (namespace, name) => slice.store.find("service", keyText({ namespace, name })),
    run: async (signal) => void (await Promise.all([service.run(signal), slice.run(signal)])),
  };
};

/** `namespace/name` of the Service that a slice belongs to. */
export const serviceOfSlice = ({ metadata }: ClusterObject): string[] => {
  const service = metadata.labels?.[serviceName];
  return service === undefined ? [] : [`${metadata.namespace ?? ""}/${service}`];
};

/** A cluster may have thousands; only these fields decide. */
const trimmedService = ({ apiVersion, kind, metadata, spec }: ReachedService): ReachedService => {
  const { name, namespace = "", uid = "", resourceVersion = "", labels = {} } = metadata;
  const { type = "ClusterIP", selector = null, clusterIP = "", clusterIPs = [], ports = [] } = spec ?? {};
  return {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    metadata: { name, namespace, uid, resourceVersion, labels },
    spec: { type, selector, clusterIP, ...(clusterIPs.length > 0 ? { clusterIPs } : {}), ports },
  };
};
