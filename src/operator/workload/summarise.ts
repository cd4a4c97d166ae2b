import { isSha256Digest, type Sha256Digest } from "../../api/digest.ts";
import type { ComponentStatus, OfferedFunctionStatus, WorkloadStatus } from "../../api/generated/workload.ts";
import { isUntyped, type ToolDefinition, untypedInterface } from "../../api/untyped.ts";
import { definitionDigest } from "../../grants/definition.ts";
import { revealed } from "../../grants/hidden-characters.ts";
import { type ConditionNow, withTransitions } from "../conditions.ts";
import type { Pod } from "../kinds.ts";
import { labels, managedByAmbit, podAnnotations, shortDigest } from "../names.ts";
import type { ListingFault } from "../tool-listings.ts";
import { isReady } from "../toolgrant/observe.ts";
import type { AppliedPlan } from "./apply.ts";
import { deploymentOf, isRolledOut, type Plan } from "./decide.ts";
import { type Fault, isFault, isRun, type KnownComponent, type Seen, type SeenComponent } from "./gather.ts";

/** What other controllers know of a component. */
export interface FromOthers {
  /** The entries of `allowedHosts`, as the resolver has them. */
  readonly egress: (component: string, before: NonNullable<ComponentStatus["egress"]>) => NonNullable<ComponentStatus["egress"]>;
  /** Why the component's policy could not be applied. */
  readonly egressFault: (component: string) => { readonly reason: string; readonly message: string } | undefined;
  /** Whether its policy is in force, as its hosts found. */
  readonly enforcement: (component: string) => Pick<ConditionNow, "status" | "reason" | "message">;
}

/** How one component is. `stalled` needs a person; `progressing` needs time. */
type Health =
  | { readonly kind: "serving" | "idle"; readonly message: string; readonly fault?: ListingFault }
  | { readonly kind: "progressing" | "stalled"; readonly reason: string; readonly message: string };

/** Bounds of the schema. */
const listed = { tools: 100, notOffered: 100, imports: 256, message: 2048, reason: 1024, pods: 16 } as const;

/** The status of a Workload; `now` is ISO 8601 in seconds. Pure. */
export const statusOf = (seen: Seen, plan: Plan, applied: AppliedPlan, others: FromOthers, now: string): WorkloadStatus => {
  const { metadata, status: before, spec } = seen.workload;
  const healths = seen.components.map((one) => ({
    name: one.component.name,
    health: healthOf(seen, one, plan, applied, others),
  }));
  const known = before?.conditions ?? [];
  const conditions = [...conditionsOf(spec.suspend, plan, healths, known), ...enforcedCondition(plan, others, known)];
  return {
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
    conditions: withTransitions(conditions, known, metadata.generation, now),
    replicas: Math.min(
      ...(plan.components.length > 0 ? plan.components.map(({ name }) => deploymentOf(seen, name)?.status?.replicas ?? 0) : [0]),
    ),
    selector: `${labels.managedBy}=${managedByAmbit},${labels.workload}=${metadata.name}`,
    components: seen.components.map((one) => componentStatus(seen, one, healths, others)),
  };
};

const healthOf = (seen: Seen, one: SeenComponent, plan: Plan, applied: AppliedPlan, others: FromOthers): Health => {
  const { name } = one.component;
  if (isFault(one.found)) return fromFault(one.found);
  const result = applied.get(name);
  if (result && "fault" in result) return fromFault(result.fault);
  if (!isRun(one.component, one.found)) return { kind: "idle", message: "none of its functions is offered as a tool, so it does not run" };
  const planned = plan.components.find((component) => component.name === name);
  if (!planned) return { kind: "progressing", reason: "Pending", message: "it was not looked at yet" };
  const egressFault = others.egressFault(name);
  if (egressFault) return { kind: "stalled", ...egressFault };
  const rollout = rolloutOf(seen, name, one.found.stored.digest, planned.replicas, result?.deployment.metadata.generation);
  return rollout.kind === "serving" ? listingOf(one.found, rollout.message) : rollout;
};

/** Pods that serve are of no use while nobody knows which tools they have; those that were known are called on, for a while. */
const listingOf = ({ listing, listingFault: fault }: KnownComponent, serving: string): Health => {
  if (fault === undefined) return { kind: "serving", message: serving };
  const why = revealed(fault.message);
  if (listing === "known") return { kind: "serving", message: `${serving}, by the list of tools of before: ${why}`, fault };
  return { kind: "progressing", reason: fault.code, message: `its tools can't be listed: ${why}` };
};

