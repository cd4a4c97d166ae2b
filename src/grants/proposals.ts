import { Invalid } from "../api/errors.ts";
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { WitFunction } from "../api/wit.ts";
import { draftNames } from "../declaration/names.ts";
import { draftGrant } from "./draft.ts";

/** Everything that a Workload offers as far as it is known. */
export interface OfferedTools {
  readonly namespace: string;
  readonly workload: string;
  readonly components: readonly { readonly component: string; readonly offered: readonly WitFunction[] }[];
}

/** What is proposed for one tool. */
export interface Proposal {
  readonly component: string;
  readonly fn: WitFunction;
  /** Null where the tool can't be declared; `asks` then says why. */
  readonly grant: ToolGrant | null;
  /** What a person has to do before it can be approved. */
  readonly asks: readonly string[];
}

/** A draft for each tool of a Workload, their names unlike each other's. Whether a tool has a grant already is for the caller to see. */
export const proposeGrants = ({ namespace, workload, components }: OfferedTools): Proposal[] => {
  const all = components.flatMap(({ component, offered }) =>
    offered.map((fn) => ({ name: fn.name, interface: fn.interface, component, fn })),
  );
  const names = draftNames(all);
  return all.map((tool) => {
    const { component, fn } = tool;
    const name = names.get(tool);
    try {
      const grant = draftGrant({ namespace, workload, component, fn, name: name?.name ?? null });
      const asks = [
        ...(name?.name === null ? [name.message] : []),
        ...(fn.docs === "" ? ["the component documents nothing here: write spec.declaration.description"] : []),
      ];
      return { component, fn, grant, asks };
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      return { component, fn, grant: null, asks: [error.message] };
    }
  });
};

/** One text for the tool that a grant names, equal for two grants of the same tool. */
export const toolText = (tool: {
  readonly workload: string;
  readonly component: string;
  readonly interface?: string | null;
  readonly function: string;
}): string => JSON.stringify([tool.workload, tool.component, tool.interface ?? null, tool.function]);
