import { isJsonObject, type JsonObject, type JsonValue, pointerTo } from "../api/json.ts";
import { childrenOf } from "../declaration/subschemas.ts";

/** The keyword by which an MCP server asks for an argument in a header as well. */
export const headerKeyword = "x-mcp-header";

/** RFC 9110, 5.6.2: what a header may be called. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** A number may be written in several ways, and the copy in the header would not be the same text. */
const types: readonly JsonValue[] = ["string", "integer", "boolean"];

/**
 * Why a tool can't be called as its input schema asks for its arguments in headers; null where it can. A client must leave such a tool out (MCP 2026-07-28, Streamable HTTP,
 * "Schema Extension"): a header is for one argument, whose place is known from `properties` alone, of a type with one spelling, and no two share a name.
 */
export const wrongHeader = (schema: JsonObject): string | null => {
  const names = new Map<string, string>();
  const look = (at: JsonObject, pointer: string, isReachable: boolean): string | null => {
    const name = at[headerKeyword];
    if (name !== undefined) {
      const wrong = isReachable && pointer !== "" ? wrongAt(at, name) : "no single argument is meant";
      if (wrong !== null) return `${wrong} (${headerKeyword} at ${pointer || "the root"})`;
      const key = String(name).toLowerCase();
      const other = names.get(key);
      if (other !== undefined) return `it wants the header of ${other} too (${headerKeyword} at ${pointer})`;
      names.set(key, pointer);
    }
    for (const { schema: child, keyword, steps } of childrenOf(at)) {
      if (!isJsonObject(child)) continue;
      const wrong = look(child, steps.reduce<string>(pointerTo, pointer), isReachable && keyword === "properties");
      if (wrong !== null) return wrong;
    }
    return null;
  };
  return look(schema, "", true);
};

const wrongAt = ({ type }: JsonObject, name: JsonValue): string | null => {
  if (typeof name !== "string" || !token.test(name)) return "no header can be called so";
  if (type === undefined || !types.includes(type)) return "only a string, an integer or a boolean travels in a header";
  return null;
};
