import { compactJson, isJsonObject, type JsonObject, type JsonValue } from "../api/json.ts";
import { annotations, described, inWords, narrowing, words } from "./keywords.ts";
import { pointerOf, valueAt } from "./references.ts";

/**
 * A reviewed schema in the part of JSON Schema that Gemini's API documents. Whatever else it says is left out, told in the description where few words can,
 * so that the copy may admit more, never less: all that is left out only narrows.
 */
export const geminiCopy = (schema: JsonObject): JsonObject => new GeminiCopier(schema).root();

const formats = new Set(["date-time", "date", "time"]);
const types = new Set<JsonValue>(["string", "number", "integer", "boolean", "array", "object", "null"]);

/** Which values a keyword is about. One that is about none of a schema's types says nothing, and Gemini refuses it there. */
const subjectOf: Readonly<Record<string, string>> = {
  properties: "object",
  required: "object",
  additionalProperties: "object",
  items: "array",
  prefixItems: "array",
  minItems: "array",
  maxItems: "array",
  minimum: "number",
  maximum: "number",
  format: "string",
};

class GeminiCopier {
  readonly #root: JsonObject;
  /** Names of definitions by the pointer they were found at, in the order in which they are referred to. */
  readonly #names = new Map<string, string>();
  readonly #taken = new Set<string>();

  constructor(root: JsonObject) {
    this.#root = root;
  }

  root(): JsonObject {
    const copy = this.#copy(referredTo(this.#root));
    const definitions: Record<string, JsonValue> = Object.create(null);
    // Copying a definition may name more of them, at the map's end.
    for (const [pointer, name] of this.#names) definitions[name] = this.#copy(valueAt(this.#root, pointer) ?? true);
    return this.#names.size === 0 ? copy : { ...copy, $defs: definitions };
  }

  #copy(given: JsonValue): JsonObject {
    if (!isJsonObject(given)) return {};
    const schema = withSoleMember(given);
    const target = pointerOf(schema.$ref);
    if (target !== null) return this.#reference(target, schema.description);
    const types = typesOf(schema);
    const told = new Set<string>();
    const copy: Record<string, JsonValue> = Object.create(null);
    for (const [keyword, value] of Object.entries(schema)) {
      const subject = subjectOf[keyword];
      if (subject !== undefined && types.length > 0 && !types.some((type) => kindOf(type) === subject)) continue;
      if (!this.#take(keyword, value, schema, copy)) for (const text of leftOut(keyword, value)) told.add(text);
    }
    if (types.includes("array") && copy.items === undefined && copy.prefixItems === undefined) copy.items = {};
    const forms = this.#formsOf(schema, types, copy);
    if (forms === null && (schema.anyOf ?? schema.oneOf) !== undefined) told.add("only some combinations");
    return withWords(forms ?? branches(types, copy), schema, [...told]);
  }

  /** Whether the keyword could be said. */
  #take(keyword: string, value: JsonValue, { properties, patternProperties }: JsonObject, copy: Record<string, JsonValue>): boolean {
    switch (keyword) {
      case "title":
        copy.title = value;
        return true;
      case "minItems":
      case "maxItems":
      case "minimum":
      case "maximum":
        copy[keyword] = value;
        return true;
      case "format":
        if (!formats.has(String(value))) return false;
        copy.format = value;
        return true;
      case "const":
      case "enum": {
        const choices = keyword === "const" ? [value] : value;
        if (copy.enum !== undefined || !areChoices(choices)) return false;
        copy.enum = choices;
        return true;
      }
      case "properties":
        if (isJsonObject(value)) copy.properties = this.#eachOf(value);
        return true;
      case "required":
        if (Array.isArray(value) && isJsonObject(properties))
          copy.required = value.filter((name) => Object.hasOwn(properties, String(name)));
        return true;
      case "additionalProperties":
        // Without the patterns it would forbid what they admit.
        if (patternProperties !== undefined || saysNothing(value)) return true;
        copy.additionalProperties = value === false ? false : this.#copy(value);
        return true;
      case "items":
        if (value !== false) copy.items = this.#copy(value);
        return true;
      case "prefixItems":
        if (Array.isArray(value)) copy.prefixItems = value.map((item: JsonValue) => this.#copy(item));
        return true;
      case "type":
      case "description":
      case "anyOf":
      case "oneOf":
      case "$defs":
      case "definitions":
        return true;
      default:
        return false;
    }
  }

  /**
   * Alternatives take no neighbours but words. So they stand for the rest where the rest is only a type; otherwise they are left out (null), since the rest
   * tells a model more.
   */
  #formsOf(schema: JsonObject, types: readonly string[], copy: JsonObject): JsonObject | null {
    const forms = schema.anyOf ?? schema.oneOf;
    const { title, ...rest } = copy;
    if (!Array.isArray(forms) || forms.length === 0 || Object.keys(rest).length > 0) return null;
    const [type] = types;
    const anyOf = forms.map((form: JsonValue) => {
      const one = this.#copy(form);
      const isTyped = one.type !== undefined || one.$ref !== undefined || one.anyOf !== undefined;
      return isTyped || type === undefined || types.length > 1 ? one : { type, ...one };
    });
    return { ...(title === undefined ? {} : { title }), anyOf };
  }

