import type { DefinitionDigest } from "../api/definition.ts";
import { sha256Of } from "../api/digest.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, jsonObject, parseJson } from "../api/json.ts";
import { isUntyped, type ToolDefinition } from "../api/untyped.ts";
import type { WitField, WitFunction, WitLabel, WitType } from "../api/wit.ts";
import { untypedText } from "./untyped-definition.ts";

/** What a tool says of itself, as the text that is digested: encoding `v1`, which never changes; another one gets another version. */
export const definitionText = (tool: ToolDefinition): string => (isUntyped(tool) ? untypedText(tool) : typedText(tool));

/**
 * What a typed tool says of itself (docs/review.md, definition digest): its export, its types and its doc comments, as canonical JSON.
 *
 *   { "v": 1, "interface": "example:github/issues@0.1.0", "function": "list-issues", "async": true, "docs": "List the issues…",
 *     "params": [{ "name": "args", "type": 1 }], "result": 4,
 *     "types": [{ "kind": "enum", "docs": "", "cases": […] }, { "kind": "record", "docs": "", "fields": [{ "name": "repo", "type": "string", "docs": "…" }] }, …] }
 *
 * A primitive type is its name; any other is an index into `types`, where equal types are one entry, entered when a walk from the first parameter to the
 * result leaves them. So the text is no larger than the component's own types, and the same however the decoder shares them. Names of types are left out:
 * types are structural, and no model reads the names.
 */
const typedText = (fn: WitFunction): string => {
  const types = new TypeTable();
  const params = fn.params.map(({ name, type }) => jsonObject(Object.entries({ name, type: types.reference(type) })));
  const result = fn.result ? types.reference(fn.result) : null;
  return canonicalJson({
    v: 1,
    interface: fn.interface,
    function: fn.name,
    async: fn.async,
    docs: fn.docs,
    params,
    result,
    types: types.entries,
  });
};

/** SHA-256 of the definition's text. */
export const definitionDigest = (tool: ToolDefinition): DefinitionDigest => digestOfDefinitionText(definitionText(tool));

export const digestOfDefinitionText = (text: string): DefinitionDigest => `v1:${sha256Of(text)}`;

class TypeTable {
  readonly entries: JsonValue[] = [];
  readonly #byText = new Map<string, number>();
  readonly #seen = new Map<WitType, JsonValue>();

  reference(type: WitType): JsonValue {
    const known = this.#seen.get(type);
    if (known !== undefined) return known;
    const reference = this.#enter(type);
    this.#seen.set(type, reference);
    return reference;
  }

  #enter(type: WitType): JsonValue {
    const entry = this.#entryOf(type);
    if (entry === null) return type.kind;
    const text = canonicalJson(entry);
    const index = this.#byText.get(text) ?? this.entries.length;
    if (index === this.entries.length) {
      this.entries.push(entry);
      this.#byText.set(text, index);
    }
    return index;
  }

  #optional(type: WitType | null): JsonValue {
    return type ? this.reference(type) : null;
  }

  #entryOf(type: WitType): JsonObject | null {
    switch (type.kind) {
      case "list":
        return type.length === undefined
          ? { kind: type.kind, element: this.reference(type.element) }
          : { kind: type.kind, element: this.reference(type.element), length: type.length };
      case "map":
        return { kind: type.kind, key: this.reference(type.key), value: this.reference(type.value) };
      case "tuple":
        return { kind: type.kind, items: type.items.map((item) => this.reference(item)) };
      case "option":
        return { kind: type.kind, some: this.reference(type.some) };
      case "result":
        return { kind: type.kind, ok: this.#optional(type.ok), err: this.#optional(type.err) };
      case "record":
        return { kind: type.kind, docs: type.docs, fields: type.fields.map((field) => this.#field(field)) };
      case "variant":
        return {
          kind: type.kind,
          docs: type.docs,
          cases: type.cases.map((one) => ({ name: one.name, docs: one.docs, type: this.#optional(one.type) })),
        };
      case "enum":
        return { kind: type.kind, docs: type.docs, cases: type.cases.map(label) };
      case "flags":
        return { kind: type.kind, docs: type.docs, flags: type.flags.map(label) };
      case "own":
      case "borrow":
        return { kind: type.kind, resource: type.resource };
      case "stream":
      case "future":
        return { kind: type.kind, element: this.#optional(type.element) };
      default:
        return null;
    }
  }

  #field(field: WitField): JsonObject {
    return { name: field.name, docs: field.docs, type: this.reference(field.type) };
  }
}

const label = ({ name, docs }: WitLabel): JsonObject => ({ name, docs });

/** Types written out below this many places; a definition whose types share more than this is shown in part. */
const largestTree = 20_000;

/** As deep as the schema of an untyped tool may be, and a little around it. */
export const deepestDefinition = 72;

/**
 * A definition's text as a tree in which every type stands where it is used, for showing differences. What lies beyond the bound is the string `"…"`.
 * Throws `Invalid` (`Json…`) where it is no JSON; what is no definition is given back as it is.
 */
export const definitionTree = (text: string): JsonValue => {
  const definition = parseJson(text, { maxLength: text.length, maxDepth: deepestDefinition });
  if (!isJsonObject(definition) || !Array.isArray(definition.types)) return definition;
  const types: readonly JsonValue[] = definition.types;
  let left = largestTree;

  const written = (reference: JsonValue): JsonValue => {
    if (typeof reference !== "number") return reference;
    if (--left < 0) return "…";
    const entry = types[reference];
    return entry === undefined ? reference : within(entry);
  };
  /** References stand under the keys below and, in tuples, in `items`; an index is always lower than that of the type that has it. */
  const within = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map((item: JsonValue) => within(item));
    if (!isJsonObject(value)) return value;
    return jsonObject(Object.entries(value).map(([key, inner]) => [key, under(key, inner)]));
  };
  const under = (key: string, inner: JsonValue): JsonValue => {
    if (referenceKeys.has(key)) return written(inner);
    return key === "items" && Array.isArray(inner) ? inner.map(written) : within(inner);
  };

  const { types: _, v: __, ...said } = definition;
  return jsonObject(Object.entries(said).map(([key, inner]) => [key, under(key, inner)]));
};

const referenceKeys: ReadonlySet<string> = new Set(["type", "element", "key", "value", "some", "ok", "err", "result"]);
