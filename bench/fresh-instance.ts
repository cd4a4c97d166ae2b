import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defaultHostLimits } from "../src/api/host.ts";
import { startComponentPool } from "../test/support/component-pool.ts";
import { atOnce, type Figure, oneAtATime, percentile } from "./measure.ts";

const components = fileURLToPath(new URL("../test/fixtures/components/", import.meta.url));

interface Subject {
  readonly what: string;
  readonly file: string;
  readonly interface: string;
  readonly function: string;
  readonly args: object;
  readonly aim: Figure["aim"];
}

const subjects: readonly Subject[] = [
  {
    what: "3.5 MB Rust component",
    file: "almanac.wasm",
    interface: "ambit:almanac/almanac@0.1.0",
    function: "add",
    args: { a: 1, b: 2 },
    aim: { atLeast: 1500 },
  },
  {
    what: "21 KB Rust component, async",
    file: "mission.wasm",
    interface: "example:github/issues",
    function: "list-issues",
    args: { repo: "octo/spoon", state: "open" },
    aim: null,
  },
];

/** Calls in one worker of the host, a fresh instance each, without HTTP and tickets: the worker's thread is the one core. */
export const freshInstanceFigures = async (): Promise<Figure[]> => {
  const figures: Figure[] = [];
  for (const subject of subjects) figures.push(...(await measured(subject)));
  return figures;
};

const measured = async (subject: Subject): Promise<Figure[]> => {
  const bytes = await readFile(join(components, subject.file));
  const pool = await startComponentPool(bytes, { limits: { ...defaultHostLimits, concurrency: 1 } });
  const call = async (): Promise<void> => {
    const { reply } = await pool.run({ interface: subject.interface, function: subject.function, arguments: JSON.stringify(subject.args) });
    if (reply.kind !== "answer") throw new Error(`${subject.what}: ${JSON.stringify(reply)}`);
  };
  const samples = await oneAtATime(2000, 500, call);
  const rate = await atOnce(5000, 4, call);
  await pool.close();
  return [
    { name: `fresh instance a call, ${subject.what}, one worker`, value: rate, unit: "calls/s", aim: subject.aim },
    { name: `the same, one at a time, p50`, value: percentile(samples, 0.5), unit: "ms", aim: null },
  ];
};
