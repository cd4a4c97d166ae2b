import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { isJsonObject, type JsonValue, parseJson } from "../../src/api/json.ts";
import { type ToolListing, type UntypedTool, untypedInterface } from "../../src/api/untyped.ts";
import { definitionDigest } from "../../src/grants/definition.ts";
import { readListing } from "../../src/grants/listing.ts";
import { type HostAnswer, type HostSetup, type HostUnderTest, startHost } from "./host-under-test.ts";

export const bridgePath = fileURLToPath(new URL("../../src/bridge/mcp-bridge.wasm", import.meta.url));

export const bridgeComponent = readFileSync(bridgePath);

/** What a host answers to `POST /v1/listing`. */
export interface Told {
  readonly digest: string | null;
  readonly fault: { readonly code: string; readonly message: string } | null;
  readonly listing: ToolListing | null;
}

/** A real host that runs the bridge to one MCP server. */
export interface Bridged {
  readonly host: HostUnderTest;
  ask(known?: string | null, waitMs?: number): Promise<Told>;
  /** Calls a tool as it is defined in the list, or as it was. */
  call(name: string, args?: object, as?: UntypedTool): Promise<HostAnswer>;
  stop(): Promise<unknown>;
}

/**
 * `target` is `127.0.0.1:PORT`, `path` of the MCP endpoint. The bridge knows the server as `localhost`: servers that
 * fear DNS rebinding take no other name.
 */
export const bridgeTo = async (target: string, setup: Partial<HostSetup> & { readonly path?: string } = {}): Promise<Bridged> => {
  const { path = "/mcp", config, ...rest } = setup;
  const authority = "localhost";
  const host = await startHost({
    component: bridgeComponent,
    ...rest,
    config: {
      allowedHosts: [`http://${authority}`],
      hostOverrides: { [`${authority}:80`]: target },
      callsPerInstance: 1000,
      ...config,
      environment: { MCP_URL: `http://${authority}${path}`, ...config?.environment },
    },
  });
  let last: ToolListing | null = null;
  const ask: Bridged["ask"] = async (known = null, waitMs = 20_000) => {
    const request = host.signedByRoot({ kind: "listing", boot: host.boot, known, waitMs });
    const { body } = await host.request("POST", "/v1/listing", request);
    const listing: JsonValue = parseJson(JSON.stringify(body.listing));
    if (isJsonObject(listing)) last = readListing(listing);
    return { digest: body.digest, fault: body.fault, listing: isJsonObject(listing) ? last : null };
  };
  const call: Bridged["call"] = async (name, args = {}, as) => {
    if (as === undefined) last ??= (await ask()).listing;
    const tool = as ?? last?.tools.find((one) => one.name === name);
    if (tool === undefined) throw new Error(`${name} is not listed`);
    const body = JSON.stringify(args);
    const ticket = host.ticketFor(body, { interface: untypedInterface, function: name }, { definition: definitionDigest(tool) });
    return host.request("POST", "/v1/call", body, { "ambit-ticket": ticket });
  };
  return { host, ask, call, stop: () => host.stop() };
};

/** A server of MCP in a process of its own. */
export interface ServerProcess {
  /** `127.0.0.1:PORT`. */
  readonly target: string;
  readonly port: number;
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
};

/** Runs a module that serves MCP at the port in its environment, and waits until it listens. */
export const startServer = async (module: string, args: readonly string[] = [], port?: number): Promise<ServerProcess> => {
  const chosen = port ?? (await freePort());
  const child = spawn(process.execPath, [module, ...args], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, PORT: String(chosen), NODE_NO_WARNINGS: "1" },
  });
  const deadline = Date.now() + 20_000;
  for (let listens = false; !listens; ) {
    if (child.exitCode !== null) throw new Error(`${module} ended with code ${child.exitCode}`);
    if (Date.now() > deadline) throw new Error(`${module} did not listen at ${chosen}`);
    listens = await fetch(`http://127.0.0.1:${chosen}/`, { signal: AbortSignal.timeout(2000) }).then(
      () => true,
      () => new Promise<false>((passed) => setTimeout(passed, 50, false)),
    );
  }
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  };
  return { target: `127.0.0.1:${chosen}`, port: chosen, child, stop };
};

/** How the bridge is given to `prepareFolder`. */
export const reachOf = (target: string) => ({
  localResources: { allowedHosts: ["http://localhost"], environment: { config: { MCP_URL: "http://localhost/mcp" } } },
  hostOptions: ["--resolve", `localhost:80=${target}`],
});

export const everythingServer = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));

/** The conformance suite's own server, which speaks the stateless protocol and the one with sessions. */
export const conformanceServer = fileURLToPath(new URL("../fixtures/mcp-servers/conformance-suite/everything-server.ts", import.meta.url));
