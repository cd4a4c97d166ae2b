import { type ConvergeTiming, defaultConvergeTiming, defaultRouteLimit } from "../../egress/address-table.ts";
import { defaultEgressRules, type EgressRules } from "../../egress/intent.ts";
import { defaultNameTiming, type NameTiming } from "../../egress/name-addresses.ts";

/** What an installation decides about egress. */
export interface EgressSettings {
  readonly rules: EgressRules;
  readonly names: NameTiming;
  readonly converge: ConvergeTiming;
  /** Most addresses of one component. */
  readonly routeLimit: number;
  /** Name servers in place of the system's. */
  readonly nameServers: readonly string[];
}

export const defaultEgressSettings: EgressSettings = {
  rules: defaultEgressRules,
  names: defaultNameTiming,
  converge: defaultConvergeTiming,
  routeLimit: defaultRouteLimit,
  nameServers: [],
};
