import { Invalid } from "./errors.ts";

/**
 * JSON exactly as written: integers beyond 2^53 are `bigint` (written with a fraction or an exponent, up to 2^64: beyond it no type of ours tells them
 * from the nearest double), objects have no prototype (so `__proto__` is a key like any other) and keep the
 * order of their keys, strings hold whole Unicode scalar values.
 */
export type JsonValue = null | boolean | number | bigint | string | JsonArray | JsonObject;
export type JsonArray = readonly JsonValue[];
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

export interface JsonLimits {
  /** Longest text accepted, in UTF-16 code units. */
  readonly maxLength: number;
  /** Deepest nesting of arrays and objects accepted. */
  readonly maxDepth: number;
}

export const defaultJsonLimits: JsonLimits = { maxLength: 1024 * 1024, maxDepth: 64 };

/** No integer type holds more. A literal such as `3.4028234663852886e38` means the nearest double, and is not spelled out as an integer. */
const beyondIntegerTypes = 2 ** 64;

/** Digits and exponent may cancel out, so that a long literal stands for a small number: computing that exactly takes time for nothing. */
const longestSpelledOut = 400;

export const isJsonObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A JSON pointer (RFC 6901) with `key` appended. */
export const pointerTo = (pointer: string, key: string | number): string =>
  `${pointer}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;

/** An object without a prototype that holds these entries, in this order. */
export const jsonObject = (entries: Iterable<readonly [string, JsonValue]>): JsonObject => {
  const made: Record<string, JsonValue> = Object.create(null);
  for (const [key, value] of entries) made[key] = value;
  return made;
};

/**
 * Parses RFC 8259 text exactly. Throws `Invalid` with code `JsonSyntax`, `JsonDuplicateKey`, `JsonLoneSurrogate`, `JsonNumberRange`, `JsonTooDeep` or
 * `JsonTooLong`; `at` is the JSON pointer of the place.
 */
export const parseJson = (text: string, limits: JsonLimits = defaultJsonLimits): JsonValue => {
  if (text.length > limits.maxLength) {
    throw new Invalid("JsonTooLong", `the JSON text has ${text.length} characters, more than the ${limits.maxLength} allowed`, "");
  }
  return new Parser(text, limits.maxDepth).document();
};

const numberPattern = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: RFC 8259 forbids them unescaped in strings
const plainRun = /[^"\\\u0000-\u001f]*/y;
const whitespace = /[ \t\n\r]*/y;
const [zero, point, lowerE, upperE] = [0x30, 0x2e, 0x65, 0x45] as const;
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

class Parser {
  readonly #text: string;
  readonly #maxDepth: number;
  #at = 0;
  readonly #path: (string | number)[] = [];

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  document(): JsonValue {
    this.#skip();
    const value = this.#value();
    this.#skip();
    if (this.#at < this.#text.length) throw this.#unexpected("the end of the text");
    return value;
  }

  #value(): JsonValue {
    const c = this.#text[this.#at];
    switch (c) {
      case "{":
        return this.#object();
      case "[":
        return this.#array();
      case '"':
        return this.#string();
      case "t":
        return this.#word("true", true);
      case "f":
        return this.#word("false", false);
      case "n":
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  #object(): JsonObject {
    const made: Record<string, JsonValue> = Object.create(null);
    this.#enter();
    this.#skip();
    if (this.#text[this.#at] === "}") {
      this.#at++;
      return made;
    }
    for (;;) {
      if (this.#text[this.#at] !== '"') throw this.#unexpected("a key in double quotes");
      const key = this.#string();
      if (Object.hasOwn(made, key)) throw this.#fail("JsonDuplicateKey", `the key ${JSON.stringify(key)} occurs twice`);
      this.#skip();
      if (this.#text[this.#at] !== ":") throw this.#unexpected("':'");
      this.#at++;
      this.#skip();
      this.#path.push(key);
      made[key] = this.#value();
      this.#path.pop();
      this.#skip();
      const next = this.#text[this.#at];
      this.#at++;
      if (next === "}") return made;
      if (next !== ",") {
        this.#at--;
        throw this.#unexpected("',' or '}'");
      }
      this.#skip();
    }
  }

  #array(): JsonArray {
    const made: JsonValue[] = [];
    this.#enter();
    this.#skip();
    if (this.#text[this.#at] === "]") {
      this.#at++;
      return made;
    }
    for (;;) {
      this.#path.push(made.length);
      made.push(this.#value());
      this.#path.pop();
      this.#skip();
      const next = this.#text[this.#at];
      this.#at++;
      if (next === "]") return made;
      if (next !== ",") {
        this.#at--;
        throw this.#unexpected("',' or ']'");
      }
      this.#skip();
    }
  }

  #enter(): void {
    this.#at++;
    if (this.#path.length >= this.#maxDepth) throw this.#fail("JsonTooDeep", `nested deeper than ${this.#maxDepth}`);
  }

  #string(): string {
    this.#at++;
    let made = "";
    for (;;) {
      plainRun.lastIndex = this.#at;
      const run = plainRun.exec(this.#text)?.[0] ?? "";
      made += run;
      this.#at += run.length;
      const c = this.#text[this.#at];
      if (c === '"') {
        this.#at++;
        if (!made.isWellFormed()) throw this.#fail("JsonLoneSurrogate", "a string holds half of a surrogate pair");
        return made;
      }
      if (c !== "\\") throw this.#unexpected("the end of a string");
      const letter = this.#text[this.#at + 1] ?? "";
      if (letter === "u") {
        const digits = this.#text.slice(this.#at + 2, this.#at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.#unexpected("four hexadecimal digits after \\u");
        made += String.fromCharCode(Number.parseInt(digits, 16));
        this.#at += 6;
      } else {
        const plain = escapes[letter];
        if (plain === undefined) throw this.#unexpected("a valid escape");
        made += plain;
        this.#at += 2;
      }
    }
  }

  #number(): number | bigint {
    return this.#shortInteger() ?? this.#anyNumber();
  }

  /** Most numbers in arguments are short integers: read without a regular expression. */
  #shortInteger(): number | undefined {
    const first = this.#text.charCodeAt(this.#at) - zero;
    if (!(first >= 1 && first <= 9)) return undefined;
    let value = first;
    for (let at = this.#at + 1; at < this.#at + 15; at++) {
      const c = this.#text.charCodeAt(at);
      const digit = c - zero;
      if (digit >= 0 && digit <= 9) {
        value = value * 10 + digit;
        continue;
      }
      if (c === point || c === lowerE || c === upperE) return undefined;
      this.#at = at;
      return value;
    }
    return undefined;
  }

  #anyNumber(): number | bigint {
    numberPattern.lastIndex = this.#at;
    const match = numberPattern.exec(this.#text);
    if (!match) throw this.#unexpected("a JSON value");
    this.#at += match[0].length;
    const value = Number(match[0]);
    if (!Number.isFinite(value)) throw this.#fail("JsonNumberRange", `the number ${shortened(match[0])} is too large`);
    if (Number.isSafeInteger(value) || (Math.abs(value) < 1 && value !== 0)) return value;
    return exactInteger(match[0]) ?? value;
  }

  #word<T extends boolean | null>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#unexpected("a JSON value");
    this.#at += word.length;
    return value;
  }

  #skip(): void {
    const c = this.#text.charCodeAt(this.#at);
    if (c > 0x20) return;
    whitespace.lastIndex = this.#at;
    this.#at += whitespace.exec(this.#text)?.[0].length ?? 0;
  }

  #unexpected(expected: string): Invalid {
    const found = this.#text[this.#at];
    const what = found === undefined ? "the text ends" : `found ${JSON.stringify(found)}`;
    return this.#fail("JsonSyntax", `not JSON at character ${this.#at}: expected ${expected}, ${what}`);
  }

  #fail(code: string, message: string): Invalid {
    return new Invalid(code, message, this.#path.reduce<string>(pointerTo, ""));
  }
}

