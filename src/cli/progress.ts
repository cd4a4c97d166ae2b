import type { Terminal } from "./terminal.ts";

/** Longer than this and a person wants to know what is going on. */
const quietMs = 2000;
const repeatMs = 5000;

/**
 * Runs `work` and says on standard error what it is doing once it has taken two seconds, then every five. `report` changes what is said, for instance with bytes done.
 */
export const withProgress = async <T>(
  terminal: Terminal,
  doing: string,
  work: (report: (detail: string) => void) => Promise<T>,
): Promise<T> => {
  const started = terminal.now();
  let detail = "";
  let spoke = false;
  const speak = () => {
    spoke = true;
    const seconds = Math.round((terminal.now() - started) / 1000);
    terminal.err(`${doing}… ${detail}${detail ? ", " : ""}${seconds} s\n`);
  };
  const first = setTimeout(speak, quietMs);
  const repeated = setInterval(() => spoke && speak(), repeatMs);
  first.unref();
  repeated.unref();
  try {
    return await work((text) => {
      detail = text;
    });
  } finally {
    clearTimeout(first);
    clearInterval(repeated);
    if (spoke) terminal.err(`${doing}: done after ${Math.round((terminal.now() - started) / 1000)} s\n`);
  }
};
