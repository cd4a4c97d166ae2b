import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import type { Ground } from "./ground.ts";

/** Starts a program in the world around the node, at an address that exists as long as the ground does, and waits until it says something: that it listens, say. What it says later can be read. */
export const serveInWorld = async (
  ground: Ground,
  address: string,
  program: readonly string[],
): Promise<ChildProcessByStdio<null, Readable, null>> => {
  const { world } = ground.node;
  await world.addAddress(address);
  const [file = "", ...args] = [...world.command, ...program];
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  ground.atTheEnd(async () => {
    child.kill();
    await exited;
    await world.removeAddress(address);
  });
  await once(child.stdout, "data");
  return child;
};
