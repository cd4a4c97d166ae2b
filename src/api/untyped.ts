import type { JsonObject } from "./json.ts";
import type { ComponentInterface, WitFunction } from "./wit.ts";

/**
 * A tool as its far side tells of it at run time, where no WIT types do: through `ambit:tool/untyped` (wit/untyped.wit). `server` and `instructions` are said once
 * for all tools of a listing, and are part of what is said of each.
 */
export interface UntypedTool {
  readonly form: "untyped";
  /** What it is called with, byte for byte. */
  readonly name: string;
  readonly title: string | null;
  readonly description: string | null;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | null;
  readonly annotations: JsonObject | null;
  readonly server: string | null;
  readonly instructions: string | null;
}

/** What is known of a tool: its WIT function, or its own words. */
export type ToolDefinition = WitFunction | UntypedTool;

export const isUntyped = (tool: ToolDefinition): tool is UntypedTool => tool.form === "untyped";

/** What tickets name as the interface of an untyped tool. A component's own export has a version behind it. */
export const untypedInterface = "ambit:tool/untyped";

/** All that a component listed at one time: usable definitions by name, and what it listed besides, with the reason why it is not offered. */
export interface ToolListing {
  readonly tools: readonly UntypedTool[];
  readonly notOffered: readonly UnusableTool[];
}

/** Of a tool that a person left out. */
export const excludedReason = "the workload excludes it";

export interface UnusableTool {
  /** As far as it is one. */
  readonly name: string;
  /** One sentence without a full stop. */
  readonly reason: string;
}

/** The export by which a component lists its own tools; null where it has none that is spoken here. */
export const untypedExport = (component: Pick<ComponentInterface, "exports">): string | null =>
  exported(component, /^ambit:tool\/untyped@0\.1\.\d+$/);

/** The export by which it tells that its list has changed. */
export const changesExport = (component: Pick<ComponentInterface, "exports">): string | null =>
  exported(component, /^ambit:tool\/changes@0\.1\.\d+$/);

const exported = ({ exports }: Pick<ComponentInterface, "exports">, pattern: RegExp): string | null =>
  exports.find(({ id, kind }) => kind === "instance" && pattern.test(id))?.id ?? null;
