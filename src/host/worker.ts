import { parentPort, workerData } from "node:worker_threads";
import { GuestCalls } from "./guest-calls.ts";
import { guestImports } from "./guest-imports.ts";
import type { Instantiate } from "./tool-instance.ts";
import type { FromWorker, ToWorker, WorkerSetup } from "./worker-protocol.ts";

const idleMs = 500;

/**
 * A worker thread: one component, one call in flight. It knows no deadline, because a guest that spins leaves it no turn to look at a clock: the host ends
 * the whole thread.
 */
const start = async (setup: WorkerSetup): Promise<void> => {
  const port = parentPort;
  if (port === null) throw new Error("this module is a worker's; it isn't run by itself");
  const tell = (message: FromWorker): void => port.postMessage(message);
  const { instantiate } = (await import(setup.source)) as { instantiate: Instantiate };
  const guests = guestImports(setup.wasi, setup.component.imports, (line) => tell({ kind: "log", line }));
  const collectGarbage = (all: boolean): void => {
    if (all) globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
    else globalThis.gc?.();
  };
  const calls = new GuestCalls({
    ...setup,
    instantiate,
    makeImports: () => guests.make(),
    collectGarbage,
    residentBytes: process.memoryUsage.rss,
  });
  tell({ kind: "loaded" });
  try {
    calls.prepare(setup.ready);
  } catch (error) {
    tell({ kind: "unstartable", failure: calls.startFailure(error) });
    return;
  }
  // Between calls that follow one another closely only much garbage is collected; when none follows, all of it.
  const whenIdle = setTimeout(() => calls.collectAll(), idleMs);
  port.on("message", async (message: ToWorker) => {
    if (message.kind === "addresses") {
      guests.dialOnly(message.table);
      return;
    }
    if (message.kind === "hop") {
      guests.hopTo(message.reach);
      return;
    }
    if (message.kind === "ping") {
      tell({ kind: "pong" });
      return;
    }
    const reply = await calls.run(message);
    tell({ kind: "reply", reply });
    whenIdle.refresh();
    setImmediate(() => {
      calls.collect();
      prepareQuietly(calls, setup.ready);
    });
  });
  tell({ kind: "ready" });
};

/** Makes the next call's instance. Where that fails the next call finds out, and says so. */
const prepareQuietly = (calls: GuestCalls, count: number): void => {
  try {
    calls.prepare(count);
  } catch {
    // Not reported from here: no call is waiting, and the next one instantiates again and carries the reason.
  }
};

await start(workerData as WorkerSetup);