const fromFault = ({ reason, message, passing }: Fault): Health => ({ kind: passing ? "progressing" : "stalled", reason, message });

const rolloutOf = (seen: Seen, name: string, digest: Sha256Digest, replicas: number, generation: number | undefined): Health => {
  const deployment = deploymentOf(seen, name);
  // The store may be behind what was just applied.
  const isCurrent = deployment !== undefined && (deployment.metadata.generation ?? 0) >= (generation ?? 0);
  // A Deployment does not count pods that are on their way out.
  const isStopping = replicas === 0 && podsOf(seen, name).length > 0;
  if (isCurrent && isRolledOut(deployment, replicas) && !isStopping) {
    return replicas === 0
      ? { kind: "idle", message: "it runs no pods" }
      : { kind: "serving", message: `${replicas} of ${replicas} pods serve` };
  }
  const refused = podsOf(seen, name).find(
    ({ metadata }) =>
      metadata.labels?.[labels.digest] === shortDigest(digest) && metadata.annotations?.[podAnnotations.refused] !== undefined,
  );
  if (refused)
    return { kind: "stalled", reason: "ComponentRefused", message: refused.metadata.annotations?.[podAnnotations.refused] ?? "" };
  const missing = seen.notStarted.get(name);
  if (missing) return fromFault(missing);
  const failing = (deployment?.status?.conditions ?? []).find(
    ({ type, status }) => (type === "ReplicaFailure" && status === "True") || (type === "Progressing" && status === "False"),
  );
  if (isCurrent && failing) {
    return {
      kind: "stalled",
      reason: failing.type === "ReplicaFailure" ? "PodsRefused" : "RolloutStuck",
      message: failing.message ?? failing.type,
    };
  }
  const available = deployment?.status?.availableReplicas ?? 0;
  return replicas === 0
    ? { kind: "progressing", reason: "Stopping", message: "its pods are stopping" }
    : {
        kind: "progressing",
        reason: "RollingOut",
        message: `${available} of ${replicas} pods serve; the others start, or run what was before`,
      };
};

interface NamedHealth {
  readonly name: string;
  readonly health: Health;
}

const conditionsOf = (
  isSuspended: boolean,
  plan: Plan,
  healths: readonly NamedHealth[],
  before: readonly ConditionNow[],
): ConditionNow[] => {
  const stalled = healths.filter(({ health }) => health.kind === "stalled");
  const progressing = healths.filter(({ health }) => health.kind === "progressing");
  const { waiting } = plan;
  return [
    readyCondition(isSuspended, plan, healths, before),
    waiting || progressing.length > 0
      ? {
          type: "Reconciling",
          status: "True",
          reason: waiting?.reason ?? reasonOf(progressing),
          message: waiting?.message ?? told(progressing),
        }
      : { type: "Reconciling", status: "False", reason: "Settled", message: "nothing is on its way" },
    stalled.length > 0
      ? { type: "Stalled", status: "True", reason: reasonOf(stalled), message: told(stalled) }
      : { type: "Stalled", status: "False", reason: "NothingToDo", message: "no person needs to act" },
  ];
};

const readyCondition = (
  isSuspended: boolean,
  { waiting }: Plan,
  healths: readonly NamedHealth[],
  before: readonly ConditionNow[],
): ConditionNow => {
  const known = before.find(({ type }) => type === "Ready");
  // What served goes on.
  if (waiting?.goesOn && known) return { type: known.type, status: known.status, reason: known.reason, message: known.message };
  const bad = [
    ...healths.filter(({ health }) => health.kind === "stalled"),
    ...healths.filter(({ health }) => health.kind === "progressing"),
  ];
  if (waiting) return { type: "Ready", status: "False", reason: waiting.reason, message: waiting.message };
  if (isSuspended && bad.length === 0) {
    return { type: "Ready", status: "False", reason: "Suspended", message: "spec.suspend stops its sandboxes; set it to false to go on" };
  }
  if (bad.length > 0) return { type: "Ready", status: "False", reason: reasonOf(bad), message: told(bad) };
  if (healths.every(({ health }) => health.kind !== "serving")) {
    return { type: "Ready", status: "False", reason: "NothingServes", message: told(healths) };
  }
  return { type: "Ready", status: "True", reason: "Serving", message: told(healths) };
};

