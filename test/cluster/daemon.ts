import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Stalled } from "../../src/api/errors.ts";
import { becomes } from "./becomes.ts";

/** Processes that outlive the command that started them: each has a pid file, a log file, and is ended by its pid. */
export interface Daemons {
  /** Folder of the pid files. */
  readonly pids: string;
  readonly logs: string;
}

export interface Command {
  readonly name: string;
  readonly argv: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Pids are used again, so a process is known by its start time as well: clock ticks since boot, field 22 of `/proc/PID/stat`. Null for one that is gone
 * or ended and only waits for its parent.
 */
const startTime = (pid: number): string | null => {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && (thrown.code === "ENOENT" || thrown.code === "ESRCH")) return null;
    throw thrown;
  }
  // The second field is a name in parentheses that may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" ? null : (fields[19] ?? null);
};

interface Process {
  readonly pid: number;
  readonly started: string;
}

const pidFile = (daemons: Daemons, name: string): string => join(daemons.pids, `${name}.pid`);

const known = async (daemons: Daemons, name: string): Promise<Process | null> => {
  const path = pidFile(daemons, name);
  if (!existsSync(path)) return null;
  const [pid, started] = (await readFile(path, "utf8")).trim().split(" ");
  return pid && started ? { pid: Number(pid), started } : null;
};

const lives = ({ pid, started }: Process): boolean => startTime(pid) === started;

export const isRunning = async (daemons: Daemons, name: string): Promise<boolean> => {
  const process = await known(daemons, name);
  return process !== null && lives(process);
};

/** Starts it in a session of its own unless it runs already. */
export const startDaemon = async (daemons: Daemons, { name, argv: [file, ...args], env }: Command): Promise<void> => {
  if (await isRunning(daemons, name)) return;
  await mkdir(daemons.pids, { recursive: true });
  await mkdir(daemons.logs, { recursive: true });
  const log = await open(join(daemons.logs, `${name}.log`), "a");
  try {
    const child = spawn(file, args, { detached: true, stdio: ["ignore", log.fd, log.fd], env: { ...process.env, ...env } });
    await once(child, "spawn");
    const { pid } = child;
    const started = pid === undefined ? null : startTime(pid);
    if (pid === undefined || started === null) throw new Stalled("DaemonEnded", `${name} ended at once: ${await lastLines(daemons, name)}`);
    await writeFile(pidFile(daemons, name), `${pid} ${started}\n`);
    child.unref();
  } finally {
    await log.close();
  }
};

/** How long a daemon may take to go once it is killed. */
const killedWithinMs = 10_000;

/** Ends those of the named that run, all at once, and waits until they are gone; one that takes longer than `graceMs` to end by itself is killed. */
export const stopDaemons = async (daemons: Daemons, names: readonly string[], graceMs = 10_000): Promise<void> => {
  await Promise.all(
    names.map(async (name) => {
      const process = await known(daemons, name);
      if (process === null) return;
      await end(process, graceMs);
      await rm(pidFile(daemons, name), { force: true });
    }),
  );
};

const end = async (process_: Process, graceMs: number): Promise<void> => {
  signal(process_, "SIGTERM");
  if (await isGone(process_, graceMs)) return;
  signal(process_, "SIGKILL");
  await isGone(process_, killedWithinMs);
};

const signal = (process_: Process, name: NodeJS.Signals): void => {
  if (lives(process_)) process.kill(process_.pid, name);
};

const isGone = (process_: Process, withinMs: number): Promise<boolean> => becomes(() => Promise.resolve(!lives(process_)), withinMs);

/** Every daemon that has a pid file, running or not. */
export const daemonNames = (daemons: Daemons): string[] =>
  existsSync(daemons.pids)
    ? readdirSync(daemons.pids)
        .filter((file) => file.endsWith(".pid"))
        .map((file) => file.slice(0, -".pid".length))
        .sort()
    : [];

/** The end of a daemon's log, for a message. */
export const lastLines = async (daemons: Daemons, name: string): Promise<string> => {
  const path = join(daemons.logs, `${name}.log`);
  return existsSync(path) ? (await readFile(path, "utf8")).trimEnd().split("\n").slice(-8).join("\n") : "(no log)";
};
