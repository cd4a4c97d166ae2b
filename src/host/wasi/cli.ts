import type { CallContext, GuestLine } from "./call-context.ts";
import { ComponentExit } from "./guest-error.ts";
import { InputStream, OutputStream } from "./streams.ts";

/** `wasi:cli/environment`: the granted variables, no arguments, no folder to start in. */
export const environmentOf = (context: CallContext) => ({
  getEnvironment: (): [string, string][] => Object.entries(context.options.environment),
  getArguments: (): string[] => [],
  initialCwd: (): undefined => undefined,
});

export const exit = {
  exit: (status: { readonly tag: "ok" | "err" }): never => {
    throw new ComponentExit(status.tag === "ok" ? 0 : 1);
  },
  exitWithCode: (status: number): never => {
    throw new ComponentExit(status);
  },
};

/** An input that has ended. */
export const stdinOf = (context: CallContext) => ({
  getStdin: () => new InputStream(context, { read: () => null, readiness: { kind: "always" }, close: () => undefined }),
});

/** A component has no terminal: the resources exist so that a component that asks for one can be told that there is none. */
export class TerminalInput {}
export class TerminalOutput {}

export const noTerminal = {
  stdin: { getTerminalStdin: (): undefined => undefined },
  stdout: { getTerminalStdout: (): undefined => undefined },
  stderr: { getTerminalStderr: (): undefined => undefined },
};

type OutputName = Exclude<GuestLine["stream"], "host">;

/** Both outputs of one call, which share the allowance of lines. */
export class GuestOutput {
  readonly #context: CallContext;
  readonly #pending: Record<OutputName, string> = { stdout: "", stderr: "" };
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  #lines = 0;

  constructor(context: CallContext) {
    this.#context = context;
  }

  stream(name: OutputName): OutputStream {
    return new OutputStream(this.#context, {
      room: () => 64 * 1024,
      write: (bytes) => this.#write(name, bytes),
      flush: () => undefined,
      readiness: { kind: "always" },
      close: () => undefined,
    });
  }

  /** Logs what was written without a line's end. */
  finish(): void {
    for (const name of ["stdout", "stderr"] as const) {
      if (this.#pending[name] !== "") this.#line(name, this.#pending[name]);
      this.#pending[name] = "";
    }
  }

  #write(name: OutputName, bytes: Uint8Array): void {
    const { logLines, logLineLength } = this.#context.options.budgets;
    if (this.#lines >= logLines) return;
    const lines = (this.#pending[name] + this.#decoders[name].decode(bytes, { stream: true })).split("\n");
    this.#pending[name] = (lines.pop() ?? "").slice(0, logLineLength + 1);
    for (const line of lines) this.#line(name, line);
  }

  #line(stream: OutputName, text: string): void {
    const { logLines, logLineLength } = this.#context.options.budgets;
    if (this.#lines >= logLines) return;
    this.#lines++;
    const shown = text.length > logLineLength ? `${text.slice(0, logLineLength)}…` : text;
    this.#context.options.log({ stream, text: shown, cut: this.#lines === logLines });
  }
}
