import type { ToolGrant } from "../../api/generated/toolgrant.ts";
import type { ToolDefinition } from "../../api/untyped.ts";
import { draftLabel, draftName } from "../../grants/draft.ts";
import { grantText } from "../../grants/grant-digest.ts";
import { componentName, grantedTool, type ToolSource, toolText } from "../../grants/granted-tool.ts";
import { proposals } from "../../grants/proposals.ts";
import type { ClusterToolGrant } from "../kinds.ts";

export interface SeenTools {
  readonly namespace: string;
  readonly workload: string;
  /** False where the Workload is gone, or on its way out. */
  readonly exists: boolean;
  /** Whether it asks for drafts. */
  readonly draftGrants: boolean;
  /** What each component offers, or null where that is not known now. */
  readonly components: readonly { readonly source: ToolSource; readonly offered: readonly ToolDefinition[] | null }[];
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
  const known = components.flatMap(({ source, offered }) => (offered ? [{ source, offered }] : []));
  const unknown = new Set(components.flatMap(({ source, offered }) => (offered ? [] : [source.name])));
  const tools = new Map(
    proposals({ namespace, workload, components: known }).map(
      (tool) => [toolText(grantedTool(workload, tool.source, tool.fn)), tool] as const,
    ),
  );
  const granted = new Set(grants.map(({ spec }) => toolText(spec.tool)));

  const missing = draftGrants ? [...tools].flatMap(([text, tool]) => (granted.has(text) ? [] : [tool])) : [];
  const counts = new Map<string, number>();
  for (const { spec } of drafts) {
    const name = componentName(spec.tool);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const create = missing
    .map((tool) => ({ ...tool, name: draftName(workload, tool.source.name, tool.fn) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ source, propose }) => {
      const count = counts.get(source.name) ?? 0;
      const grant = count < mostDrafts ? propose().grant : null;
      if (grant === null) return [];
      counts.set(source.name, count + 1);
      return [grant];
    });
  const refresh = drafts.flatMap((live) => {
    const grant = tools.get(toolText(live.spec.tool))?.propose().grant;
    return grant && live.metadata.name === grant.metadata.name && grantText(live.spec) !== grantText(grant.spec)
      ? [{ live, wanted: grant }]
      : [];
  });
  const isVanished = ({ spec: { tool } }: ClusterToolGrant) => !unknown.has(componentName(tool)) && !tools.has(toolText(tool));
  return { create, refresh, sweep: drafts.filter(isVanished), leftToPersons: missing.length - create.length };
};

/** As far as it says itself; whether a person touched it is another question. */
const isUnreviewedDraft = ({ metadata, spec }: ClusterToolGrant): boolean =>
  metadata.labels?.[draftLabel] === "true" && spec.review === undefined && metadata.deletionTimestamp === undefined;
