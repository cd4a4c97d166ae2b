import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Agent, request } from "undici";
import type { EdgeReport } from "./server-process.ts";

type Holds = Extract<EdgeReport, { kind: "holds" }>;

/** The server of server-process.ts, and what it told. */
export interface EdgeServer {
  readonly port: number;
  readonly hostUrl: string;
  readonly sent: readonly { readonly ticket: string; readonly body: string }[];
  readonly faults: readonly string[];
  readonly holds: () => Promise<Holds>;
  readonly stop: () => Promise<void>;
}

export const startEdgeServer = async (): Promise<EdgeServer> => {
  const cacheFolder = await mkdtemp(join(tmpdir(), "ambit-edge-"));
  const child = fork(fileURLToPath(new URL("server-process.ts", import.meta.url)), [cacheFolder]);
  const sent: { ticket: string; body: string }[] = [];
  const faults: string[] = [];
  child.on("message", (report: EdgeReport) => {
    if (report.kind === "sent") sent.push(report);
    if (report.kind === "fault") faults.push(report.message);
  });
  const { port, hostUrl } = await nextReport(child, "listening");
  const holds = (): Promise<Holds> => {
    child.send("holds");
    return nextReport(child, "holds");
  };
  const stop = async (): Promise<void> => {
    const ended = once(child, "exit");
    child.disconnect();
    await ended;
    await rm(cacheFolder, { recursive: true });
  };
  return { port, hostUrl, sent, faults, holds, stop };
};

const nextReport = <Kind extends EdgeReport["kind"]>(child: ChildProcess, kind: Kind): Promise<Extract<EdgeReport, { kind: Kind }>> =>
  new Promise((resolve, reject) => {
    const hear = (report: EdgeReport): void => {
      if (report.kind !== kind) return;
      child.off("message", hear).off("exit", ended);
      resolve(report as Extract<EdgeReport, { kind: Kind }>);
    };
    const ended = (): void => reject(new Error("the server's process ended"));
    child.on("message", hear).once("exit", ended);
  });

/** What a bystander saw who called the tool all along, each time on a new connection. */
export interface Bystander {
  readonly stop: () => Promise<{ readonly answered: number; readonly failures: readonly string[] }>;
}

export const startBystander = (port: number): Bystander => {
  let isStopping = false;
  let answered = 0;
  const failures: string[] = [];
  const call = async (): Promise<void> => {
    const dispatcher = new Agent({ connections: 1 });
    try {
      const { statusCode, body } = await request(`http://127.0.0.1:${port}/v1/calls`, {
        method: "POST",
        headers: { authorization: "Bearer neighbour", "content-type": "application/json" },
        body: JSON.stringify({ name: "echo", arguments: { text: "hello" } }),
        dispatcher,
      });
      const text = await body.text();
      if (statusCode === 200 && text.includes('"outcome":"ok"')) answered++;
      else failures.push(`${statusCode} ${text}`);
    } catch (thrown) {
      failures.push(String(thrown));
    } finally {
      await dispatcher.close();
    }
  };
  const running = (async () => {
    do {
      await call();
      await wait(20);
    } while (!isStopping);
  })();
  const stop = async () => {
    isStopping = true;
    await running;
    return { answered, failures };
  };
  return { stop };
};

/** A connection that writes what it is told, and what it heard by the time it was closed. */
export const rawConnection = (port: number, localAddress = "127.0.0.1"): { readonly socket: Socket; readonly heard: Promise<string> } => {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  // A reset is one way for a server to close.
  socket.on("error", () => undefined);
  const heard = new Promise<string>((resolve) => socket.once("close", () => resolve(text)));
  return { socket, heard };
};

/** Writes the piece so often, as fast as it is taken, or until the connection is closed. */
export const writeOften = async (
  { socket, heard }: ReturnType<typeof rawConnection>,
  piece: string | Uint8Array,
  times: number,
): Promise<void> => {
  for (let written = 0; written < times && !socket.destroyed; written++) {
    if (socket.write(piece)) continue;
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.once("drain", resolve);
    await Promise.race([promise, heard]);
    socket.off("drain", resolve);
  }
};

export const head = (lines: readonly string[], target = "POST /v1/calls"): string =>
  `${[`${target} HTTP/1.1`, "host: localhost", "authorization: Bearer attacker", "content-type: application/json", ...lines].join("\r\n")}\r\n\r\n`;
