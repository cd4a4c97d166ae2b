import { AmbitError, Invalid, messageOf } from "../api/errors.ts";
import { ComponentExit } from "./wasi/guest-error.ts";

/** Why a call failed, in words for whoever reads its result, and the code that docs/host.md lists. */
export interface Failure {
  readonly code: FailureCode;
  readonly text: string;
}

export type FailureCode = "Busy" | "Deadline" | "OutOfMemory" | "Trap" | "ResultTooLarge" | "Exited" | "Unavailable";

export const failures = {
  busy: (): Failure => ({ code: "Busy", text: "The tool is busy with other calls; try again later." }),
  deadline: (timeoutMs: number): Failure => ({
    code: "Deadline",
    text: `The tool did not finish within ${timeoutMs / 1000} s and was ended.`,
  }),
  outOfMemory: (memoryBytes: number): Failure => ({
    code: "OutOfMemory",
    text: `The tool ran out of memory: it may use ${Math.floor(memoryBytes / (1024 * 1024))} MiB.`,
  }),
  ended: (how: string): Failure => ({ code: "Trap", text: `The tool ended unexpectedly: ${how}.` }),
  resultTooLarge: (resultBytes: number): Failure => ({
    code: "ResultTooLarge",
    text: `The tool's result is larger than the ${resultBytes} bytes allowed; ask for less.`,
  }),
  unavailable: (why: string): Failure => ({ code: "Unavailable", text: `The tool can't be started: ${why}` }),
} as const;

/** What a call's memory had come to when it ended. */
export interface MemoryUse {
  readonly usedBytes: number;
  readonly capBytes: number;
}

/** Sorts what came out of a guest that did not return: its own traps, our caps, its exit. */
export const failureOf = (thrown: unknown, memory: MemoryUse, resultBytes: number): Failure => {
  if (thrown instanceof AmbitError) {
    if (thrown.code === "ResultTooLarge") return failures.resultTooLarge(resultBytes);
    if (thrown instanceof Invalid) return { code: "Trap", text: `The tool returned something it may not: ${thrown.message}` };
    return { code: "Trap", text: `The tool failed: ${thrown.message}` };
  }
  if (thrown instanceof ComponentExit) {
    return { code: "Exited", text: `The tool ended with exit status ${thrown.status} instead of giving a result.` };
  }
  // A guest's allocator asks for twice what it has; when that is refused it traps, with half of its memory unused.
  if (thrown instanceof WebAssembly.RuntimeError && memory.usedBytes * 2 > memory.capBytes) return failures.outOfMemory(memory.capBytes);
  if (thrown instanceof RangeError && thrown.message.includes("call stack")) {
    return { code: "Trap", text: "The tool trapped: it recursed too deeply." };
  }
  return { code: "Trap", text: `The tool trapped: ${messageOf(thrown)}` };
};
