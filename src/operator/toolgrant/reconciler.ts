import type { ToolGrantStatus } from "../../api/generated/toolgrant.ts";
import { componentName } from "../../grants/granted-tool.ts";
import { componentOfTool, serverOf } from "../../grants/sandboxed-component.ts";
import { isNotFound } from "../../kube/api-error.ts";
import type { Applier } from "../../kube/apply.ts";
import type { Clock } from "../../kube/clock.ts";
import type { EventRecorder } from "../../kube/events.ts";
import { keyText, type ObjectKey } from "../../kube/object.ts";
import { done, type Outcome, type Reconciler } from "../../kube/reconciler.ts";
import { toolGrants } from "../../kube/resource-types.ts";
import { conditionTime, withTransitions } from "../conditions.ts";
import type { OperatorStores } from "../context.ts";
import { workloadVersion } from "../judged.ts";
import type { ClusterToolGrant, Pod } from "../kinds.ts";
import { labels, podAnnotations } from "../names.ts";
import { decideGrant, type GrantVerdict, type SeenGrant } from "./decide.ts";
import { grantIndexes, workloadKey } from "./indexes.ts";
import { type ComponentReader, isReady, observeTool } from "./observe.ts";

export interface ToolGrantDeps {
  readonly stores: Pick<OperatorStores, "toolGrants" | "workloads" | "pods" | "namespaces">;
  readonly reader: ComponentReader;
  /** Under the field manager `ambit-toolgrant`. */
  readonly applier: Applier;
  readonly events: Pick<EventRecorder, "record">;
  readonly clock: Clock;
}

/** Keeps one ToolGrant's status true. Writes nothing else: its spec is a person's. */
export const toolGrantReconciler =
  (deps: ToolGrantDeps): Reconciler =>
  async (key, signal) => {
    const seen = await gather(deps, key, signal);
    if (!seen) {
      deps.applier.forget(toolGrants, { ...key }, "status");
      return done;
    }
    // A Workload that changed meanwhile has it looked at again: what was judged is nothing to say any more, least of all that it is live.
    if (isOutdated(deps.stores, seen)) return done;
    const verdict = decideGrant(seen);
    await writeStatus(deps, seen.grant, verdict, signal);
    tell(deps, seen.grant, verdict);
    return outcomeOf(seen, verdict);
  };

const gather = async (deps: ToolGrantDeps, key: ObjectKey, signal: AbortSignal): Promise<SeenGrant | null> => {
  const { stores, reader } = deps;
  const grant = stores.toolGrants.get(keyText(key));
  if (!grant || grant.metadata.deletionTimestamp !== undefined) return null;
  const { tool, declaration } = grant.spec;
  const workload = workloadKey(key.namespace, tool.workload);
  const spec = stores.workloads.get(workload)?.spec;
  const bridge = spec && componentOfTool(spec, tool);
  const podsOf = (component: string | undefined): Pod[] =>
    stores.pods.find("workload", workload).filter(({ metadata }) => metadata.labels?.[labels.component] === component);
  const pods = podsOf(componentName(tool));
  const server = spec && bridge && serverOf(spec, bridge);
  const serverPods = server ? podsOf(server.name) : [];
  const farSide = await observeTool(reader, grant, stores.workloads.get(workload), { own: pods, server: serverPods }, signal);
  return {
    grant,
    farSide,
    ...(server && !serverPods.some(isReady) ? { silentServer: server.name } : {}),
    running: new Set(pods.filter(isReady).flatMap(({ metadata }) => metadata.annotations?.[podAnnotations.delivered] ?? [])),
    rivals: [grant, ...stores.toolGrants.find("declaredName", declaration.name).filter((other) => other !== grant && isLive(other))],
    acceptances: acceptancesFor(stores, grant),
  };
};

const isOutdated = ({ workloads }: ToolGrantDeps["stores"], { grant, farSide }: SeenGrant): boolean => {
  const now = workloads.get(workloadKey(grant.metadata.namespace, grant.spec.tool.workload));
  return farSide.workload !== undefined && (now === undefined || workloadVersion(now) !== farSide.workload);
};

/** As far as its status says, which was judged before. */
const isLive = ({ metadata, status }: ClusterToolGrant): boolean =>
  status?.phase === "Active" && status.observedGeneration === metadata.generation && metadata.deletionTimestamp === undefined;

/** Where Namespaces say which grants of others they take. */
export const acceptsAnnotation = "ambit.dev/accepts-grants-from";

const acceptancesFor = ({ namespaces }: ToolGrantDeps["stores"], grant: ClusterToolGrant): Map<string, string> => {
  const asked = grantIndexes.subjectNamespace(grant);
  return new Map(asked.map((name) => [name, namespaces.get(name)?.metadata.annotations?.[acceptsAnnotation] ?? ""]));
};

const writeStatus = async (deps: ToolGrantDeps, grant: ClusterToolGrant, verdict: GrantVerdict, signal: AbortSignal): Promise<void> => {
  const { name, namespace, generation } = grant.metadata;
  const before = grant.status?.conditions ?? [];
  const status: ToolGrantStatus = {
    ...verdict.status,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    conditions: withTransitions(verdict.conditions, before, generation, conditionTime(deps.clock.now())),
  };
  const desired = { metadata: { name, ...(namespace === undefined ? {} : { namespace }) }, status };
  // Nobody else writes a grant's status, so whatever holds its fields is an older name of ours or a mistake.
  try {
    await deps.applier.apply(toolGrants, desired, { live: grant, subresource: "status", force: true, signal });
  } catch (thrown) {
    // Deleted meanwhile: there is nothing to tell any more.
    if (!isNotFound(thrown)) throw thrown;
  }
};

/** Of changes to what a person must know: another phase, or another reason to be withheld. */
const tell = ({ events }: ToolGrantDeps, grant: ClusterToolGrant, { phase, reasons, status }: GrantVerdict): void => {
  const message = reasons.map((reason) => reason.message).join("; ");
  const before = grant.status?.conditions?.find(({ type }) => type === "Ready")?.message;
  const isNews = grant.status?.phase !== phase || (phase !== "Active" && before !== message);
  // New drafts are told of once, on their Workload.
  if (!isNews || (grant.status?.phase === undefined && phase === "Draft")) return;
  const changed = (status.changes ?? []).slice(0, 5).map(({ path }) => path);
  const note = [message || "as reviewed: offered to its subjects", ...(changed.length > 0 ? [`changed: ${changed.join(", ")}`] : [])].join(
    "; ",
  );
  events.record(grant, { type: phase === "Active" || phase === "Draft" ? "Normal" : "Warning", reason: phase, action: "Judge", note });
};

const outcomeOf = ({ farSide }: SeenGrant, { phase, reasons }: GrantVerdict): Outcome => {
  if (farSide.passing) return { kind: "waiting", retryAfterMs: farSide.passing.retryAfterMs, on: farSide.passing.message };
  const [first] = reasons;
  return (phase === "Drifted" || phase === "Invalid") && first ? { kind: "stalled", reason: first.code, message: first.message } : done;
};
