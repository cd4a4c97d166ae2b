import { Invalid, messageOf } from "../api/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, jsonObject, parseJson } from "../api/json.ts";
import { offsetText } from "./byte-reader.ts";
import type { InterfaceDocs, PackageDocs, TypeDocs, WitDocs, WorldDocs } from "./docs.ts";
import type { DecodeLimits } from "./limits.ts";

/** Version of the content of an `ambit-docs` section. */
const version = 1;

const maxJsonDepth = 16;

/**
 * The content of an `ambit-docs` section: canonical JSON, so that the same docs are the same bytes. Names without docs are left out.
 *
 *   {"packages":{"example:github@0.1.0":{"interfaces":{"issues":{"functions":{"list-issues":"List the issues."},
 *    "types":{"issue":{"docs":"An issue.","members":{"title":"Its title."}}}}}}},"v":1}
 */
export const encodeDocs = (docs: WitDocs): Uint8Array => {
  const packages = objectOf(docs.packages, packageJson);
  return new TextEncoder().encode(
    canonicalJson(
      jsonObject([
        ["packages", packages ?? {}],
        ["v", version],
      ]),
    ),
  );
};

/** Reads the content of an `ambit-docs` section at `offset`. Throws `Invalid`: `DocsMalformed`, `ComponentTooLarge`. */
export const decodeDocs = (content: Uint8Array, offset: number, limits: DecodeLimits): WitDocs => {
  const reader = new DocsReader("ambit-docs", offset);
  const root = reader.parse(content, limits);
  if (root.v !== version) throw reader.fail(`is of a version that is not known here; version ${version} is`);
  return {
    packages: reader.map(root.packages, (one) => ({
      docs: reader.text(one.docs),
      interfaces: reader.map(one.interfaces, (item) => reader.interface(item)),
      worlds: reader.map(one.worlds, (item) => ({
        ...reader.interface(item),
        interfaces: reader.map(item.interfaces, (inline) => reader.interface(inline)),
      })),
    })),
  };
};

/**
 * Reads the content of a `package-docs` section: one version byte, 0 or 1, and JSON of one package, which it does not name (wit-parser,
 * `PackageMetadata`). Throws `Invalid`: `DocsMalformed`, `ComponentTooLarge`.
 */
export const decodePackageDocs = (content: Uint8Array, offset: number, limits: DecodeLimits): PackageDocs => {
  const reader = new DocsReader("package-docs", offset);
  if (content[0] !== 0 && content[0] !== 1) throw reader.fail("is of a version that is not known here; 0 and 1 are");
  const root = reader.parse(content.subarray(1), limits);
  return {
    docs: reader.text(root.docs),
    interfaces: reader.map(root.interfaces, (item) => reader.foreignInterface(item)),
    worlds: reader.map(root.worlds, (item) => {
      // What is exported is under `…_exports` only where version 1 wrote it or an import has the same name.
      const functions = new Map([...reader.functions(item.funcs), ...reader.functions(item.func_exports)]);
      const inline = (key: string): ReadonlyMap<string, InterfaceDocs> => reader.map(item[key], (one) => reader.foreignInterface(one));
      return {
        docs: reader.text(item.docs),
        functions,
        types: reader.foreignTypes(item.types),
        interfaces: new Map([...inline("interfaces"), ...inline("interface_exports")]),
      };
    }),
  };
};

class DocsReader {
  readonly #section: string;
  readonly #at: string;

  constructor(section: string, offset: number) {
    this.#section = section;
    this.#at = offsetText(offset);
  }

  parse(content: Uint8Array, limits: DecodeLimits): JsonObject {
    if (content.length > limits.maxDocsBytes) {
      const message = `the section ${this.#section} has ${content.length} bytes, more than the ${limits.maxDocsBytes} allowed`;
      throw new Invalid("ComponentTooLarge", message, this.#at);
    }
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
      return this.#object(parseJson(text, { maxLength: limits.maxDocsBytes, maxDepth: maxJsonDepth }));
    } catch (cause) {
      if (cause instanceof TypeError) throw this.fail("is not UTF-8", cause);
      if (cause instanceof Invalid && cause.code.startsWith("Json")) throw this.fail(messageOf(cause), cause);
      throw cause;
    }
  }

