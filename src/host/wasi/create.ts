import { randomFillSync } from "node:crypto";
import type { HostUse } from "../../api/host.ts";
import type { WitImport } from "../../api/wit.ts";
import type { Served } from "../guest-calls.ts";
import type { ServedCall } from "../serving/served-messages.ts";
import { CallContext, defaultWasiBudgets, type WasiOptions } from "./call-context.ts";
import { environmentOf, exit, GuestOutput, noTerminal, stdinOf, TerminalInput, TerminalOutput } from "./cli.ts";
import { systemClock } from "./clock.ts";
import { monotonicClockOf, wallClockOf } from "./clocks.ts";
import { Descriptor } from "./filesystem/descriptor.ts";
import { DirectoryEntryStream } from "./filesystem/directory-entry-stream.ts";
import { filesystemErrorCode } from "./filesystem/error-code.ts";
import { preopensOf } from "./filesystem/preopens.ts";
import { httpClient } from "./http/client.ts";
import { httpOf } from "./http/outgoing-handler.ts";
import { ServedExchange } from "./http/served-exchange.ts";
import { IncomingRequest, ResponseOutparam } from "./http/server-side.ts";
import { Pollable } from "./poll.ts";
import { guestSuspends, implementationHas, wasiInterface } from "./provided.ts";
import { randomOf } from "./random.ts";
import { sockets } from "./sockets.ts";
import { InputStream, IoError, OutputStream } from "./streams.ts";

/** What one instance of a component may import, and what to end when its call ends. */
export interface Wasi {
  /** Whether the host has the function or resource, named as in `WitImport`. An interface's types need no provider. */
  readonly provides: (id: string, name: string) => boolean;
  /** Implementations by the import's exact id; ids that are not ours are left out. */
  readonly importsFor: (imports: readonly WitImport[]) => Readonly<Record<string, object>>;
  /** Starts counting anew what one call may use up, for an instance that serves another. */
  readonly renew: () => void;
  /** What `handle` of `wasi:http/incoming-handler` gets for a request. */
  readonly served: (call: ServedCall, responseBytes: number) => Served;
  /** What the call that began at `since`, by `performance.now()`, has used up; null where that is nothing. */
  readonly useSince: (since: number) => HostUse | null;
  /** Closes every file, connection and timer, and logs what was written without a line's end. */
  readonly dispose: () => void;
}

/** What an interface is made of: one call's context, outputs and HTTP. */
interface Parts {
  readonly context: CallContext;
  readonly output: GuestOutput;
  readonly http: () => ReturnType<typeof httpOf>;
}

const partsOf = (context: CallContext): Parts => {
  let http: ReturnType<typeof httpOf> | null = null;
  return { context, output: new GuestOutput(context), http: () => (http ??= httpOf(context)) };
};

type Implementation = Readonly<Record<string, unknown>>;

/** Cheap enough to make for each instance: the classes are shared, an interface is built when a component imports it. */
export const createWasi = (
  given: Pick<WasiOptions, "environment" | "mounts" | "allowedHosts" | "dial" | "log"> & Partial<WasiOptions>,
): Wasi => {
  const options: WasiOptions = {
    denied: ({ target, detail }) => given.log({ stream: "host", text: `request to ${target}: ${detail}`, cut: false }),
    clock: systemClock,
    random: randomFillSync,
    budgets: defaultWasiBudgets,
    hop: null,
    connections: null,
    ...given,
  };
  let running: Parts | null = null;
  return {
    provides: (id, name) => {
      const key = wasiInterface(id);
      const make = key === null ? undefined : interfaces[key];
      if (make === undefined) return false;
      return implementationHas(make(partsOf(new CallContext(options, false))), name);
    },
    importsFor: (imports) => {
      running?.context.end();
      const suspends = guestSuspends(imports);
      // Now, while the instance is made ahead of its call, rather than in the first call.
      if (suspends && options.allowedHosts.length > 0) httpClient();
      const parts = partsOf(new CallContext(options, suspends));
      running = parts;
      const made: Record<string, object> = {};
      for (const { id } of imports) {
        const make = interfaces[wasiInterface(id) ?? ""];
        if (make !== undefined) made[id] = make(parts);
      }
      return made;
    },
    renew: () => running?.context.renew(),
    served: ({ head, port }, responseBytes) => {
      if (running === null) throw new TypeError("an instance serves while it has its imports");
      const { context } = running;
      const exchange = context.hold(new ServedExchange(context, head, port, responseBytes));
      return {
        parameters: [new IncomingRequest(context, exchange), new ResponseOutparam(exchange)],
        [Symbol.dispose]: () => exchange[Symbol.dispose](),
      };
    },
    useSince: (since) => running?.context.useSince(since) ?? null,
    dispose: () => {
      running?.output.finish();
      running?.context.end();
      running = null;
    },
  };
};

const interfaces: Readonly<Record<string, (parts: Parts) => Implementation>> = {
  "io/error": () => ({ Error: IoError }),
  "io/poll": () => ({ Pollable, poll: Pollable.poll }),
  "io/streams": () => ({ InputStream, OutputStream }),
  "clocks/monotonic-clock": ({ context }) => monotonicClockOf(context),
  "clocks/wall-clock": ({ context }) => wallClockOf(context),
  "random/random": ({ context }) => randomOf(context).secure,
  "random/insecure": ({ context }) => randomOf(context).insecure,
  "random/insecure-seed": ({ context }) => randomOf(context).seed,
  "cli/environment": ({ context }) => environmentOf(context),
  "cli/exit": () => exit,
  "cli/stdin": ({ context }) => stdinOf(context),
  "cli/stdout": ({ output }) => ({ getStdout: () => output.stream("stdout") }),
  "cli/stderr": ({ output }) => ({ getStderr: () => output.stream("stderr") }),
  "cli/terminal-input": () => ({ TerminalInput }),
  "cli/terminal-output": () => ({ TerminalOutput }),
  "cli/terminal-stdin": () => noTerminal.stdin,
  "cli/terminal-stdout": () => noTerminal.stdout,
  "cli/terminal-stderr": () => noTerminal.stderr,
  "filesystem/types": () => ({ Descriptor, DirectoryEntryStream, filesystemErrorCode }),
  "filesystem/preopens": ({ context }) => preopensOf(context),
  "http/types": ({ http }) => http().types,
  "http/outgoing-handler": ({ http }) => http().handler,
  "sockets/network": () => sockets.network,
  "sockets/instance-network": () => sockets.instanceNetwork,
  "sockets/ip-name-lookup": () => sockets.ipNameLookup,
  "sockets/tcp": () => sockets.tcp,
  "sockets/tcp-create-socket": () => sockets.tcpCreateSocket,
  "sockets/udp": () => sockets.udp,
  "sockets/udp-create-socket": () => sockets.udpCreateSocket,
};
