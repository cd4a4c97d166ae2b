import type { WitImport } from "../api/wit.ts";

/**
 * Functions of the granted WASI that wait for the event loop, by interface without its version. Only a network makes them wait: files are read in place and
 * clocks are slept on in place, because a worker has one call in flight and nothing else to do.
 */
const suspending: Readonly<Record<string, readonly string[]>> = {
  "wasi:io/poll": ["poll", "[method]pollable.block"],
  "wasi:io/streams": [
    "[method]input-stream.blocking-read",
    "[method]input-stream.blocking-skip",
    "[method]output-stream.blocking-flush",
    "[method]output-stream.blocking-write-and-flush",
    "[method]output-stream.blocking-write-zeroes-and-flush",
    "[method]output-stream.blocking-splice",
  ],
};

/**
 * The imported functions through which a component may suspend, as `interface@version#function`; empty for a component without a network, whose exports
 * are then plain synchronous calls, and cheaper.
 */
export const suspendingImports = (imports: readonly WitImport[]): string[] => {
  if (!imports.some(({ id }) => withoutVersion(id) === "wasi:http/outgoing-handler")) return [];
  return imports.flatMap(({ id, functions }) => {
    const waits = suspending[withoutVersion(id)] ?? [];
    return functions.filter((name) => waits.includes(name)).map((name) => `${id}#${name}`);
  });
};

export const withoutVersion = (id: string): string => id.split("@", 1)[0] ?? id;
