import { fileURLToPath } from "node:url";
import { Client as OfficialClient, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client } from "undici";
import { bridgePath, reachOf, startServer } from "../test/integration/bridge-under-test.ts";
import { prepareFolder, token } from "../test/support/served-folder.ts";
import { type Figure, oneAtATime, percentile } from "./measure.ts";

const server = fileURLToPath(new URL("../test/fixtures/mcp-servers/changing.ts", import.meta.url));
const tool = "nothing";
const runs = 1500;
const warmUp = 500;

/**
 * Calls of a tool that does nothing, of a server on MCP's official library: by the official client directly, and through the catalogue and the bridge with everything
 * on. What the hop costs is the difference, gates, tickets and journal included.
 */
export const bridgeFigures = async (): Promise<Figure[]> => {
  const { target, stop } = await startServer(server);
  const prepared = await prepareFolder(bridgePath, undefined, 1000, reachOf(target));
  try {
    const up = await prepared.start();
    const direct = await byOfficialClient(`http://${target}/mcp`);
    const through = await byOfficialClient(`${up.url}/mcp`);
    const overHttp = await byHttp(up.url);
    await up.stop();
    return [
      ...latency("an MCP server's tool, by the official client directly", direct),
      ...latency("the same through the catalogue and the bridge", through),
      ...latency("the same through both, by a bare HTTP client", overHttp),
    ];
  } finally {
    await prepared.remove();
    await stop();
  }
};

const latency = (name: string, samples: readonly number[]): Figure[] =>
  ([0.5, 0.99] as const).map((share) => ({
    name: `${name}, p${share * 100}`,
    value: percentile(samples, share),
    unit: "ms",
    aim: null,
  }));

const byOfficialClient = async (url: string): Promise<number[]> => {
  const client = new OfficialClient({ name: "bench", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}` } } }));
  const samples = await oneAtATime(runs, warmUp, async () => {
    const { isError } = await client.callTool({ name: tool, arguments: {} });
    if (isError) throw new Error("the call was not answered");
  });
  await client.close();
  return samples;
};

const byHttp = async (url: string): Promise<number[]> => {
  const client = new Client(url);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify({ name: tool, arguments: {} });
  const samples = await oneAtATime(runs, warmUp, async () => {
    const response = await client.request({ method: "POST", path: "/v1/calls", headers, body });
    const answer = await response.body.text();
    if (!answer.includes('"outcome":"ok"')) throw new Error(`the call was not answered: ${answer.slice(0, 300)}`);
  });
  await client.close();
  return samples;
};
