import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const entry = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs one command as a person would, without a terminal. */
export const ambit = async (
  args: readonly string[],
  options: { readonly folder?: string; readonly env?: Record<string, string> } = {},
): Promise<CommandResult> => {
  const child = spawn(process.execPath, [entry, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: options.folder ?? process.cwd(),
    env: { ...process.env, ...options.env },
  });
  const [out, err] = [textOf(child.stdout), textOf(child.stderr)];
  const [code] = await once(child, "close");
  return { code, out: out(), err: err() };
};

const textOf = (stream: NodeJS.ReadableStream): (() => string) => {
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  return () => text;
};

export interface UpEvent {
  readonly event: string;
  readonly url?: string;
  readonly pid?: number;
  readonly [key: string]: unknown;
}

/** A running `ambit up --json`. */
export interface RunningUp {
  readonly url: string;
  readonly process: ChildProcess;
  readonly events: readonly UpEvent[];
  /** The first event from now on, or from `since`, that is wanted. Rejects after the deadline, with the events that came. */
  readonly waitFor: (wanted: (event: UpEvent) => boolean, since?: number) => Promise<UpEvent>;
  readonly stop: () => Promise<void>;
}

const deadlineMs = 30_000;

/** Starts `up` on a free port and waits until it has looked at its folder once. */
export const startUp = async (folder: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<RunningUp> => {
  const child = spawn(process.execPath, [entry, "up", folder, "--port", "0", "--json", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  const errors = textOf(child.stderr);
  const events: UpEvent[] = [];
  const waiters = new Set<() => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    events.push(JSON.parse(line) as UpEvent);
    for (const wake of waiters) wake();
  });
  child.once("exit", () => {
    for (const wake of waiters) wake();
  });
  const waitFor = async (wanted: (event: UpEvent) => boolean, since = events.length): Promise<UpEvent> => {
    const timeout = AbortSignal.timeout(deadlineMs);
    for (let next = since; ; ) {
      for (; next < events.length; next++) {
        const event = events[next];
        if (event && wanted(event)) return event;
      }
      if (child.exitCode !== null) throw new Error(`up ended with code ${child.exitCode}: ${errors()}`);
      if (timeout.aborted) throw new Error(`no such event came: ${events.map((event) => JSON.stringify(event)).join("\n")}\n${errors()}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      waiters.add(resolve);
      timeout.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      waiters.delete(resolve);
    }
  };
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  };
  try {
    const listening = await waitFor(({ event }) => event === "listening", 0);
    await waitFor(({ event }) => event === "settled", 0);
    return { url: String(listening.url), process: child, events, waitFor, stop };
  } catch (error) {
    await stop();
    throw error;
  }
};
