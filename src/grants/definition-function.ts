import { Invalid } from "../api/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../api/json.ts";
import type { ToolDefinition } from "../api/untyped.ts";
import type { WitField, WitFunction, WitLabel, WitShape, WitType } from "../api/wit.ts";
import { deepestDefinition, definitionText } from "./definition.ts";
import { untypedIn } from "./untyped-definition.ts";

/** Longest text read: more than a ToolGrant's status may hold. */
const longestText = 1024 * 1024;

/**
 * The tool that a definition's text (encoding `v1`) describes, with all that its digest covers: of a function types, docs, names of fields and cases. Names of
 * types are not in the text and are null.
 *
 * Throws `Invalid` (`DefinitionMalformed`) for anything that is not, byte for byte, the text of a tool.
 */
export const toolOfDefinition = (text: string): ToolDefinition => {
  const definition = parsed(text);
  const tool = untypedIn(definition) ?? functionIn(definition);
  // What was read loosely above is proved here: only a text that says exactly this gives itself back.
  if (definitionText(tool) !== text) throw malformed("it is not the text of the tool that it describes");
  return tool;
};

const functionIn = (definition: JsonObject): WitFunction => {
  const types: WitType[] = [];
  const typeOf = (reference: JsonValue | undefined): WitType => {
    if (typeof reference === "string") return { kind: primitive(reference) };
    const known = typeof reference === "number" ? types[reference] : undefined;
    if (!known) throw malformed("it refers to a type that it has not given before");
    return known;
  };
  for (const entry of list(definition.types)) types.push(shapeOf(object(entry), typeOf));
  return {
    interface: definition.interface === null ? null : string(definition.interface),
    name: string(definition.function),
    form: "function",
    async: definition.async === true,
    params: list(definition.params)
      .map(object)
      .map(({ name, type }) => ({ name: string(name), type: typeOf(type) })),
    result: definition.result === null ? null : typeOf(definition.result),
    docs: string(definition.docs),
  };
};

type TypeOf = (reference: JsonValue | undefined) => WitType;

const shapeOf = (entry: JsonObject, typeOf: TypeOf): WitShape => {
  const optional = (reference: JsonValue | undefined): WitType | null => (reference === null ? null : typeOf(reference));
  const { kind } = entry;
  switch (kind) {
    case "list":
      return typeof entry.length === "number"
        ? { kind, element: typeOf(entry.element), length: entry.length }
        : { kind, element: typeOf(entry.element) };
    case "map":
      return { kind, key: typeOf(entry.key), value: typeOf(entry.value) };
    case "tuple":
      return { kind, items: list(entry.items).map(typeOf) };
    case "option":
      return { kind, some: typeOf(entry.some) };
    case "result":
      return { kind, ok: optional(entry.ok), err: optional(entry.err) };
    case "record":
      return { kind, name: null, docs: string(entry.docs), fields: list(entry.fields).map((field) => fieldOf(object(field), typeOf)) };
    case "variant":
      return {
        kind,
        name: null,
        docs: string(entry.docs),
        cases: list(entry.cases)
          .map(object)
          .map(({ name, docs, type }) => ({ name: string(name), docs: string(docs), type: optional(type) })),
      };
    case "enum":
      return { kind, name: null, docs: string(entry.docs), cases: list(entry.cases).map(labelOf) };
    case "flags":
      return { kind, name: null, docs: string(entry.docs), flags: list(entry.flags).map(labelOf) };
    case "own":
    case "borrow":
      return { kind, resource: string(entry.resource) };
    case "stream":
    case "future":
      return { kind, element: optional(entry.element) };
    default:
      throw malformed(`it has a type of the unknown kind ${JSON.stringify(kind)}`);
  }
};

const fieldOf = ({ name, type, docs }: JsonObject, typeOf: TypeOf): WitField => ({
  name: string(name),
  type: typeOf(type),
  docs: string(docs),
});

const labelOf = (entry: JsonValue): WitLabel => {
  const { name, docs } = object(entry);
  return { name: string(name), docs: string(docs) };
};

const primitives = ["bool", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64", "char", "string", "error-context"] as const;

const primitive = (name: string): (typeof primitives)[number] => {
  const known = primitives.find((one) => one === name);
  if (known === undefined) throw malformed(`it names the unknown type ${JSON.stringify(name)}`);
  return known;
};

const parsed = (text: string): JsonObject => {
  try {
    return object(parseJson(text, { maxLength: longestText, maxDepth: deepestDefinition }));
  } catch (thrown) {
    if (!(thrown instanceof Invalid) || thrown.code === "DefinitionMalformed") throw thrown;
    throw new Invalid("DefinitionMalformed", `the definition's text is not JSON: ${thrown.message}`, undefined, { cause: thrown });
  }
};

const object = (value: JsonValue | undefined): JsonObject => {
  if (isJsonObject(value ?? null)) return value as JsonObject;
  throw malformed("an object is missing");
};

const list = (value: JsonValue | undefined): readonly JsonValue[] => {
  if (Array.isArray(value)) return value;
  throw malformed("a list is missing");
};

const string = (value: JsonValue | undefined): string => {
  if (typeof value === "string") return value;
  throw malformed("a text is missing");
};

const malformed = (why: string): Invalid => new Invalid("DefinitionMalformed", `the text is no definition of this version: ${why}`);