/** `EgressEnforced`, for all components that run: the worst of them. A person must know of it, but the tools go on: hosts check for themselves. */
const enforcedCondition = ({ components, waiting }: Plan, { enforcement }: FromOthers, before: readonly ConditionNow[]): ConditionNow[] => {
  const known = before.find(({ type }) => type === "EgressEnforced");
  const asBefore = known ? [{ type: known.type, status: known.status, reason: known.reason, message: known.message }] : [];
  if (waiting && components.length === 0) return asBefore;
  const found = components.map(({ name }) => ({ name, ...enforcement(name) }));
  const worst = (["False", "Unknown", "True"] as const)
    .map((status) => found.filter((one) => one.status === status))
    .find(({ length }) => length > 0);
  const [first] = worst ?? [];
  if (worst === undefined || first === undefined) return [];
  // An operator that starts anew has not asked anybody yet; what was found before it holds until then.
  if (first.reason === "NotTried" && known) return asBefore;
  const message = worst.map((one) => `${one.name}: ${one.message}`).join("; ");
  return [{ type: "EgressEnforced", status: first.status, reason: first.reason, message }];
};

const reasonOf = ([first]: readonly NamedHealth[]): string => {
  const reason = first && "reason" in first.health ? first.health.reason : "";
  return /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason) ? reason.slice(0, listed.reason) : "Unknown";
};

const told = (healths: readonly NamedHealth[]): string =>
  healths.map(({ name, health }) => `${name}: ${health.message.slice(0, listed.message)}`).join("; ");

const componentStatus = (seen: Seen, one: SeenComponent, healths: readonly NamedHealth[], others: FromOthers): ComponentStatus => {
  const { name } = one.component;
  const before = seen.workload.status?.components?.find((component) => component.name === name);
  const health = healths.find((named) => named.name === name)?.health;
  const egress = others.egress(name, before?.egress ?? []);
  const fault = faultIn(one, health);
  const pods = readyByDigest(podsOf(seen, name));
  const common = { name, ...fault, ...(pods.length > 0 ? { pods } : {}), ...(egress.length > 0 ? { egress } : {}) };
  if (isFault(one.found)) return common;
  const { stored, offered, notOffered } = one.found;
  return {
    ...common,
    digest: stored.digest,
    resolved: stored.resolved,
    imports: stored.interface.imports.slice(0, listed.imports).map(({ id }) => id.slice(0, 512)),
    toolCount: offered.length,
    tools: offered.slice(0, listed.tools).map((tool) => ({ ...namesOf(tool), definition: definitionDigest(tool) })),
    notOffered: notOffered.slice(0, listed.notOffered).map(({ interface: of, function: name, reason }) => ({
      ...(of === untypedInterface ? { tool: name } : { ...(of === null ? {} : { interface: of }), function: name }),
      reason: reason.slice(0, 1024).toWellFormed(),
    })),
  };
};

const faultIn = ({ found }: SeenComponent, health: Health | undefined): Pick<ComponentStatus, "fault"> => {
  const isSaid = health?.kind === "stalled" || (health?.kind === "progressing" && (isFault(found) || found.listingFault !== undefined));
  const fault = isSaid ? { code: health.reason, message: health.message } : health?.kind === "serving" ? health.fault : undefined;
  if (fault === undefined) return {};
  return { fault: { reason: fault.code.slice(0, 128), message: revealed(fault.message).slice(0, listed.message).toWellFormed() } };
};

const namesOf = (tool: ToolDefinition): Pick<OfferedFunctionStatus, "interface" | "function" | "tool"> => {
  if (isUntyped(tool)) return { tool: tool.name };
  return { ...(tool.interface === null ? {} : { interface: tool.interface }), function: tool.name };
};

const podsOf = ({ pods }: Seen, component: string): Pod[] =>
  pods.filter(({ metadata }) => metadata.labels?.[labels.component] === component);

const readyByDigest = (pods: readonly Pod[]): { digest: string; ready: number }[] => {
  const counts = new Map<string, number>();
  for (const pod of pods) {
    const digest = pod.metadata.annotations?.[podAnnotations.delivered] ?? "";
    if (isReady(pod) && isSha256Digest(digest)) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  }
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, listed.pods)
    .map(([digest, ready]) => ({ digest, ready }));
};
