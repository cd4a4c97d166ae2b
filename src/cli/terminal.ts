import { styleText } from "node:util";

/**
 * Where a command writes and what it knows of its surroundings. Results go to `out`, everything said along the way to `err`, so that a pipe gets results alone.
 */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
  /** Standard input and error are a terminal: questions may be asked. */
  readonly interactive: boolean;
  readonly colours: boolean;
  readonly now: () => number;
}

export type Tone = "good" | "bad" | "warn" | "dim" | "strong";

const styles = { good: "green", bad: "red", warn: "yellow", dim: "dim", strong: "bold" } as const;

/** Colours only on a terminal, and never where NO_COLOR asks for none (https://no-color.org). */
export const tone = (terminal: Terminal, name: Tone, text: string): string =>
  terminal.colours ? styleText(styles[name], text, { validateStream: false }) : text;

export const processTerminal = (): Terminal => {
  const interactive = process.stdin.isTTY === true && process.stderr.isTTY === true;
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    env: process.env,
    folder: process.cwd(),
    interactive,
    colours: process.stdout.isTTY === true && process.env.NO_COLOR === undefined && process.env.TERM !== "dumb",
    now: Date.now,
  };
};

/** Exit codes that scripts may rely on (docs/cli.md). */
export const exitCodes = {
  done: 0,
  /** The command worked and its answer is no: problems found, a difference, a tool's error, a refusal. */
  negative: 1,
  /** The command line, a file or a manifest is wrong. */
  invalid: 2,
  /** Something outside did not answer: a registry, a catalogue, a disk. */
  unavailable: 3,
} as const;

/** Ends the command with this code, its answer having been printed. */
export class Exit extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`exit ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Text from outside made safe to print: control, escape, bidirectional and tag characters are shown as `U+XXXX`. */
export const printable = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu, (c) =>
    c === "\n" || c === "\t" ? c : `<U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`,
  );

/** As `printable`, with a bar before each line but the first: what somebody else wrote never looks like a line of ours. */
export const quotedLines = (text: string, indent: string): string => printable(text).replaceAll("\n", `\n${indent}| `);

/** Columns padded to the widest cell; the last is left as it is. Each row is one line. */
export const table = (given: readonly (readonly string[])[]): string => {
  const rows = given.map((row) => row.map((cell) => cell.replaceAll("\n", " ")));
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  return rows.map((row) => `${row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join("  ")}\n`).join("");
};
