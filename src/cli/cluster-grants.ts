import { Invalid, Refused } from "../api/errors.ts";
import type { ObservedDefinition, ToolGrant, ToolGrantStatus } from "../api/generated/toolgrant.ts";
import type { Change } from "../grants/changes.ts";
import { componentName, farName } from "../grants/granted-tool.ts";
import { loadAccess } from "../kube/access.ts";
import { isNotFound } from "../kube/api-error.ts";
import { ClusterClient } from "../kube/client.ts";
import { systemClock } from "../kube/clock.ts";
import type { ClusterObject } from "../kube/object.ts";
import { toolGrants } from "../kube/resource-types.ts";
import type { ClusterToolGrant } from "../operator/kinds.ts";

/** What every command on a cluster takes, named as kubectl names it. */
export interface ClusterOptions {
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
}

/** The grants of a cluster as the account of a kubeconfig sees them. */
export interface ClusterGrants {
  readonly client: ClusterClient;
  readonly namespace: string;
  /** Throws `Invalid` (`GrantMissing`). */
  get(name: string): Promise<ClusterToolGrant>;
  /** By namespace and name: those of these names, or all. Throws `Invalid` (`GrantMissing`). */
  list(names: readonly string[]): Promise<readonly ClusterToolGrant[]>;
}

/** Gives `work` the grants that the options name, and ends its connections after. */
export const withClusterGrants = async <T>(options: ClusterOptions, work: (grants: ClusterGrants) => Promise<T>): Promise<T> => {
  const { kubeconfig, context } = options;
  const access = await loadAccess({
    ...(kubeconfig === undefined ? {} : { file: kubeconfig }),
    ...(context === undefined ? {} : { context }),
  });
  const client = new ClusterClient({ access, clock: systemClock, random: Math.random, userAgent: "kubectl-ambit" });
  const namespace = options.namespace ?? access.namespace;
  const get = async (name: string): Promise<ClusterToolGrant> => {
    try {
      return await client.get<ClusterToolGrant>(toolGrants, { namespace, name });
    } catch (thrown) {
      if (!isNotFound(thrown)) throw thrown;
      throw new Invalid("GrantMissing", `there is no ToolGrant ${name} in the namespace ${namespace}`, undefined, { cause: thrown });
    }
  };
  const list = async (names: readonly string[]): Promise<readonly ClusterToolGrant[]> => {
    if (names.length > 0) return Promise.all(names.map(get));
    const found = await listAll<ClusterToolGrant>(client, options.allNamespaces ? undefined : namespace);
    return found.sort((a, b) => compareText(nameOf(a), nameOf(b)));
  };
  try {
    return await work({ client, namespace, get, list });
  } finally {
    await client.close();
  }
};

const pageSize = 500;

const listAll = async <T extends ClusterObject>(client: ClusterClient, namespace: string | undefined): Promise<T[]> => {
  const found: T[] = [];
  let next: string | undefined;
  do {
    const page = await client.listPage<T>(toolGrants, { namespace }, { limit: pageSize, ...(next === undefined ? {} : { next }) });
    found.push(...page.items);
    next = page.next;
  } while (next !== undefined);
  return found;
};

const nameOf = ({ metadata }: ToolGrant): string => `${metadata.namespace ?? ""}/${metadata.name}`;

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** What the operator says of a grant's present spec; null while it has not looked at it. */
export const currentStatus = ({ metadata, status }: ToolGrant): ToolGrantStatus | null =>
  status?.phase !== undefined && status.observedGeneration === metadata.generation ? status : null;

/** The phase, or `Unknown` while the operator has not looked at the present spec. */
export const phaseOf = (grant: ToolGrant): string => currentStatus(grant)?.phase ?? "Unknown";

/** Why a grant is what it is, in the operator's words. */
export const whyOf = (grant: ToolGrant): string => {
  const status = currentStatus(grant);
  if (!status) return "the operator has not looked at it yet";
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  return ready && ready.status !== "True" ? `${ready.reason}: ${ready.message}` : "";
};

export const changesOf = (grant: ToolGrant): readonly Change[] =>
  (currentStatus(grant)?.changes ?? []).map(({ path, before, after }) => ({ path, before: before ?? null, after: after ?? null }));

/** What the operator observed, as it is needed for a review. Throws `Refused` (`NotObserved`) where it can't be approved on that. */
export const observedOf = (
  grant: ToolGrant,
): Required<Pick<ObservedDefinition, "digest" | "text" | "component" | "reach">> & Pick<ObservedDefinition, "code"> => {
  const { digest, text, component, code, reach } = currentStatus(grant)?.observed ?? {};
  if (digest !== undefined && text !== undefined && component !== undefined && reach !== undefined)
    return { digest, text, component, reach, ...(code === undefined ? {} : { code }) };
  const { tool } = grant.spec;
  throw new Refused(
    "NotObserved",
    `${farName(tool)} of ${tool.workload}/${componentName(tool)} has not been observed as it is now: ${whyOf(grant) || "look again"}`,
  );
};
