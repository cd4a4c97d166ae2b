import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defaultHostLimits } from "../src/api/host.ts";
import { GuestCalls } from "../src/host/guest-calls.ts";
import { guestImports } from "../src/host/guest-imports.ts";
import type { Instantiate } from "../src/host/tool-instance.ts";
import type { WorkerReply } from "../src/host/worker-protocol.ts";
import { loaded, startComponentPool } from "../test/support/component-pool.ts";
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

/** Calls inside the host, a fresh instance each, without HTTP and tickets. */
export const freshInstanceFigures = async (): Promise<Figure[]> => {
  const figures: Figure[] = [];
  for (const subject of subjects) figures.push(...(await measured(subject)));
  return figures;
};

const measured = async (subject: Subject): Promise<Figure[]> => {
  const bytes = await readFile(join(components, subject.file));
  return [...(await inOneThread(subject, bytes)), await throughAWorker(subject, bytes)];
};

/** An instance made, called and ended, and the garbage collected, in this thread alone: what one core gives. */
const inOneThread = async (subject: Subject, bytes: Uint8Array): Promise<Figure[]> => {
  const { setup, remove } = await loaded(bytes);
  const { instantiate } = (await import(setup.source)) as { instantiate: Instantiate };
  const guests = guestImports(setup.wasi, setup.component.imports, () => undefined);
  const collectGarbage = () => void globalThis.gc?.();
  const residentBytes = process.memoryUsage.rss;
  const calls = new GuestCalls({ ...setup, instantiate, makeImports: () => guests.make(), collectGarbage, residentBytes });
  const samples = await oneAtATime(4000, 500, async () => {
    calls.prepare(1);
    answered(subject, await calls.run(callOf(subject)));
    calls.collect();
  });
  await remove();
  const mean = samples.reduce((sum, ms) => sum + ms, 0) / samples.length;
  return [
    { name: `fresh instance a call, ${subject.what}, one core`, value: 1000 / mean, unit: "calls/s", aim: subject.aim },
    { name: "the same, p50", value: percentile(samples, 0.5), unit: "ms", aim: null },
  ];
};

/** The same with the thread that speaks HTTP beside it, which hands calls to the worker. */
const throughAWorker = async (subject: Subject, bytes: Uint8Array): Promise<Figure> => {
  const pool = await startComponentPool(bytes, { limits: { ...defaultHostLimits, concurrency: 1 } });
  const call = async () => answered(subject, (await pool.run(callOf(subject))).reply);
  await atOnce(500, 4, call);
  const rate = await atOnce(5000, 4, call);
  await pool.close();
  return { name: "the same, through one worker thread", value: rate, unit: "calls/s", aim: null };
};

const callOf = (subject: Subject) => ({
  kind: "call" as const,
  interface: subject.interface,
  function: subject.function,
  arguments: JSON.stringify(subject.args),
});

const answered = (subject: Subject, reply: WorkerReply): void => {
  if (reply.kind !== "answer") throw new Error(`${subject.what}: ${JSON.stringify(reply)}`);
};
