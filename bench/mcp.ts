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
  arguments: { text: "Ada" },
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

const oneCalls = 5_000;
const atOnceCalls = 20_000;

/**
 * `tools/call` of MCP 2026-07-28 to an echo tool with everything on, grants, tickets, a fresh instance a call and the journal, by a bare HTTP client over
 * connections that stay open.
 */
export const mcpFigures = async (): Promise<Figure[]> => {
  const prepared = await prepareFolder(saying);
  try {
    const served = await prepared.start();
    const figures = await measured(served);
    await served.stop();
    return figures;
  } finally {
    await prepared.remove();
  }
};

const measured = async (served: RunningUp): Promise<Figure[]> => {
  const catalogue = served.process.pid ?? 0;
  const host = served.events.find(({ event }) => event === "host-ready")?.pid ?? 0;
  const client = new Client(served.url);
  const pool = new Pool(served.url, { connections: 8, pipelining: 1 });
  const samples = await oneAtATime(oneCalls, 1_000, call(client));
  await atOnce(2_000, 8, call(pool));
  const filesBefore = await descriptors(catalogue);
  const rate = await atOnce(atOnceCalls, 8, call(pool));
  const filesAfter = await descriptors(catalogue);
  const busy = await residentMegabytes(catalogue);
  await setTimeout(2_000);
  const hostMemory = await residentMegabytes(host);
  await client.close();
  await pool.close();
  return [
    { name: "MCP `tools/call` to an echo, one at a time, p50", value: percentile(samples, 0.5), unit: "ms", aim: { atMost: 0.7 } },
    { name: "the same, p99", value: percentile(samples, 0.99), unit: "ms", aim: null },
    { name: "MCP calls, 8 at once", value: rate, unit: "calls/s", aim: { atLeast: 2_500 } },
    { name: "catalogue process, resident after them", value: busy, unit: "MB", aim: { atMost: 120 } },
    { name: "host process, resident 2 s later", value: hostMemory, unit: "MB", aim: { atMost: 120 } },
    { name: "descriptors that 20,000 calls left open", value: filesAfter - filesBefore, unit: "", aim: { atMost: 0 } },
  ];
};
