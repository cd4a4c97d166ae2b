import { Invalid } from "../api/errors.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { JsonObject } from "../api/json.ts";
import { isUntyped, type ToolDefinition } from "../api/untyped.ts";
import { draftNames } from "../declaration/names.ts";
import { assertUsableSchema } from "../translate/schema-usable.ts";
import { type DraftOptions, draftGrant } from "./draft.ts";
import type { ToolSource } from "./granted-tool.ts";

/** Everything that a Workload offers as far as it is known. */
export interface OfferedTools {
  readonly namespace: string;
  readonly workload: string;
  readonly components: readonly { readonly source: ToolSource; readonly offered: readonly ToolDefinition[] }[];
}

/** What is proposed for one tool. */
export interface Proposal {
  readonly source: ToolSource;
  readonly fn: ToolDefinition;
  /** Null where the tool can't be declared; `asks` then says why. */
  readonly grant: ToolGrant | null;
  /** What a person has to do before it can be approved. */
  readonly asks: readonly string[];
}

/** A draft for each tool of a Workload, their names unlike each other's. Whether a tool has a grant already is for the caller to see. */
export const proposeGrants = (offered: OfferedTools): Proposal[] => proposals(offered).map(({ propose }) => propose());

/** A tool, and the draft for it: made when it is asked for, since a component may list thousands and few of them are drafted at once. */
export interface Proposable {
  readonly source: ToolSource;
  readonly fn: ToolDefinition;
  readonly propose: () => Proposal;
}

/** As `proposeGrants`. */
export const proposals = ({ namespace, workload, components }: OfferedTools): Proposable[] => {
  const all = components.flatMap(({ source, offered }) =>
    offered.map((fn) => ({ name: fn.name, form: fn.form, interface: isUntyped(fn) ? source.name : fn.interface, source, fn })),
  );
  const names = draftNames(all);
  return all.map((tool) => {
    const { source, fn } = tool;
    const name = names.get(tool);
    const draft = { namespace, workload, source, fn, name: name?.name ?? null };
    return { source, fn, propose: () => proposal(draft, name?.name === null ? [name.message] : []) };
  });
};

const proposal = (draft: DraftOptions, asksOfName: readonly string[]): Proposal => {
  const { source, fn } = draft;
  try {
    const grant = draftGrant(draft);
    const asks = [
      ...asksOfName,
      ...(grant.spec.declaration.description === ""
        ? ["the component documents nothing here, or more than a description may have: write spec.declaration.description"]
        : []),
      ...(isUntyped(fn) ? unusable(grant.spec.declaration.parameters) : []),
    ];
    return { source, fn, grant, asks };
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    return { source, fn, grant: null, asks: [error.message] };
  }
};

/** What keeps a schema that the far side wrote from judging arguments: a person may write a narrower one in its place. */
const unusable = (parameters: JsonObject): string[] => {
  try {
    assertUsableSchema(parameters);
    return [];
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    return [`its schema can't judge arguments (${error.at || "at its root"}: ${error.message}): write another spec.declaration.parameters`];
  }
};
