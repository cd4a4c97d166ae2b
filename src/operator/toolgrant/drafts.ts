import type { ToolGrant } from "../../api/generated/toolgrant.ts";
import type { ToolDefinition } from "../../api/untyped.ts";
import { draftLabel, draftName } from "../../grants/draft.ts";
import { grantText } from "../../grants/grant-digest.ts";
import { grantedTool, toolText } from "../../grants/granted-tool.ts";
import { proposals } from "../../grants/proposals.ts";
import type { ClusterToolGrant } from "../kinds.ts";

export interface SeenTools {
  readonly namespace: string;
  readonly workload: string;
  /** False where the Workload is gone, or on its way out. */
  readonly exists: boolean;
  /** Whether it asks for drafts. */
  readonly draftGrants: boolean;
  /** By component: what it offers, or null where that is not known now. */
  readonly components: ReadonlyMap<string, readonly ToolDefinition[] | null>;
  /** Every grant that names the Workload. */
  readonly grants: readonly ClusterToolGrant[];
}

/** `refresh` and `sweep` are for drafts that turn out to be nobody else's: that is asked of the API server, not of a store. */
export interface DraftPlan {
  readonly create: readonly ToolGrant[];
  readonly refresh: readonly { readonly live: ClusterToolGrant; readonly wanted: ToolGrant }[];
  readonly sweep: readonly ClusterToolGrant[];
  /** Tools beyond the number that is drafted, or that can't be declared: for `ambit draft` and a person. */
  readonly leftToPersons: number;
}

/** Drafts of one component at most; the rest on demand. */
const mostDrafts = 100;

/** Which drafts are to be made, renewed and swept. Pure. */
export const decideDrafts = ({ namespace, workload, exists, draftGrants, components, grants }: SeenTools): DraftPlan => {
  const drafts = grants.filter(isUnreviewedDraft);
  if (!exists) return { create: [], refresh: [], sweep: drafts, leftToPersons: 0 };
  const known = [...components].flatMap(([component, offered]) => (offered ? [{ component, offered }] : []));
  const tools = new Map(
    proposals({ namespace, workload, components: known }).map(
      (tool) => [toolText(grantedTool(workload, tool.component, tool.fn)), tool] as const,
    ),
  );
  const granted = new Set(grants.map(({ spec }) => toolText(spec.tool)));

  const missing = draftGrants ? [...tools].flatMap(([text, tool]) => (granted.has(text) ? [] : [tool])) : [];
  const counts = new Map<string, number>();
  for (const { spec } of drafts) counts.set(spec.tool.component, (counts.get(spec.tool.component) ?? 0) + 1);
  const create = missing
    .map((tool) => ({ ...tool, name: draftName(workload, tool.component, tool.fn) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ component, propose }) => {
      const count = counts.get(component) ?? 0;
      const grant = count < mostDrafts ? propose().grant : null;
      if (grant === null) return [];
      counts.set(component, count + 1);
      return [grant];
    });
  const refresh = drafts.flatMap((live) => {
    const grant = tools.get(toolText(live.spec.tool))?.propose().grant;
    return grant && live.metadata.name === grant.metadata.name && grantText(live.spec) !== grantText(grant.spec)
      ? [{ live, wanted: grant }]
      : [];
  });
  const isVanished = ({ spec: { tool } }: ClusterToolGrant) => components.get(tool.component) !== null && !tools.has(toolText(tool));
  return { create, refresh, sweep: drafts.filter(isVanished), leftToPersons: missing.length - create.length };
};

/** As far as it says itself; whether a person touched it is another question. */
const isUnreviewedDraft = ({ metadata, spec }: ClusterToolGrant): boolean =>
  metadata.labels?.[draftLabel] === "true" && spec.review === undefined && metadata.deletionTimestamp === undefined;