  #eachOf(schemas: JsonObject): JsonObject {
    const copies: Record<string, JsonValue> = Object.create(null);
    for (const [key, schema] of Object.entries(schemas)) copies[key] = this.#copy(schema);
    return copies;
  }

  /** Beside a reference nothing else may stand. */
  #reference(pointer: string, description: JsonValue | undefined): JsonObject {
    let name = this.#names.get(pointer);
    if (name === undefined) {
      name = this.#freeName(pointer.split("/").at(-1) || "root");
      this.#names.set(pointer, name);
    }
    const reference = { $ref: `#/$defs/${name}` };
    return typeof description === "string" ? { anyOf: [reference], description } : reference;
  }

  #freeName(wanted: string): string {
    const plain = wanted.replace(/[^a-zA-Z0-9_]/g, "_");
    let name = plain;
    for (let number = 2; this.#taken.has(name); number++) name = `${plain}_${number}`;
    this.#taken.add(name);
    return name;
  }
}

/** The schema that a root which only refers means. */
const referredTo = (root: JsonObject): JsonValue => {
  const seen = new Set<string>();
  let schema: JsonValue = root;
  for (;;) {
    const pointer: string | null = isJsonObject(schema) ? pointerOf(schema.$ref) : null;
    if (pointer === null || seen.has(pointer)) return schema;
    seen.add(pointer);
    schema = valueAt(root, pointer) ?? true;
  }
};

/** `allOf` of one schema, which generators write to hang words on a reference, is that schema. */
const withSoleMember = (schema: JsonObject): JsonObject => {
  const { allOf, ...rest } = schema;
  const [member] = Array.isArray(allOf) && allOf.length === 1 ? allOf : [];
  if (!isJsonObject(member)) return schema;
  const isApart = Object.keys(member).every((keyword) => rest[keyword] === undefined || words.has(keyword));
  const isOnlyWords = Object.keys(rest).every((keyword) => words.has(keyword));
  return isApart && (member.$ref === undefined || isOnlyWords) ? { ...member, ...rest } : schema;
};

const typesOf = ({ type, const: only, enum: choices }: JsonObject): string[] => {
  const given = [type].flat().filter((one): one is string => typeof one === "string" && types.has(one));
  if (given.length > 0) return [...new Set(given)];
  const values = only === undefined ? choices : [only];
  return areChoices(values) ? [...new Set(values.map(kindOfChoice))] : [];
};

/** Gemini's choices are texts and numbers; null is a type. */
const areChoices = (choices: JsonValue | undefined): choices is readonly JsonValue[] =>
  Array.isArray(choices) &&
  choices.length > 0 &&
  choices.every((one) => one === null || ["string", "number", "bigint"].includes(typeof one));

const kindOfChoice = (choice: JsonValue): string => (choice === null ? "null" : typeof choice === "string" ? "string" : "number");

/** One schema a type, each with the keywords that are about its values; a type that may also be null is one. */
const branches = (types: readonly string[], { title, ...schema }: JsonObject): JsonObject => {
  const words: JsonObject = title === undefined ? {} : { title };
  const plain = types.filter((type) => type !== "null");
  const [only] = plain;
  if (only !== undefined && plain.length === 1 && schema.enum === undefined) {
    return { ...words, type: types.length === 1 ? only : [only, "null"], ...schema };
  }
  if (types.length === 0) return { ...words, ...schema };
  const anyOf = types.flatMap((type) => branch(type, schema));
  const [sole = { type: types[0] ?? "null" }] = anyOf;
  return anyOf.length < 2 ? { ...words, ...sole } : { ...words, anyOf };
};

const branch = (type: string, { enum: choices, ...schema }: JsonObject): JsonObject[] => {
  const kept: Record<string, JsonValue> = Object.create(null);
  kept.type = type;
  if (Array.isArray(choices)) {
    const fitting = choices.filter((choice: JsonValue) => kindOfChoice(choice) === kindOf(type));
    if (fitting.length === 0) return [];
    if (type !== "null") kept.enum = fitting;
  }
  for (const [keyword, value] of Object.entries(schema)) {
    const subject = subjectOf[keyword];
    if (subject === undefined || subject === kindOf(type)) kept[keyword] = value;
  }
  return [kept];
};

const saysNothing = (schema: JsonValue): boolean => schema === true || (isJsonObject(schema) && Object.keys(schema).length === 0);

const kindOf = (type: string): string => (type === "integer" ? "number" : type);

const withWords = (copy: JsonObject, { description }: JsonObject, told: readonly string[]): JsonObject => {
  const text = described(description, told);
  return text === "" ? copy : { ...copy, description: text };
};

/** Longest list of choices that a description tells. */
const mostTold = 200;

const leftOut = (keyword: string, value: JsonValue): string[] => {
  if (keyword === "contentEncoding" || narrowing.has(keyword)) return inWords(keyword, value);
  if (annotations.has(keyword)) return [];
  if (keyword === "enum" || keyword === "const") {
    const choices = (keyword === "enum" && Array.isArray(value) ? value : [value])
      .map((choice: JsonValue) => compactJson(choice))
      .join(", ");
    return choices.length > mostTold ? ["one of a few values"] : [`one of ${choices}`];
  }
  return ["further rules"];
};
