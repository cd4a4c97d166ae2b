import type { Terminal } from "../../../src/cli/terminal.ts";

/** Nobody reads it, and nobody can be asked. */
export const plainTerminal: Terminal = {
  out: () => undefined,
  err: () => undefined,
  env: {},
  folder: "/",
  interactive: false,
  colours: false,
  now: () => 0,
};
