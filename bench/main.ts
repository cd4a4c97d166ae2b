import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { catalogueFigures } from "./catalogue.ts";
import { endToEndFigures } from "./end-to-end.ts";
import { freshInstanceFigures } from "./fresh-instance.ts";
import { type Figure, figureTable } from "./measure.ts";

/** `npm run bench`: every figure in one run, as a table and as JSON in `bench/results/`. */
const parts: readonly (readonly [string, () => Promise<Figure[]>])[] = [
  ["fresh instances inside the host", freshInstanceFigures],
  ["calls end to end", endToEndFigures],
  ["declarations at 10,000 grants", catalogueFigures],
];

const wanted = process.argv.slice(2);
const figures: Figure[] = [];
for (const [name, measure] of parts) {
  if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
  process.stderr.write(`Measuring ${name}…\n`);
  figures.push(...(await measure()));
}
const [cpu] = cpus();
process.stdout.write(`${figureTable(figures)}\n\nNode ${process.version}, ${cpus().length} × ${cpu?.model ?? "unknown processor"}\n`);
const results = join(fileURLToPath(new URL(".", import.meta.url)), "results");
await mkdir(results, { recursive: true });
await writeFile(join(results, "latest.json"), `${JSON.stringify({ node: process.version, cpus: cpus().length, figures }, null, 2)}\n`);
