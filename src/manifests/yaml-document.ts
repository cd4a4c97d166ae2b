import {
  type Alias,
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  Parser,
  type Scalar,
} from "yaml";
import { type JsonObject, type JsonValue, pointerTo } from "../api/json.ts";
import type { Finding } from "./problem.ts";

/** One document of a file. `value` is undefined where `findings` say why it can't be read; `null` is an empty document. */
export interface YamlDocument {
  readonly value: JsonValue | undefined;
  readonly findings: readonly Finding[];
  /** Line and column, from 1, of the node at a pointer, or of the nearest ancestor that is there. */
  readonly positionOf: (path: string) => { readonly line: number; readonly column: number };
}

export interface YamlLimits {
  readonly maxLength: number;
  readonly maxDepth: number;
  /** Nodes of one document, those that aliases repeat included. */
  readonly maxNodes: number;
  /** Aliases in one document; each costs a search of the whole document. */
  readonly maxAliases: number;
  readonly maxDocuments: number;
}

export const defaultYamlLimits: YamlLimits = {
  maxLength: 512 * 1024,
  maxDepth: 64,
  maxNodes: 100_000,
  maxAliases: 100,
  maxDocuments: 1000,
};

/** Words that YAML 1.1, which Kubernetes clients read, takes for booleans, and numbers that it reads otherwise than YAML 1.2 does. */
const readOtherwise =
  /^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF|[-+]?0[0-9_]+|0o[0-7]+|[-+]?[0-9][0-9]*_[0-9_]*|[-+]?0b[01_]+)$/;

/**
 * Reads YAML or JSON text as Kubernetes would, exactly: integers keep all their digits, keys are strings and unique. What different readers take for
 * different values is refused, so that a manifest means the same here and in a cluster.
 */
export const readYaml = (text: string, limits: YamlLimits = defaultYamlLimits): YamlDocument[] => {
  if (text.length > limits.maxLength) {
    return [unreadable("YamlTooLong", `the file has ${text.length} characters, more than the ${limits.maxLength} that are read`)];
  }
  const lines = new LineCounter();
  const { documents, broken } = compose(text, lines, limits);
  return [...documents.map((document) => readDocument(document, lines, limits)), ...(broken ? [broken] : [])];
};

/**
 * The documents up to the first character that fits no YAML, which is `broken`. The library checks uniqueness of keys by comparing all pairs and goes on after
 * errors, each minutes for a file that means harm: so the reader below checks keys, and this stops.
 */
const compose = (
  text: string,
  lines: LineCounter,
  { maxDocuments }: YamlLimits,
): { documents: Document.Parsed[]; broken: YamlDocument | null } => {
  const composer = new Composer({ lineCounter: lines, intAsBigInt: true, uniqueKeys: false, merge: false, prettyErrors: false });
  const documents: Document.Parsed[] = [];
  for (const token of new Parser(lines.addNewLine).parse(text)) {
    if (token.type === "error") {
      return { documents, broken: unreadable("YamlSyntax", token.message, placeOf(lines, token.offset)) };
    }
    documents.push(...composer.next(token));
    if (documents.length > maxDocuments) {
      return { documents: [], broken: unreadable("YamlTooLong", `the file has more than the ${maxDocuments} documents that are read`) };
    }
  }
  documents.push(...composer.end());
  return { documents, broken: null };
};

const readDocument = (document: Document.Parsed, lines: LineCounter, limits: YamlLimits): YamlDocument => {
  const [syntax] = [...document.errors, ...document.warnings];
  const start = document.contents?.range?.[0] ?? document.range[0];
  if (syntax) {
    const finding = { path: "", code: syntax.code === "RESOURCE_EXHAUSTION" ? "YamlTooDeep" : "YamlSyntax", message: syntax.message };
    return { value: undefined, findings: [finding], positionOf: () => placeOf(lines, syntax.pos[0]) };
  }
  const reader = new DocumentReader(document, limits);
  const value = document.contents === null ? null : reader.read(document.contents, "", 0);
  const positionOf = (path: string) => placeOf(lines, reader.offsetOf(path) ?? start);
  return { value: reader.findings.length > 0 ? undefined : value, findings: reader.findings, positionOf };
};

const placeOf = (lines: LineCounter, offset: number) => {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
};

