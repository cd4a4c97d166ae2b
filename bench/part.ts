import { bridgeFigures } from "./bridge.ts";
import { catalogueFigures } from "./catalogue.ts";
import { endToEndFigures } from "./end-to-end.ts";
import { freshInstanceFigures } from "./fresh-instance.ts";
import { mcpFigures } from "./mcp.ts";
import type { Figure } from "./measure.ts";

/** `node bench/part.ts NAME`: measures one part in a process of its own and prints its figures as JSON. */
export const parts = {
  "fresh instances inside the host": freshInstanceFigures,
  "calls end to end": endToEndFigures,
  "calls over MCP": mcpFigures,
  "calls of an MCP server behind the bridge": bridgeFigures,
  "declarations at 10,000 grants": catalogueFigures,
} satisfies Record<string, () => Promise<Figure[]>>;

if (import.meta.main) {
  const measure = Object.entries(parts).find(([name]) => name === process.argv[2])?.[1];
  if (!measure) throw new Error(`there is no part ${process.argv[2]}`);
  process.stdout.write(JSON.stringify(await measure()));
  process.exit(0);
}
