import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { freePorts } from "../cluster/free-ports.ts";

/** Debian's package that has one of the programs. */
export const storePackage = "redis-server";

const programs = ["valkey-server", "redis-server"];

/** Valkey or Redis on this machine, or null. */
export const storeProgram = (): string | null =>
  programs
    .flatMap((program) => (process.env.PATH ?? "").split(":").map((folder) => join(folder, program)))
    .find((file) => existsSync(file)) ?? null;

export const whyNoStore = (): string | null =>
  storeProgram() === null ? `neither ${programs.join(" nor ")} is installed; Debian's package is ${storePackage}` : null;

/** A store of its own on loopback, which keeps nothing on disk. */
export interface RunningStore extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** It goes on to take connections and bytes, and answers nothing, until `thaw`. */
  freeze(): void;
  thaw(): void;
  stop(): Promise<void>;
}

/** Starts a store on a port that is free, or on the one given; rejects where it does not take connections. */
export const startStore = async ({
  port,
  password,
  user,
}: {
  readonly port?: number;
  readonly password?: string;
  readonly user?: string;
} = {}): Promise<RunningStore> => {
  const program = storeProgram();
  if (program === null) throw new Error(whyNoStore() ?? "");
  const [free = 0] = port === undefined ? await freePorts(1) : [port];
  const folder = await mkdtemp(join(tmpdir(), "ambit-store-"));
  const settings = ["--port", String(free), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder];
  const child = spawn(program, [...settings, ...accessSettings(password, user)], { stdio: "ignore" });
  const exited = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill("SIGCONT");
    child.kill("SIGKILL");
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  const until = performance.now() + 10_000;
  while (!(await takesConnections(free))) {
    if (performance.now() < until && child.exitCode === null) await wait(20);
    else {
      await stop();
      throw new Error(`${program} does not listen on port ${free}`);
    }
  }
  return {
    port: free,
    url: `redis://127.0.0.1:${free}`,
    freeze: () => void child.kill("SIGSTOP"),
    thaw: () => void child.kill("SIGCONT"),
    stop,
    [Symbol.asyncDispose]: stop,
  };
};

/** What docs/catalogue.md says that a user needs. */
const neededCommands = ["eval", "evalsha", "time", "hgetall", "hexists", "hincrby", "hdel", "pexpire", "hello", "client|setname"];

/** A password for everybody, or a user of that name and nobody else. */
const accessSettings = (password?: string, user?: string): string[] => {
  if (password === undefined) return [];
  if (user === undefined) return ["--requirepass", password];
  return ["--user", user, "on", `>${password}`, "~ambit:*", ...neededCommands.map((command) => `+${command}`), "--user", "default", "off"];
};

const takesConnections = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