const unreadable = (code: string, message: string, place = { line: 1, column: 1 }): YamlDocument => ({
  value: undefined,
  findings: [{ path: "", code, message }],
  positionOf: () => place,
});

class DocumentReader {
  readonly findings: Finding[] = [];
  readonly #document: Document.Parsed;
  readonly #limits: YamlLimits;
  readonly #offsets = new Map<string, number>();
  #nodes = 0;
  #aliases = 0;

  constructor(document: Document.Parsed, limits: YamlLimits) {
    this.#document = document;
    this.#limits = limits;
  }

  offsetOf(path: string): number | undefined {
    for (let at = path; ; at = at.slice(0, at.lastIndexOf("/"))) {
      const offset = this.#offsets.get(at);
      if (offset !== undefined || at === "") return offset;
    }
  }

  read(node: unknown, path: string, depth: number): JsonValue {
    if (++this.#nodes > this.#limits.maxNodes) return this.#fail(path, "YamlTooLong", `more than ${this.#limits.maxNodes} values`);
    if (depth > this.#limits.maxDepth) return this.#fail(path, "YamlTooDeep", `nested deeper than ${this.#limits.maxDepth}`);
    if (isAlias(node)) return this.#alias(node, path, depth);
    if (isNode(node) && node.range && !this.#offsets.has(path)) this.#offsets.set(path, node.range[0]);
    if (isMap(node)) return this.#map(node.items, path, depth);
    if (isSeq(node)) return node.items.map((item, i) => this.read(item, pointerTo(path, i), depth + 1));
    if (isScalar(node)) return this.#scalar(node, path);
    return null;
  }

  #alias(alias: Alias, path: string, depth: number): JsonValue {
    if (++this.#aliases > this.#limits.maxAliases) return this.#fail(path, "YamlTooLong", `more than ${this.#limits.maxAliases} aliases`);
    const target = alias.resolve(this.#document);
    if (!target) return this.#fail(path, "YamlSyntax", `the alias *${alias.source} has no anchor before it`);
    return this.read(target, path, depth + 1);
  }

  #map(pairs: readonly Pair[], path: string, depth: number): JsonObject {
    const made: Record<string, JsonValue> = Object.create(null);
    for (const { key, value } of pairs) {
      const name = isScalar(key) ? key.value : undefined;
      if (typeof name !== "string") {
        this.#fail(
          path,
          "YamlKey",
          `a key must be a string${isScalar(key) ? `: put quotes around ${String(key.source ?? key.value)}` : ""}`,
        );
        continue;
      }
      if (isScalar(key)) this.#scalar(key, path);
      const at = pointerTo(path, name);
      if (Object.hasOwn(made, name)) this.#fail(at, "YamlDuplicateKey", `the key ${JSON.stringify(name)} occurs twice in one mapping`);
      if (isScalar(key) && key.range) this.#offsets.set(at, key.range[0]);
      made[name] = this.read(value, at, depth + 1);
    }
    return made;
  }

  #scalar(scalar: Scalar, path: string): JsonValue {
    const { value, source = "", type, tag } = scalar;
    if (tag !== undefined && !/^tag:yaml\.org,2002:(?:str|int|float|bool|null)$/.test(tag)) {
      return this.#fail(path, "YamlTag", `the tag ${tag} is not used in manifests`);
    }
    if (type === "PLAIN" && readOtherwise.test(source)) {
      return this.#fail(
        path,
        "YamlAmbiguous",
        `${source} is read differently by YAML 1.1 and 1.2: put it in quotes, or write true, false or a plain number`,
      );
    }
    switch (typeof value) {
      case "bigint":
        return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
      case "number":
        return Number.isFinite(value) ? value : this.#fail(path, "YamlNumber", `${source} is no number that JSON has`);
      case "string":
        return value.isWellFormed() ? value : this.#fail(path, "YamlString", "a string holds half of a surrogate pair");
      case "boolean":
        return value;
      default:
        return value === null ? null : this.#fail(path, "YamlTag", "a value of a type that JSON does not have");
    }
  }

  #fail(path: string, code: string, message: string): null {
    if (this.findings.length < 20) this.findings.push({ path, code, message });
    return null;
  }
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && "range" in value;
