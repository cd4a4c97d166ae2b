import { type ConvergeTiming, defaultConvergeTiming, defaultRouteLimit } from "../../egress/address-table.ts";
import { defaultEgressRules, type EgressRules } from "../../egress/intent.ts";
import { defaultNameTiming, type NameTiming } from "../../egress/name-addresses.ts";
import type { PodSource } from "../../egress/network-policy.ts";

/** What an installation decides about egress. */
export interface EgressSettings {
  readonly rules: EgressRules;
  readonly names: NameTiming;
  readonly converge: ConvergeTiming;
  /** Most addresses of one component. */
  readonly routeLimit: number;
  /** Name servers in place of the system's. */
  readonly nameServers: readonly string[];
  /** Labels of the pods of Ambit, in its own namespace, that may connect to hosts. */
  readonly callers: readonly Readonly<Record<string, string>>[];
}

export const defaultEgressSettings: EgressSettings = {
  rules: defaultEgressRules,
  names: defaultNameTiming,
  converge: defaultConvergeTiming,
  routeLimit: defaultRouteLimit,
  nameServers: [],
  callers: ["operator", "catalogue"].map((component) => ({
    "app.kubernetes.io/name": "ambit",
    "app.kubernetes.io/component": component,
  })),
};

/** The same pods as a policy names them. */
export const callersIn = (namespace: string, { callers }: EgressSettings): readonly PodSource[] =>
  callers.map((labels) => ({ namespace, labels }));
