import { LRUCache } from "lru-cache";
import { Invalid } from "../api/errors.ts";
import type { JsonValue } from "../api/json.ts";
import { isUntyped } from "../api/untyped.ts";
import { compileSchema, type SchemaJudge } from "../translate/schema-judge.ts";
import type { Dispatched } from "./dispatch.ts";
import type { LiveGrant } from "./state.ts";

/** Compiled schemas kept, of some tens of kilobytes each. */
const schemasKept = 200;

/**
 * Holds an untyped tool to the output schema that was reviewed: a client that was told the schema refuses any other value, and may fail in ways of its own. A typed tool
 * can't answer otherwise than its types say.
 */
export const outputJudge = (): ((grant: LiveGrant, dispatched: Dispatched) => Dispatched) => {
  /** Null for a schema that nobody can check a value by. */
  const judges = new LRUCache<LiveGrant, { readonly judge: SchemaJudge | null }>({ max: schemasKept });
  const judgeFor = (grant: LiveGrant): SchemaJudge | null => {
    const known = judges.get(grant);
    if (known) return known.judge;
    const judge = compiled(grant);
    judges.set(grant, { judge });
    return judge;
  };

  return (grant, dispatched) => {
    if (!isUntyped(grant.fn) || grant.fn.outputSchema === null) return dispatched;
    if (dispatched.kind !== "replied" || dispatched.reply.outcome !== "ok") return dispatched;
    const { structured, stats } = dispatched.reply;
    const why = misfit(judgeFor(grant), structured);
    if (why === null) return dispatched;
    const text = `The tool ran, and its result can't be used: ${why}.`;
    return { kind: "replied", reply: { outcome: "failed", code: "ResultInvalid", text, ran: true, stats } };
  };
};

const compiled = ({ fn }: LiveGrant): SchemaJudge | null => {
  try {
    return isUntyped(fn) && fn.outputSchema ? compileSchema(fn.outputSchema) : null;
  } catch (thrown) {
    if (thrown instanceof Invalid) return null;
    throw thrown;
  }
};

const misfit = (judge: SchemaJudge | null, structured: JsonValue | undefined): string | null => {
  if (judge === null) return null;
  if (structured === undefined) return "it has no structured value, which its output schema promises";
  const violation = judge(structured);
  return violation === null ? null : `it is not as its output schema says: ${violation.message}`;
};
