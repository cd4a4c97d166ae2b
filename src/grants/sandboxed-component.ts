import { bridgeImage } from "../api/bridge-component.ts";
import type { GrantedTool } from "../api/generated/toolgrant.ts";
import type { HeadersSecret, McpServer, WorkloadComponent, WorkloadSpec } from "../api/generated/workload.ts";
import type { Hop } from "../egress/hop.ts";

/**
 * A component that has a sandbox of its own: one that a Workload writes, or the bridge to one of its MCP servers. A bridge has its server's name, which is no component's
 * (docs/mcp-servers.md).
 */
export interface SandboxedComponent extends WorkloadComponent {
  /** What it is a bridge to. */
  readonly bridge?: BridgedServer;
  /** Name of the MCP server that it is: its bridge alone may send it requests. */
  readonly serves?: string;
}

export type BridgedServer =
  | { readonly kind: "remote"; readonly headersFrom: readonly HeadersSecret[] }
  | { readonly kind: "component"; readonly component: string };

/** An instance is kept, and with it what it knows of the server; a failure replaces it. */
const callsOfBridge = 1000;

/** All components of a Workload that get a sandbox, in a fixed order: its own as they are written, then its bridges. */
export const sandboxedComponents = ({ components, mcpServers = [] }: WorkloadSpec): SandboxedComponent[] => [
  ...components.map((component): SandboxedComponent => {
    const server = mcpServers.find((one) => one.component === component.name);
    return server ? { ...component, serves: server.name } : component;
  }),
  ...mcpServers.map(bridgeTo),
];

/** The component that a grant's tool is of: a bridge where that names an MCP server. */
export const componentOfTool = (spec: WorkloadSpec, tool: Pick<GrantedTool, "component" | "mcpServer">): SandboxedComponent | undefined =>
  sandboxedComponents(spec).find(({ name, bridge }) => name === (bridge === undefined ? tool.component : tool.mcpServer));

/** The component that an MCP server is, where it is one. */
export const serverOf = (spec: WorkloadSpec, { bridge }: SandboxedComponent): WorkloadComponent | undefined =>
  bridge?.kind === "component" ? spec.components.find(({ name }) => name === bridge.component) : undefined;

/** The hop that a component is an end of; null for one that is none. */
export const hopOf = ({ serves, bridge }: Pick<SandboxedComponent, "serves" | "bridge">): Hop | null => {
  if (serves !== undefined) return { end: "server", bridge: serves };
  return bridge?.kind === "component" ? { end: "bridge", server: bridge.component } : null;
};

/** What of its namespace a sandbox is given: each key of it becomes a variable, or a header that a bridge sends. */
export interface GivenSource {
  readonly kind: "ConfigMap" | "Secret";
  readonly name: string;
  readonly as: "environment" | "headers";
}

/** In the order in which later ones win. */
export const givenSources = ({ localResources, bridge }: Pick<SandboxedComponent, "localResources" | "bridge">): GivenSource[] => {
  const { configFrom = [], secretFrom = [] } = localResources?.environment ?? {};
  const headersFrom = bridge?.kind === "remote" ? bridge.headersFrom : [];
  return [
    ...configFrom.map(({ name }) => ({ kind: "ConfigMap", name, as: "environment" }) as const),
    ...secretFrom.map(({ name }) => ({ kind: "Secret", name, as: "environment" }) as const),
    ...headersFrom.map(({ name }) => ({ kind: "Secret", name, as: "headers" }) as const),
  ];
};

const bridgeTo = ({ name, component, path, remote, tools, limits, resources }: McpServer): SandboxedComponent => {
  const url = remote?.url ?? `http://${component}${path ?? "/mcp"}`;
  return {
    name,
    image: bridgeImage,
    localResources: { allowedHosts: remote ? [originOf(url)] : [], environment: { config: { MCP_URL: url } } },
    limits,
    reuse: { calls: callsOfBridge },
    ...(tools && { tools }),
    ...(resources && { resources }),
    bridge: component === undefined ? { kind: "remote", headersFrom: remote?.headersFrom ?? [] } : { kind: "component", component },
  };
};

/** Scheme, host and port, and nothing else of a URL. What is no URL is an entry that cannot be read, and reaches nothing. */
export const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);