  interface(item: JsonObject): InterfaceDocs {
    return {
      docs: this.text(item.docs),
      functions: this.#texts(item.functions),
      types: this.map(item.types, (type): TypeDocs => ({ docs: this.text(type.docs), members: this.#texts(type.members) })),
    };
  }

  foreignInterface(item: JsonObject): InterfaceDocs {
    return { docs: this.text(item.docs), functions: this.functions(item.funcs), types: this.foreignTypes(item.types) };
  }

  foreignTypes(value: JsonValue | undefined): ReadonlyMap<string, TypeDocs> {
    return this.map(value, (type): TypeDocs => ({ docs: this.text(type.docs), members: this.#texts(type.items) }));
  }

  /** Version 0 has a string for each function, version 1 an object. */
  functions(value: JsonValue | undefined): ReadonlyMap<string, string> {
    return this.#entries(value, (item) => this.text(isJsonObject(item) ? item.docs : item));
  }

  map<T>(value: JsonValue | undefined, read: (item: JsonObject) => T): ReadonlyMap<string, T> {
    return this.#entries(value, (item) => read(this.#object(item)));
  }

  text(value: JsonValue | undefined): string {
    if (value === undefined || value === null) return "";
    if (typeof value !== "string") throw this.fail("has something else than text for docs");
    return value.replaceAll("\r\n", "\n").trim();
  }

  fail(message: string, cause?: unknown): Invalid {
    return new Invalid("DocsMalformed", `the section ${this.#section} at ${this.#at} ${message}`, this.#at, { cause });
  }

  #texts(value: JsonValue | undefined): ReadonlyMap<string, string> {
    return this.#entries(value, (item) => this.text(item));
  }

  #entries<T>(value: JsonValue | undefined, read: (item: JsonValue) => T): ReadonlyMap<string, T> {
    if (value === undefined) return new Map();
    return new Map(Object.entries(this.#object(value)).map(([key, item]) => [key, read(item)]));
  }

  #object(value: JsonValue): JsonObject {
    if (!isJsonObject(value)) throw this.fail("does not have the form that is expected of it");
    return value;
  }
}

const packageJson = (docs: PackageDocs): JsonObject | null =>
  withoutEmpty([
    ["docs", docs.docs],
    ["interfaces", objectOf(docs.interfaces, interfaceJson)],
    ["worlds", objectOf(docs.worlds, worldJson)],
  ]);

const worldJson = (docs: WorldDocs): JsonObject | null =>
  withoutEmpty([...interfaceEntries(docs), ["interfaces", objectOf(docs.interfaces, interfaceJson)]]);

const interfaceJson = (docs: InterfaceDocs): JsonObject | null => withoutEmpty(interfaceEntries(docs));

const interfaceEntries = (docs: InterfaceDocs): [string, JsonValue][] => [
  ["docs", docs.docs],
  ["functions", objectOf(docs.functions, (text) => text || null)],
  ["types", objectOf(docs.types, typeJson)],
];

const typeJson = (docs: TypeDocs): JsonObject | null =>
  withoutEmpty([
    ["docs", docs.docs],
    ["members", objectOf(docs.members, (text) => text || null)],
  ]);

const objectOf = <T>(map: ReadonlyMap<string, T>, toJson: (item: T) => JsonValue): JsonObject | null =>
  withoutEmpty([...map].map(([key, item]) => [key, toJson(item)]));

/** Null where nothing is left. */
const withoutEmpty = (entries: readonly (readonly [string, JsonValue])[]): JsonObject | null => {
  const kept = entries.filter(([, value]) => value !== null && value !== "");
  return kept.length === 0 ? null : jsonObject(kept);
};
