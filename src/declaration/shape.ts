import type { WitField, WitFunction, WitType } from "../api/wit.ts";

/**
 * Decisions about a type's JSON form that schemas and conversions must take alike (docs/translation.md, Types).
 */

/** The properties of a function's arguments: the fields of its only parameter if that is a record, otherwise its parameters. */
export const argumentFields = (fn: Pick<WitFunction, "params">): readonly WitField[] => {
  const record = soleRecord(fn);
  return record ? record.fields : fn.params.map(({ name, type }) => ({ name, type, docs: "" }));
};

/** The record whose fields are the arguments, if the function takes exactly that. */
export const soleRecord = (fn: Pick<WitFunction, "params">): Extract<WitType, { kind: "record" }> | null => {
  const [only, ...others] = fn.params;
  return only && others.length === 0 && only.type.kind === "record" ? only.type : null;
};

/** A list of bytes is base64 text; with a fixed length it is an array like any other. */
export const isBytes = (type: WitType): boolean => type.kind === "list" && type.element.kind === "u8" && type.length === undefined;

/** An option of an option: in JSON `{"some": …}` or null, so that its three kinds of value stay apart. */
export const isNestedOption = (type: WitType): boolean => type.kind === "option" && type.some.kind === "option";

/** A variant without payloads is written as its case's name alone. */
export const isPlainVariant = (type: Extract<WitType, { kind: "variant" }>): boolean => type.cases.every((one) => one.type === null);

/** What a successful call gives: the ok side of a result, otherwise the type itself; null for nothing. */
export const successType = (fn: Pick<WitFunction, "result">): WitType | null => (fn.result?.kind === "result" ? fn.result.ok : fn.result);

/** Whether every value of the type is a JSON object, so that it can be a tool's structured output without a wrapper. */
export const isJsonObjectType = (type: WitType): boolean => {
  switch (type.kind) {
    case "record":
    case "result":
      return true;
    case "variant":
      return !isPlainVariant(type);
    case "map":
      return type.key.kind === "string";
    default:
      return false;
  }
};

/**
 * What the property of a field or parameter holds when it is there: an option's value itself, since leaving the property out says none. An option of
 * an option keeps its own form.
 */
export const presentType = (type: WitType): WitType => (type.kind === "option" && !isNestedOption(type) ? type.some : type);