const shortened = (digits: string): string => (digits.length > 40 ? `${digits.slice(0, 37)}…` : digits);

/** The integer that a literal such as `18446744073709551615`, `1e19` or `92233720368547758.07e2` stands for; undefined if it is none. */
const exactInteger = (literal: string): bigint | undefined => {
  if (/^-?[0-9]+$/.test(literal)) return BigInt(literal);
  if (literal.length > longestSpelledOut || Math.abs(Number(literal)) > beyondIntegerTypes) return undefined;
  const [mantissa = "", exponentText = "0"] = literal.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const significant = fraction.replace(/0+$/, "");
  const exponent = Number(exponentText) - significant.length;
  const digits = BigInt(whole + significant);
  if (exponent >= 0) return digits * 10n ** BigInt(exponent);
  const divisor = 10n ** BigInt(-exponent);
  return digits % divisor === 0n ? digits / divisor : undefined;
};

/** JSON text without whitespace, keys in the order they have. */
export const compactJson = (value: JsonValue): string => write(value, (keys) => keys);

/** The canonical form of RFC 8785; integers beyond 2^53, which it leaves out, are written with all their digits. */
export const canonicalJson = (value: JsonValue): string => write(value, (keys) => keys.sort());

const write = (value: JsonValue, order: (keys: string[]) => string[]): string => {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "bigint":
      return value.toString();
    case "number":
      if (!Number.isFinite(value)) throw new Invalid("JsonNumberRange", "JSON has no NaN and no infinity");
      return JSON.stringify(value);
    case "boolean":
      return value ? "true" : "false";
    default:
      if (value === null) return "null";
      if (Array.isArray(value)) return `[${value.map((item) => write(item, order)).join(",")}]`;
      return writeObject(value as JsonObject, order);
  }
};

const writeObject = (object: JsonObject, order: (keys: string[]) => string[]): string => {
  const parts: string[] = [];
  for (const key of order(Object.keys(object))) {
    const value = object[key];
    if (value !== undefined) parts.push(`${JSON.stringify(key)}:${write(value, order)}`);
  }
  return `{${parts.join(",")}}`;
};
