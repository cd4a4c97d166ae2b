import type { Command } from "commander";

/** What a reviewer decides when approving, the same for a file and for a cluster (`approval.ts` carries it out). */
export const withDecisionOptions = (command: Command): Command =>
  command
    .option("--subject <subject>", "who may call: ServiceAccount:namespace/name, Group:name or User:name; may be repeated", collect, [])
    .option("--read-only", "set mutates: false, the tool changes nothing outside itself")
    .option("--accept-untrusted", "let untrusted arguments, such as all that a model writes, reach a tool that mutates")
    .option("--allow-hidden <U+XXXX>", "accept this invisible or look-alike character in the declaration; may be repeated", collect, [])
    .option("--any-component", "approve whatever code serves this definition, instead of the digest seen now")
    .option("--keep-component", "keep the digest reviewed before beside the one seen now, for a rollout");

/** For an option that may be repeated. */
export const collect = (value: string, before: string[]): string[] => [...before, value];
