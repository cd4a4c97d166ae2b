import { randomFillSync } from "node:crypto";
import type { WitImport } from "../../api/wit.ts";
import { CallContext, defaultWasiBudgets, type WasiOptions } from "./call-context.ts";
import { environmentOf, exit, GuestOutput, noTerminal, stdinOf, TerminalInput, TerminalOutput } from "./cli.ts";
import { systemClock } from "./clock.ts";
import { monotonicClockOf, wallClockOf } from "./clocks.ts";
import { Pollable } from "./poll.ts";
import { guestSuspends, implementationHas, wasiInterface } from "./provided.ts";
import { randomOf } from "./random.ts";
import { InputStream, IoError, OutputStream } from "./streams.ts";

/** What one instance of a component may import, and what to end when its call ends. */
export interface Wasi {
  /** Whether the host has the function or resource, named as in `WitImport`. An interface's types need no provider. */
  readonly provides: (id: string, name: string) => boolean;
  /** Implementations by the import's exact id; ids that are not ours are left out. */
  readonly importsFor: (imports: readonly WitImport[]) => Readonly<Record<string, object>>;
  /** Closes every file, connection and timer, and logs what was written without a line's end. */
  readonly dispose: () => void;
}

type Implementation = Readonly<Record<string, unknown>>;

/** Cheap enough to make for each instance: the classes are shared, an interface is built when a component imports it. */
export const createWasi = (
  given: Pick<WasiOptions, "environment" | "mounts" | "allowedHosts" | "dial" | "log"> & Partial<WasiOptions>,
): Wasi => {
  const options: WasiOptions = {
    denied: () => undefined,
    clock: systemClock,
    random: randomFillSync,
    budgets: defaultWasiBudgets,
    ...given,
  };
  let running: { readonly context: CallContext; readonly output: GuestOutput } | null = null;
  return {
    provides: (id, name) => {
      const key = wasiInterface(id);
      const make = key === null ? undefined : interfaces[key];
      if (make === undefined) return false;
      const context = new CallContext(options, false);
      return implementationHas(make(context, new GuestOutput(context)), name);
    },
    importsFor: (imports) => {
      const context = new CallContext(options, guestSuspends(imports));
      const output = new GuestOutput(context);
      running?.context.end();
      running = { context, output };
      const made: Record<string, object> = {};
      for (const { id } of imports) {
        const make = interfaces[wasiInterface(id) ?? ""];
        if (make !== undefined) made[id] = make(context, output);
      }
      return made;
    },
    dispose: () => {
      running?.output.finish();
      running?.context.end();
      running = null;
    },
  };
};

const interfaces: Readonly<Record<string, (context: CallContext, output: GuestOutput) => Implementation>> = {
  "io/error": () => ({ Error: IoError }),
  "io/poll": () => ({ Pollable, poll: Pollable.poll }),
  "io/streams": () => ({ InputStream, OutputStream }),
  "clocks/monotonic-clock": monotonicClockOf,
  "clocks/wall-clock": wallClockOf,
  "random/random": (context) => randomOf(context).secure,
  "random/insecure": (context) => randomOf(context).insecure,
  "random/insecure-seed": (context) => randomOf(context).seed,
  "cli/environment": environmentOf,
  "cli/exit": () => exit,
  "cli/stdin": stdinOf,
  "cli/stdout": (_, output) => ({ getStdout: () => output.stream("stdout") }),
  "cli/stderr": (_, output) => ({ getStderr: () => output.stream("stderr") }),
  "cli/terminal-input": () => ({ TerminalInput }),
  "cli/terminal-output": () => ({ TerminalOutput }),
  "cli/terminal-stdin": () => noTerminal.stdin,
  "cli/terminal-stdout": () => noTerminal.stdout,
  "cli/terminal-stderr": () => noTerminal.stderr,
};
