import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
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
  readonly maxDocuments: number;
}

export const defaultYamlLimits: YamlLimits = { maxLength: 1024 * 1024, maxDepth: 64, maxNodes: 100_000, maxDocuments: 1000 };

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
  if (nestsTooDeep(text, limits.maxDepth)) return [tooDeep(limits)];
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, intAsBigInt: true, uniqueKeys: true, merge: false, prettyErrors: false });
  if (!Array.isArray(documents)) return [];
  if (documents.length > limits.maxDocuments) {
    return [unreadable("YamlTooLong", `the file has ${documents.length} documents, more than the ${limits.maxDocuments} that are read`)];
  }
  return documents.map((document) => readDocument(document, lines, limits));
};

const readDocument = (document: Document.Parsed, lines: LineCounter, limits: YamlLimits): YamlDocument => {
  const [syntax] = [...document.errors, ...document.warnings];
  const start = document.contents?.range?.[0] ?? document.range[0];
  if (syntax) {
    const code = syntax.code === "DUPLICATE_KEY" ? "YamlDuplicateKey" : "YamlSyntax";
    const finding = { path: "", code, message: syntax.code === "DUPLICATE_KEY" ? "a key occurs twice in one mapping" : syntax.message };
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

const unreadable = (code: string, message: string): YamlDocument => ({
  value: undefined,
  findings: [{ path: "", code, message }],
  positionOf: () => ({ line: 1, column: 1 }),
});

const tooDeep = ({ maxDepth }: YamlLimits): YamlDocument => unreadable("YamlTooDeep", `the document nests deeper than ${maxDepth}`);

/**
 * A bound on nesting before the parser, which recurses: brackets that open, and compact lists and keys (`- - -`, `? ? ?`) in a line. It may count brackets within
 * strings, so its bound is far above the real one, which the reader applies to what was parsed.
 */
const nestsTooDeep = (text: string, maxDepth: number): boolean => {
  const bound = maxDepth * 16;
  let open = 0;
  for (const character of text) {
    if (character === "[" || character === "{") open++;
    else if ((character === "]" || character === "}") && open > 0) open--;
    if (open > bound) return true;
  }
  return new RegExp(`(?:[-?:][ \\t]+){${bound}}`).test(text) || new RegExp(`^ {${bound * 4}}`, "m").test(text);
};

class DocumentReader {
  readonly findings: Finding[] = [];
  readonly #document: Document.Parsed;
  readonly #limits: YamlLimits;
  readonly #offsets = new Map<string, number>();
  #nodes = 0;

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
