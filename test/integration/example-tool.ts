import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { startComponentPool } from "../support/component-pool.ts";

/** An example's component in the host's own workers. */
export interface ExampleTool {
  /** The reply as the host gives it: `outcome`, `text`, `structured`. */
  readonly call: (name: string, args: object) => Promise<Reply>;
  readonly close: () => Promise<void>;
}

export interface Reply {
  readonly outcome: string;
  readonly text: string;
  readonly structured?: unknown;
}

export const startExample = async (
  example: string,
  interfaceId: string,
  reach: Parameters<typeof startComponentPool>[1],
): Promise<ExampleTool> => {
  const bytes = await readFile(resolve(import.meta.dirname, "../../examples", example, `${example}.wasm`));
  const pool = await startComponentPool(bytes, reach);
  return {
    call: async (name, args) => {
      const { reply } = await pool.run({ kind: "call", interface: interfaceId, function: name, arguments: JSON.stringify(args) });
      if (reply.kind === "answer") return JSON.parse(`${reply.json}}`) as Reply;
      if (reply.kind === "failed") return { outcome: reply.kind, text: `${reply.code}: ${reply.text}` };
      return { outcome: reply.kind, text: reply.kind === "refused" ? `${reply.code}: ${reply.message}` : "" };
    },
    close: pool.close,
  };
};
