import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { engineFlags } from "../src/host/node-arguments.ts";
import { type Figure, figureTable } from "./measure.ts";
import { parts } from "./part.ts";

/**
 * `npm run bench [-- WORD…]`: every figure, or those of the parts whose name has a word, in one run: as a table, and as JSON in `bench/results/`. Each part
 * runs in a process of its own; what happens inside a host runs under a host's engine flags.
 */
const folder = fileURLToPath(new URL(".", import.meta.url));

const measured = async (name: string): Promise<Figure[]> => {
  const flags = name.includes("inside the host") ? engineFlags : [];
  const child = spawn(process.execPath, [...flags, join(folder, "part.ts"), name], { stdio: ["ignore", "pipe", "inherit"] });
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  if (code !== 0) throw new Error(`measuring ${name} ended with code ${code}`);
  return JSON.parse(printed) as Figure[];
};

const wanted = process.argv.slice(2);
const figures: Figure[] = [];
for (const name of Object.keys(parts)) {
  if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
  process.stderr.write(`Measuring ${name}…\n`);
  figures.push(...(await measured(name)));
}
const [cpu] = cpus();
process.stdout.write(`${figureTable(figures)}\n\nNode ${process.version}, ${cpus().length} × ${cpu?.model ?? "unknown processor"}\n`);
await mkdir(join(folder, "results"), { recursive: true });
await writeFile(
  join(folder, "results", "latest.json"),
  `${JSON.stringify({ node: process.version, cpus: cpus().length, figures }, null, 2)}\n`,
);
