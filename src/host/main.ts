import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { availableParallelism } from "node:os";
import { messageOf } from "../api/errors.ts";
import type { HostConfig } from "../api/host.ts";
import { hostServer } from "./server.ts";
import { servingServer } from "./serving/serving-server.ts";
import { ToolHost } from "./tool-host.ts";

/** How long running calls may go on after a host was asked to end: in a pod, whose grace period has room for it, as long as any call may. */
const shutdownGraceMs = ({ transport, limits }: HostConfig): number => (transport === "tls" ? limits.timeoutMs : 10_000);

/** The first line that a host prints. */
export interface Listening {
  readonly listening: Place;
  /** Where a component that serves HTTP takes requests. */
  readonly serving?: Place;
}

interface Place {
  readonly address: string;
  readonly port: number;
}

/**
 * Serves one component until `signal` aborts, then lets running calls finish. Prints one JSON line with the bound address on standard output, and the
 * guest's own output as JSON lines after it.
 *
 * Rejects where the address can't be bound or the configuration's root key is none. A component in the cache that no longer loads is reported on
 * standard error and awaited anew.
 */
export const runHost = async (config: HostConfig, signal: AbortSignal): Promise<void> => {
  const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
  const tls = config.transport === "tls" ? new (await import("./tls-listener.ts")).TlsListener() : undefined;
  const host = new ToolHost(config, {
    now: () => performance.now(),
    log: (line) => print({ guest: line }),
    cores: availableParallelism(),
    present: tls?.present,
  });
  const server = hostServer(host, tls?.serve);
  const listening = await listen(server, config.listen);
  const serving =
    config.serve && servingServer(host, { served: (served) => print({ served }), drainMs: config.limits.timeoutMs }, tls?.serve);
  const line: Listening = { listening, ...(serving && config.serve && { serving: await listen(serving, config.serve) }) };
  print(line);
  host.resume().catch((error: unknown) => print({ error: "the cached component was not loaded", reason: messageOf(error) }));
  await aborted(signal);
  await host.close(shutdownGraceMs(config));
  await Promise.all([server, ...(serving ? [serving] : [])].map(closed));
};

const listen = async (server: Server, { port, address }: Place): Promise<Place> => {
  await new Promise<void>((listening, failed) => {
    server.once("error", failed);
    server.listen(port, address, listening);
  });
  const bound = server.address() as AddressInfo;
  return { address: bound.address, port: bound.port };
};

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
