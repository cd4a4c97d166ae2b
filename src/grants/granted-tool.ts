import type { GrantedTool } from "../api/generated/toolgrant.ts";
import { isUntyped, type ToolDefinition, untypedInterface } from "../api/untyped.ts";
import type { SandboxedComponent } from "./sandboxed-component.ts";

/** Whose tool it is: a component, or an MCP server by its bridge. */
export type ToolSource = Pick<SandboxedComponent, "name" | "bridge">;

/** Name of the component whose tool a grant names; for an MCP server's, that of its bridge. */
export const componentName = ({ component, mcpServer }: Pick<GrantedTool, "component" | "mcpServer">): string =>
  component ?? mcpServer ?? "";

/** Of a grant whose Workload has nothing of that name. */
export const missingComponentText = ({ workload, component, mcpServer }: GrantedTool): string =>
  `the Workload ${workload} has no ${mcpServer === undefined ? `component ${component}` : `MCP server ${mcpServer}`}`;

/** The name by which the far side knows what is granted: a function's, or a listed tool's. */
export const farName = ({ function: fn, tool }: Pick<GrantedTool, "function" | "tool">): string => fn ?? tool ?? "";

/** How a grant names this tool of a component. */
export const grantedTool = (workload: string, { name, bridge }: ToolSource, tool: ToolDefinition): GrantedTool => {
  if (isUntyped(tool)) return { workload, ...(bridge ? { mcpServer: name } : { component: name }), tool: tool.name };
  return { workload, component: name, ...(tool.interface === null ? {} : { interface: tool.interface }), function: tool.name };
};

/** One text for the tool that a grant names, equal for two grants of the same tool. */
export const toolText = ({ workload, component, mcpServer, interface: id, function: fn, tool }: GrantedTool): string =>
  JSON.stringify(tool === undefined ? [workload, component, id ?? null, fn] : [workload, component ?? { mcpServer }, { tool }]);

/** What is said of why a tool is not one: of a function, or (`interface` is `untypedInterface`) of a listed tool. */
interface Refused {
  readonly interface: string | null;
  readonly function: string;
  readonly reason: string;
}

/** The tool that a grant names, among those of its component: null where that does not offer it, with the reason if it has it. */
export const findTool = (
  { offered, notOffered }: { readonly offered: readonly ToolDefinition[]; readonly notOffered: readonly Refused[] },
  { interface: id, function: name, tool }: Pick<GrantedTool, "interface" | "function" | "tool">,
): { readonly fn: ToolDefinition | null; readonly notOffered?: string } => {
  const fn = offered.find((one) => (isUntyped(one) ? one.name === tool : one.interface === (id ?? null) && one.name === name));
  if (fn) return { fn };
  const refusal = notOffered.find((one) =>
    tool === undefined
      ? one.interface === (id ?? null) && one.function === name
      : one.interface === untypedInterface && one.function === tool,
  );
  return refusal ? { fn: null, notOffered: refusal.reason } : { fn: null };
};
