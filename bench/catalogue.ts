import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Client } from "undici";
import { AmbitClient } from "../src/client/client.ts";
import { broadAgent, callerCount, everyAgent, grantCount, type Order, type Report } from "./catalogue-replica.ts";
import { type Figure, oneAtATime, percentile } from "./measure.ts";

const scene = `${grantCount.toLocaleString("en-US")} grants, ${callerCount.toLocaleString("en-US")} callers`;

/** What callers wait for when a catalogue is large, what it holds, and how soon a change is seen, on replicas that are processes of their own. */
export const catalogueFigures = async (): Promise<Figure[]> => {
  const replicas = await Promise.all([startReplica(), startReplica()]);
  try {
    const [replica, other] = replicas;
    const lists = await listFigures(replica);
    const searches = await searchFigures(replica);
    const memory = await memoryOf(replica);
    const changes = await changeMilliseconds([replica, other]);
    return [
      ...lists,
      ...searches,
      { name: `catalogue process, ${scene}, all of them served, resident`, value: memory, unit: "MB", aim: { atMost: 400 } },
      {
        name: "a grant's change, from the watch event until both replicas told it, p50",
        value: percentile(changes, 0.5),
        unit: "ms",
        aim: { atMost: 100 },
      },
      { name: "the same, p99", value: percentile(changes, 0.99), unit: "ms", aim: null },
    ];
  } finally {
    for (const { child } of replicas) child.disconnect();
  }
};

interface Replica {
  readonly child: ChildProcess;
  readonly url: string;
}

const startReplica = async (): Promise<Replica> => {
  const child = fork(fileURLToPath(new URL("catalogue-replica.ts", import.meta.url)));
  const report = await nextReport(child);
  if (report.kind !== "listening") throw new Error(`the replica says ${report.kind} first`);
  return { child, url: `http://127.0.0.1:${report.port}` };
};

const nextReport = async (child: ChildProcess): Promise<Report> => {
  const [report] = (await once(child, "message")) as [Report];
  return report;
};

const order = (child: ChildProcess, what: Order): void => void child.send(what);

const memoryOf = async ({ child }: Replica): Promise<number> => {
  order(child, { kind: "memory" });
  const report = await nextReport(child);
  return report.kind === "memory" ? report.megabytes : Number.NaN;
};

const listFigures = async ({ url }: Replica): Promise<Figure[]> => {
  const client = new Client(url);
  const list = async (agent: string, known?: string, format = "anthropic"): Promise<{ status: number; etag: string; bytes: number }> => {
    const { statusCode, headers, body } = await client.request({
      method: "GET",
      path: `/v1/declarations?format=${format}`,
      headers: { authorization: `Bearer ${agent}`, ...(known !== undefined && { "if-none-match": known }) },
    });
    return { status: statusCode, etag: String(headers.etag), bytes: (await body.arrayBuffer()).byteLength };
  };
  // Warms the code; what is measured then is made for the first time.
  await oneAtATime(100, 0, async (run) => void (await list(`agent-${run}`, undefined, "openai-chat")));
  const first = await oneAtATime(callerCount, 0, async (run) => void (await list(`agent-${run}`)));
  const again = await oneAtATime(2 * callerCount, 100, async (run) => void (await list(`agent-${run % callerCount}`)));
  const { etag } = await list("agent-7");
  const notModified = await oneAtATime(2000, 200, async () => {
    const { status } = await list("agent-7", etag);
    if (status !== 304) throw new Error(`status ${status} instead of 304`);
  });
  const [broadFirst = Number.NaN] = await oneAtATime(1, 0, async () => void (await list(broadAgent)));
  const broad = await oneAtATime(500, 50, async () => void (await list(broadAgent)));
  await client.close();
  return [
    { name: `list of 100 tools, ${scene}: each caller's first, p50`, value: percentile(first, 0.5), unit: "ms", aim: { atMost: 2 } },
    { name: "each caller's first, p99", value: percentile(first, 0.99), unit: "ms", aim: { atMost: 10 } },
    { name: "each caller's next, p50", value: percentile(again, 0.5), unit: "ms", aim: { atMost: 2 } },
    { name: "each caller's next, p99", value: percentile(again, 0.99), unit: "ms", aim: { atMost: 10 } },
    { name: "list of 1,000 tools, the first", value: broadFirst, unit: "ms", aim: null },
    { name: "list of 1,000 tools, the next, p50", value: percentile(broad, 0.5), unit: "ms", aim: { atMost: 2 } },
    { name: "list of 1,000 tools, the next, p99", value: percentile(broad, 0.99), unit: "ms", aim: null },
    { name: "list of 100 tools that the caller has (304), p50", value: percentile(notModified, 0.5), unit: "ms", aim: { atMost: 0.5 } },
  ];
};

const questions = [
  "list open issues",
  "create invoice",
  "calendar events of next week",
  "archive documnts",
  "deployment of the build",
  "records of system 42",
];

const searchFigures = async ({ url, child }: Replica): Promise<Figure[]> => {
  const client = new Client(url);
  const search = async (agent: string, run: number): Promise<void> => {
    const { body } = await client.request({
      method: "GET",
      path: `/v1/search?format=anthropic&q=${encodeURIComponent(questions[run % questions.length] ?? "")}`,
      headers: { authorization: `Bearer ${agent}` },
    });
    const { hits } = (await body.json()) as { hits: unknown[] };
    if (hits.length === 0) throw new Error("nothing was found");
  };
  const first = await oneAtATime(callerCount, 0, (run) => search(`agent-${run}`, run));
  const [everyFirst = Number.NaN] = await oneAtATime(1, 0, (run) => search(everyAgent, run));
  const every = await oneAtATime(300, 30, (run) => search(everyAgent, run));
  const changed = await oneAtATime(50, 5, async (run) => {
    order(child, { kind: "change", grant: 5_000 + run, revision: 1 });
    await search(everyAgent, run);
  });
  await client.close();
  return [
    { name: "search among 100 tools, each caller's first, p50", value: percentile(first, 0.5), unit: "ms", aim: { atMost: 5 } },
    { name: "search among 10,000 tools, the first", value: everyFirst, unit: "ms", aim: null },
    { name: "search among 10,000 tools, p50", value: percentile(every, 0.5), unit: "ms", aim: { atMost: 5 } },
    { name: "search among 10,000 tools, p99", value: percentile(every, 0.99), unit: "ms", aim: null },
    { name: "search among 10,000 tools, after one changed, p50", value: percentile(changed, 0.5), unit: "ms", aim: null },
  ];
};

/** From telling all replicas of a change until a watch at each has told it. */
const changeMilliseconds = async (replicas: readonly Replica[]): Promise<number[]> => {
  const ended = new AbortController();
  const told = replicas.map(({ url }) => new AmbitClient({ url, token: "agent-7" }).watch("anthropic", {}, ended.signal));
  await Promise.all(told.map((watch) => watch.next()));
  const samples = await oneAtATime(100, 5, async (run) => {
    for (const { child } of replicas) order(child, { kind: "change", grant: 7, revision: run + 1 });
    await Promise.all(told.map((watch) => watch.next()));
  });
  ended.abort();
  return samples;
};
