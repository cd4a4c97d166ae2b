import { Invalid } from "../api/errors.ts";
import { compactJson, isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { WitFunction, WitType } from "../api/wit.ts";
import { isJsonObjectType } from "../declaration/shape.ts";
import { fromComponentValue } from "./from-component.ts";

/** What a call that ran to its end gives. `structured` is there whenever the function gave a value, and never beside an error. */
export type ToolResult =
  | { readonly outcome: "ok"; readonly text: string; readonly structured?: JsonObject }
  | { readonly outcome: "tool-error"; readonly text: string };

/** How the call of jco's generated function ended. */
export type Settled = { readonly returned: unknown } | { readonly thrown: unknown };

/** What a model reads where a function gives nothing. */
export const nothingText = "Done.";
/** What a model reads where a function fails without a word. */
export const silentErrorText = "The tool failed and gave no reason.";

/**
 * The result of a call for the model (docs/translation.md, Results): the value or the error as text, a string as it is and anything else as
 * compact JSON, and the value as structured data, in `{"result": …}` where its type isn't one of objects.
 *
 * Throws what was thrown where that isn't the function's own error (a trap, for instance), and `Invalid` with code `ResultTooLarge` where text or
 * value are more than `maxBytes` of UTF-8, or `ResultInvalid`.
 */
export const resultOf = (fn: Pick<WitFunction, "result">, settled: Settled, maxBytes: number): ToolResult => {
  if ("thrown" in settled) {
    if (fn.result?.kind !== "result" || !isComponentError(settled.thrown)) throw settled.thrown;
    return { outcome: "tool-error", text: errorText(fn.result.err, settled.thrown.payload, maxBytes) };
  }
  const type = fn.result?.kind === "result" ? fn.result.ok : fn.result;
  if (!type) return { outcome: "ok", text: nothingText };
  const value = fromComponentValue(type, settled.returned, { remaining: maxBytes });
  const structured = isJsonObjectType(type) && isJsonObject(value) ? value : jsonObject([["result", value]]);
  return { outcome: "ok", text: textOf(value, maxBytes), structured };
};

/** The error that jco throws for the err side of a result. Its class is generated with each component, so it is known by name. */
export const isComponentError = (thrown: unknown): thrown is Error & { readonly payload: unknown } =>
  thrown instanceof Error && thrown.constructor.name === "ComponentError" && Object.hasOwn(thrown, "payload");

const errorText = (type: WitType | null, payload: unknown, maxBytes: number): string => {
  if (!type) return silentErrorText;
  return textOf(fromComponentValue(type, payload, { remaining: maxBytes }), maxBytes) || silentErrorText;
};

const textOf = (value: JsonValue, maxBytes: number): string => {
  const text = typeof value === "string" ? value : compactJson(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) throw new Invalid("ResultTooLarge", `the tool's result has ${bytes} bytes, more than its limit of ${maxBytes}`, "");
  return text;
};
