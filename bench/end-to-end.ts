import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Client, Pool } from "undici";
import type { RunningUp } from "../test/support/ambit-command.ts";
import { prepareFolder, residentMegabytes, token } from "../test/support/served-folder.ts";
import { atOnce, type Figure, oneAtATime, percentile } from "./measure.ts";

const fixtures = fileURLToPath(new URL("../test/fixtures/components/", import.meta.url));
const body = JSON.stringify({ name: "list_issues", arguments: { repo: "octo/spoon", state: "open" } });

const call = (client: Client | Pool) => async (): Promise<void> => {
  const response = await client.request({
    method: "POST",
    path: "/v1/calls",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body,
  });
  const answer = await response.body.text();
  if (!answer.includes('"outcome":"ok"')) throw new Error(`the call was not answered: ${answer.slice(0, 300)}`);
};

/** `up` from nothing to the first answered call, then calls one at a time and eight at once, and what the host's process holds. */
export const endToEndFigures = async (): Promise<Figure[]> => {
  const prepared = await prepareFolder(join(fixtures, "mission.wasm"));
  try {
    const cold = await timedStart(prepared.start);
    await cold.served.stop();
    const warm = await timedStart(prepared.start);
    const { served } = warm;
    const client = new Client(served.url);
    const pool = new Pool(served.url, { connections: 8, pipelining: 1 });
    const samples = await oneAtATime(3000, 500, call(client));
    await atOnce(1000, 8, call(pool));
    const rate = await atOnce(10_000, 8, call(pool));
    const host = served.events.find(({ event }) => event === "host-ready")?.pid ?? 0;
    const busyMemory = await residentMegabytes(host);
    await setTimeout(2000);
    const memory = await residentMegabytes(host);
    await client.close();
    await pool.close();
    await served.stop();
    return [
      { name: "start of `up` to first call, nothing cached", value: cold.ms, unit: "ms", aim: { atMost: 2000 } },
      { name: "start of `up` to first call, warm cache", value: warm.ms, unit: "ms", aim: { atMost: 1000 } },
      { name: "call end to end over HTTP, one at a time, p50", value: percentile(samples, 0.5), unit: "ms", aim: { atMost: 1 } },
      { name: "call end to end over HTTP, one at a time, p99", value: percentile(samples, 0.99), unit: "ms", aim: null },
      { name: "calls end to end, 8 at once", value: rate, unit: "calls/s", aim: { atLeast: 2000 } },
      { name: "host process, resident right after 14,000 calls", value: busyMemory, unit: "MB", aim: null },
      { name: "host process, resident 2 s later", value: memory, unit: "MB", aim: { atMost: 90 } },
    ];
  } finally {
    await prepared.remove();
  }
};

const timedStart = async (start: () => Promise<RunningUp>): Promise<{ ms: number; served: RunningUp }> => {
  const started = performance.now();
  const served = await start();
  const client = new Client(served.url);
  await call(client)();
  const ms = performance.now() - started;
  await client.close();
  return { ms, served };
};
