import { Invalid } from "../api/errors.ts";
import { compactJson, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { UntypedTool } from "../api/untyped.ts";
import type { Primitive, WitField, WitFunction, WitLabel, WitType } from "../api/wit.ts";
import { propertyName } from "./names.ts";
import { argumentFields, isBytes, isJsonObjectType, isNestedOption, isPlainVariant, presentType, successType } from "./shape.ts";

/** How large one generated schema may become. A component shares types by reference, so few bytes of it can describe an enormous tree. */
export interface SchemaLimits {
  /** Longest compact JSON text of the schema, in UTF-16 code units. */
  readonly maxLength: number;
  /** Deepest nesting of objects and arrays within the schema. */
  readonly maxDepth: number;
}

export const defaultSchemaLimits: SchemaLimits = { maxLength: 256 * 1024, maxDepth: 56 };

/** Standard base64 with padding (RFC 4648, section 4), unused bits zero, so that there is one text for the same bytes. */
export const base64Pattern = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/** The largest finite 32-bit float. */
export const largestF32 = (2 - 2 ** -23) * 2 ** 127;

/** What JSON numbers can't say. Only results use them. */
export const nonFiniteNames = ["NaN", "Infinity", "-Infinity"] as const;

/**
 * JSON Schema (2020-12) of a function's arguments: always a closed object, its properties in WIT order.
 *
 * Throws `Invalid` with code `SchemaTooLarge` or, for a type that JSON can't carry, `TypeNotRepresentable`; `at` is the WIT path of the place.
 */
export const parametersSchema = (fn: Pick<WitFunction, "params">, limits: SchemaLimits = defaultSchemaLimits): JsonObject => {
  const writer = new SchemaWriter("argument", limits);
  return writer.finish(writer.closedObject(argumentFields(fn), ["parameters"]));
};

/**
 * JSON Schema of what a successful call gives as structured data: the value's own schema where every value is an object, otherwise that of
 * `{"result": value}`. Null for a function that gives nothing. Of an untyped tool it is what the tool says. Throws as `parametersSchema` does.
 */
export const outputSchema = (
  fn: Pick<WitFunction, "result"> | Pick<UntypedTool, "outputSchema">,
  limits: SchemaLimits = defaultSchemaLimits,
): JsonObject | null => {
  if ("outputSchema" in fn) return fn.outputSchema;
  const type = successType(fn);
  if (!type) return null;
  const writer = new SchemaWriter("result", limits);
  const schema = writer.schemaOf(type, ["result"]);
  if (!isJsonObjectType(type)) return writer.finish(closed([["result", schema]], ["result"]));
  return writer.finish("type" in schema ? schema : { type: "object", ...schema });
};

/** Whether a value is wanted from a caller or comes from the tool. */
type Direction = "argument" | "result";
type Path = readonly string[];

const integerBounds: Readonly<Partial<Record<Primitive, readonly [number, number] | readonly [number]>>> = {
  u8: [0, 0xff],
  u16: [0, 0xffff],
  u32: [0, 0xffff_ffff],
  u64: [0],
  s8: [-0x80, 0x7f],
  s16: [-0x8000, 0x7fff],
  s32: [-0x8000_0000, 0x7fff_ffff],
};

class SchemaWriter {
  readonly #direction: Direction;
  readonly #limits: SchemaLimits;
  #length = 0;

  constructor(direction: Direction, limits: SchemaLimits) {
    this.#direction = direction;
    this.#limits = limits;
  }

  /** A last, exact check; the running estimate has already kept the tree from growing without bounds. */
  finish(schema: JsonObject): JsonObject {
    const length = compactJson(schema).length;
    if (length > this.#limits.maxLength) throw tooLarge([this.#direction], `its schema has ${length} characters`, this.#limits);
    if (depthOf(schema) > this.#limits.maxDepth) throw tooLarge([this.#direction], "its schema nests too deeply", this.#limits);
    return schema;
  }

  closedObject(fields: readonly WitField[], path: Path): JsonObject {
    this.#charge(60, path);
    const properties: [string, JsonValue][] = [];
    const required: string[] = [];
    for (const field of fields) {
      const name = propertyName(field.name);
      this.#charge(2 * name.length + 8, path);
      properties.push([name, this.schemaOf(presentType(field.type), [...path, name], field.docs)]);
      if (field.type.kind !== "option") required.push(name);
    }
    return closed(properties, required);
  }

  /** `docs` is the comment on the field or case that holds the value; without one the type's own comment describes it. */
  schemaOf(type: WitType, path: Path, docs = ""): JsonObject {
    if (path.length > this.#limits.maxDepth) throw tooLarge(path, "its types nest too deeply", this.#limits);
    const described = (schema: Record<string, JsonValue>, own = "", labels: readonly WitLabel[] = []): JsonObject => {
      const description = descriptionOf(docs || own, labels);
      this.#charge(40 + description.length, path);
      return description === "" ? schema : { ...schema, description };
    };
    switch (type.kind) {
      case "bool":
        return described({ type: "boolean" });
      case "string":
        return described({ type: "string" });
      case "char":
        return described({ type: "string", minLength: 1, maxLength: 1 });
      case "f32":
        return described(this.#float({ minimum: -largestF32, maximum: largestF32 }));
      case "f64":
        return described(this.#float({}));
      case "list":
        return described(this.#list(type, path));
      case "tuple":
        return described({
          type: "array",
          prefixItems: this.#each(type.items, path),
          minItems: type.items.length,
          maxItems: type.items.length,
        });
      case "option":
        return described(this.#option(type, path));
      case "result":
        return described({ anyOf: [this.#side("ok", type.ok, path), this.#side("err", type.err, path)] });
      case "record":
        return described({ ...this.closedObject(type.fields, path) }, type.docs);
      case "enum":
        return described(this.#names(type.cases, path), type.docs, type.cases);
      case "flags":
        return described({ type: "array", items: this.#names(type.flags, path), uniqueItems: true }, type.docs, type.flags);
      case "variant":
        if (isPlainVariant(type)) return described(this.#names(type.cases, path), type.docs, type.cases);
        return described({ anyOf: type.cases.map((one) => this.#case(one, path)) }, type.docs);
      case "map":
        return described(this.#map(type, path));
      case "own":
      case "borrow":
      case "stream":
      case "future":
      case "error-context":
        throw new Invalid("TypeNotRepresentable", `JSON can't carry a value of type ${type.kind} (at ${path.join(".")})`, path.join("."));
      default: {
        const [minimum, maximum] = integerBounds[type.kind] ?? [];
        return described({ type: "integer", ...(minimum === undefined ? {} : { minimum }), ...(maximum === undefined ? {} : { maximum }) });
      }
    }
  }

  #float(bounds: JsonObject): Record<string, JsonValue> {
    const finite = { type: "number", ...bounds };
    return this.#direction === "argument" ? finite : { anyOf: [finite, { type: "string", enum: nonFiniteNames }] };
  }

  #list(type: Extract<WitType, { kind: "list" }>, path: Path): Record<string, JsonValue> {
    if (isBytes(type)) {
      this.#charge(base64Pattern.length + 40, path);
      return { type: "string", contentEncoding: "base64", pattern: base64Pattern };
    }
    const items = this.schemaOf(type.element, [...path, "[]"]);
    return { type: "array", items, ...(type.length === undefined ? {} : { minItems: type.length, maxItems: type.length }) };
  }

  #option(type: Extract<WitType, { kind: "option" }>, path: Path): Record<string, JsonValue> {
    const some = this.schemaOf(type.some, [...path, "some"]);
    return { anyOf: [isNestedOption(type) ? closed([["some", some]], ["some"]) : some, { type: "null" }] };
  }

  #side(side: "ok" | "err", type: WitType | null, path: Path): JsonObject {
    return closed([[side, type ? this.schemaOf(type, [...path, side]) : { type: "null" }]], [side]);
  }

  #case(one: { readonly name: string; readonly type: WitType | null; readonly docs: string }, path: Path): JsonObject {
    this.#charge(80 + one.name.length + one.docs.length, path);
    const tag: [string, JsonValue] = ["tag", { type: "string", enum: [one.name] }];
    const schema = one.type ? closed([tag, ["val", this.schemaOf(one.type, [...path, one.name])]], ["tag", "val"]) : closed([tag], ["tag"]);
    return one.docs === "" ? schema : { ...schema, description: one.docs };
  }

  #map(type: Extract<WitType, { kind: "map" }>, path: Path): Record<string, JsonValue> {
    const value = this.schemaOf(type.value, [...path, "value"]);
    if (type.key.kind === "string") return { type: "object", additionalProperties: value };
    const key = this.schemaOf(type.key, [...path, "key"]);
    return {
      type: "array",
      items: closed(
        [
          ["key", key],
          ["value", value],
        ],
        ["key", "value"],
      ),
    };
  }

  #names(labels: readonly WitLabel[], path: Path): Record<string, JsonValue> {
    for (const { name } of labels) this.#charge(name.length + 3, path);
    return { type: "string", enum: labels.map(({ name }) => name) };
  }

  #each(types: readonly WitType[], path: Path): JsonValue[] {
    return types.map((type, index) => this.schemaOf(type, [...path, String(index)]));
  }

  #charge(length: number, path: Path): void {
    this.#length += length;
    if (this.#length > 2 * this.#limits.maxLength) throw tooLarge(path, "its schema grows without end", this.#limits);
  }
}

/** A closed object. `required` is left out where it would be empty. */
const closed = (properties: readonly (readonly [string, JsonValue])[], required: readonly string[]): JsonObject => ({
  type: "object",
  properties: jsonObject(properties),
  ...(required.length > 0 ? { required } : {}),
  additionalProperties: false,
});

/** The comment, then what each case or flag means, for those that say so. */
const descriptionOf = (docs: string, labels: readonly WitLabel[]): string => {
  const explained = labels.filter((label) => label.docs !== "").map((label) => `- ${label.name}: ${label.docs.replaceAll("\n", " ")}`);
  return [docs, ...explained].filter((line) => line !== "").join("\n");
};

const depthOf = (value: JsonValue): number => {
  if (typeof value !== "object" || value === null) return 0;
  let deepest = 0;
  for (const child of Object.values(value) as JsonValue[]) deepest = Math.max(deepest, depthOf(child));
  return deepest + 1;
};

const tooLarge = (path: Path, what: string, limits: SchemaLimits): Invalid => {
  const at = path.slice(0, 8).join(".");
  const message = `the function's types are too large to declare: at ${at} ${what} (at most ${limits.maxLength} characters and ${limits.maxDepth} levels)`;
  return new Invalid("SchemaTooLarge", message, at);
};
