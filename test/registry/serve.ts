import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { messageOf } from "../../src/api/errors.ts";
import { buildRegistry, registryBinary } from "./binary.ts";

/** A registry process of its own, listening on loopback. */
export interface RunningRegistry extends AsyncDisposable {
  /** `localhost:PORT`, as it stands in image references. */
  readonly registry: string;
}

/** The reason why there is no registry to test against, or null once there is one. */
export const whyNoRegistry = async (): Promise<string | null> => {
  try {
    await buildRegistry(() => {});
    return null;
  } catch (thrown) {
    return messageOf(thrown);
  }
};

/** Starts the registry that `buildRegistry` made; it keeps what it is given in memory. Rejects if it ends before it listens. */
export const startRegistry = async (): Promise<RunningRegistry> => {
  const child = spawn(registryBinary, ["-port", "0"], { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  const port = await Promise.race([
    listeningPort(child.stderr),
    exited.then(([code]) => Promise.reject(new Error(`the registry ended with ${code}`))),
  ]);
  return {
    registry: `localhost:${port}`,
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await exited;
    },
  };
};

/** The process goes on logging, so its output is read to the end. */
const listeningPort = (log: NodeJS.ReadableStream): Promise<number> => {
  const lines = createInterface(log);
  return new Promise((resolve) => {
    lines.on("line", (line) => {
      const port = /serving on port ([0-9]+)/.exec(line)?.[1];
      if (port !== undefined) resolve(Number(port));
    });
  });
};
