import type { Reach } from "../api/definition.ts";
import { isUntyped, type ToolDefinition } from "../api/untyped.ts";

/** What a grant says of a tool, as far as hints speak of the same. */
export interface HintedGrant {
  readonly mutates: boolean;
  readonly reach: Reach;
}

/**
 * Where a tool's hints of itself (MCP's tool annotations: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`) and its grant say different things, one
 * sentence each without a full stop. Hints decide nothing: the grant holds, and whoever approves it is told what the far side claims beyond it, or warns of.
 */
export const hintsAgainst = (tool: ToolDefinition | null, { mutates, reach }: HintedGrant): string[] => {
  if (tool === null || !isUntyped(tool)) return [];
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = tool.annotations ?? {};
  const held = mutates ? "the grant takes it for one that may change things" : "the grant says that it changes nothing";
  const differences: readonly (readonly [holds: boolean, claim: string])[] = [
    [readOnlyHint === true && mutates, `it claims to change nothing (readOnlyHint), and ${held}`],
    [readOnlyHint === false && !mutates, `it says that it may change things (readOnlyHint: false), and ${held}`],
    [destructiveHint === true && !mutates, `it says that it may destroy things (destructiveHint), and ${held}`],
    [readOnlyHint === true && destructiveHint === true, "it claims to change nothing and says that it may destroy things"],
    [
      destructiveHint === false && readOnlyHint !== true && mutates,
      "it claims to destroy nothing (destructiveHint: false), which nothing here makes sure of",
    ],
    [
      idempotentHint === true && mutates,
      "it claims that the same call again does nothing more (idempotentHint): none is repeated for that",
    ],
    [
      openWorldHint === false && reach.hosts.length > 0,
      `it claims to touch nothing outside (openWorldHint: false), and may reach ${reach.hosts.join(", ")}`,
    ],
  ];
  return differences.flatMap(([holds, claim]) => (holds ? [claim] : []));
};
