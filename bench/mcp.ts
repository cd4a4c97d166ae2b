import { readdir } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, Pool } from "undici";
import type { RunningUp } from "../test/support/ambit-command.ts";
import { prepareFolder, residentMegabytes, token } from "../test/support/served-folder.ts";
import { atOnce, type Figure, oneAtATime, percentile } from "./measure.ts";

const saying = fileURLToPath(new URL("../test/fixtures/components/saying.wasm", import.meta.url));
const tool = "say";
const params = {
  name: tool,
  arguments: { text: "Ada Lovelace" },
  _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} },
};

const headers = {
  authorization: `Bearer ${token}`,
  accept: "application/json, text/event-stream",
  "content-type": "application/json",
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": tool,
};

const call =
  (client: Client | Pool) =>
  async (id: number): Promise<void> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params });
    const response = await client.request({ method: "POST", path: "/mcp", headers, body });
    const answer = await response.body.text();
    if (!answer.includes('"isError":false')) throw new Error(`the call was not answered: ${answer.slice(0, 300)}`);
  };

/** Open files and sockets of a process (Linux). */
const descriptors = async (pid: number): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length;

const oneCalls = 3_000;
const atOnceCalls = 9_000;

/**
 * `tools/call` of MCP 2026-07-28 to a tool that gives a text back, with everything on: grants, tickets, the journal and, at first, a fresh instance a call; by a
 * bare HTTP client over connections that stay open.
 */
export const mcpFigures = async (): Promise<Figure[]> => [
  ...(await served(1, async (up) => [...(await latencyAndRate(up, "MCP `tools/call`", wanted)), ...(await footprint(up))])),
  ...(await served(100, (up) => latencyAndRate(up, "the same, 100 calls an instance,", null))),
];

const wanted = { p50: { atMost: 0.7 }, rate: { atLeast: 2_500 } } as const;

const served = async (callsPerInstance: number, measure: (up: RunningUp) => Promise<Figure[]>): Promise<Figure[]> => {
  const prepared = await prepareFolder(saying, undefined, callsPerInstance);
  try {
    const up = await prepared.start();
    const figures = await measure(up);
    await up.stop();
    return figures;
  } finally {
    await prepared.remove();
  }
};

const latencyAndRate = async ({ url }: RunningUp, what: string, aims: typeof wanted | null): Promise<Figure[]> => {
  const client = new Client(url);
  const samples = await oneAtATime(oneCalls, 1_000, call(client));
  await client.close();
  return [
    { name: `${what} one at a time, p50`, value: percentile(samples, 0.5), unit: "ms", aim: aims?.p50 ?? null },
    { name: `${what} p99`, value: percentile(samples, 0.99), unit: "ms", aim: null },
    { name: `${what} 8 at once`, value: await rateOf(url), unit: "calls/s", aim: aims?.rate ?? null },
  ];
};

const rateOf = async (url: string): Promise<number> => {
  const pool = new Pool(url, { connections: 8, pipelining: 1 });
  await atOnce(1_000, 8, call(pool));
  const rate = await atOnce(atOnceCalls, 8, call(pool));
  await pool.close();
  return rate;
};

/** What is left of so many calls: memory right after them, and files and sockets that a further lot of them adds. */
const footprint = async ({ url, process, events }: RunningUp): Promise<Figure[]> => {
  const catalogue = process.pid ?? 0;
  const host = events.find(({ event }) => event === "host-ready")?.pid ?? 0;
  const before = [await descriptors(catalogue), await descriptors(host)];
  await rateOf(url);
  const [memory, hostMemory] = [await residentMegabytes(catalogue), await residentMegabytes(host)];
  await setTimeout(2_000);
  const after = [await descriptors(catalogue), await descriptors(host)];
  const left = (after[0] ?? 0) + (after[1] ?? 0) - (before[0] ?? 0) - (before[1] ?? 0);
  return [
    { name: "`ambit up` right after these calls, resident", value: memory, unit: "MB", aim: { atMost: 120 } },
    { name: "its host right after them, resident", value: hostMemory, unit: "MB", aim: { atMost: 120 } },
    { name: "descriptors that 10,000 further calls leave open, both processes", value: left, unit: "", aim: { atMost: 0 } },
  ];
};
