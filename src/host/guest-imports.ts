import type { GuestImports } from "./guest-calls.ts";
import type { WorkerSetup } from "./worker-protocol.ts";

/** Makes what each instance imports, from what the workload was granted. */
export interface GuestImportMaker {
  make(): GuestImports;
  /** Takes the addresses that may be dialled from now on. */
  dialOnly(table: Readonly<Record<string, readonly string[]>>): void;
}

export const guestImports = (_setup: WorkerSetup, _log: (stream: "stdout" | "stderr", line: string) => void): GuestImportMaker => ({
  make: () => ({ imports: {}, dispose: () => {} }),
  dialOnly: () => {},
});
