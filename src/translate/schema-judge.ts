import { Ajv2020, type AnySchemaObject } from "ajv/dist/2020.js";
import type { DataValidationCxt } from "ajv/dist/types/index.js";
import { Invalid, messageOf } from "../api/errors.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from "../api/json.ts";
import { base64Pattern } from "../declaration/schema.ts";
import { childrenOf, mapChildren } from "../declaration/subschemas.ts";
import { isBase64 } from "./base64.ts";
import { assertUsableSchema, compilePattern, unusable } from "./schema-usable.ts";
import { type SchemaViolation, violation, violationOf } from "./schema-violation.ts";

/** Judges a value; null where it satisfies the schema. */
export type SchemaJudge = (value: JsonValue) => SchemaViolation | null;

/** Steps of one judgement: a subschema or a property looked at, or 16 characters matched against a pattern. An ordinary call takes fewer than a thousand. */
const mostSteps = 1_000_000;

/**
 * A judge for a reviewed schema (JSON Schema 2020-12). Numbers are compared exactly whatever their size; `format` and `contentEncoding` are notes to
 * the reader; nothing is fetched; time and memory are bounded for any schema and any value.
 *
 * Throws `Invalid` with code `SchemaUnusable`: see `assertUsableSchema`; also where the schema isn't valid under the meta-schema.
 */
export const compileSchema = (schema: JsonObject): SchemaJudge => {
  assertUsableSchema(schema);
  assertValidSchema(schema);
  const validate = compiled(prepared(schema));
  return (value) => {
    const judgement = new Judgement();
    try {
      return validate.call(judgement, judgement.rounded(value)) ? null : violationOf(validate.errors ?? [], value);
    } catch (thrown) {
      if (thrown instanceof TooManySteps) return violation("", "arguments simple enough to be checked", "more than can be checked in time");
      throw thrown;
    }
  };
};

/** Knows the meta-schema alone; nothing of ours is ever added to it. */
const metaSchema = new Ajv2020({ strict: false, logger: false });

const assertValidSchema = (schema: JsonObject): void => {
  if (metaSchema.validateSchema(roundedCopy(schema) as AnySchemaObject)) return;
  const error = metaSchema.errors?.[0];
  throw unusable(error?.instancePath ?? "", `not valid JSON Schema 2020-12: ${error?.message ?? "for an unknown reason"}`);
};

/** A compiler for each schema: ajv keeps in its scope what it has compiled, and grants come and go. */
const compiled = (schema: AnySchemaObject): ReturnType<Ajv2020["compile"]> => {
  try {
    const ajv = makeAjv();
    // Code that keeps account of what was evaluated is longer, and for a few odd schemas can't run.
    ajv.opts.unevaluated = looksAtTheRest(schema);
    return ajv.compile(schema);
  } catch (cause) {
    if (cause instanceof Invalid) throw cause;
    throw unusable("", `it can't be compiled: ${messageOf(cause)}`, cause);
  }
};

const looksAtTheRest = (schema: JsonObject): boolean => {
  if (schema.unevaluatedProperties !== undefined || schema.unevaluatedItems !== undefined) return true;
  for (const { schema: child } of childrenOf(schema)) if (isJsonObject(child) && looksAtTheRest(child)) return true;
  return false;
};

class TooManySteps extends Error {}

/**
 * One judgement: the `this` of our keywords. ajv knows no integers beyond 2^53, so it walks a copy of the value in which they are rounded, and every
 * keyword that compares numbers asks here for the exact value.
 */
class Judgement {
  readonly #exact = new Map<object, JsonValue>();
  #steps = 0;

  step(count = 1): void {
    this.#steps += count;
    if (this.#steps > mostSteps) throw new TooManySteps();
  }

  /** The copy for ajv; the value itself where nothing in it needs rounding. */
  rounded(value: JsonValue): unknown {
    if (typeof value === "bigint") return Number(value);
    if (typeof value !== "object" || value === null) return value;
    const copy = Array.isArray(value) ? value.map((item: JsonValue) => this.rounded(item)) : this.#roundedObject(value as JsonObject);
    this.#exact.set(copy, value);
    return copy;
  }

  #roundedObject(object: JsonObject): object {
    const copy: Record<string, unknown> = Object.create(null);
    for (const [key, value] of Object.entries(object)) copy[key] = this.rounded(value);
    return copy;
  }

  /** The value that ajv sees as `data`. The root is an object, so a number always has a parent. */
  exact(data: unknown, place: DataValidationCxt | undefined): JsonValue {
    if (typeof data === "object" && data !== null) return this.#exact.get(data) ?? null;
    if (typeof data !== "number") return data as JsonValue;
    const parent = place?.parentData ? this.#exact.get(place.parentData) : undefined;
    const exact = parent === undefined ? undefined : (parent as Record<string | number, JsonValue>)[place?.parentDataProperty ?? ""];
    return typeof exact === "bigint" ? exact : data;
  }
}

/** Added to every subschema, before anything else in it is looked at. */
const stepKeyword = "ambitStep";

/** The keywords that compare values, as ajv's own would for what fits a double. */
const exactKeywords: Readonly<Record<string, (asked: JsonValue) => (value: JsonValue) => boolean>> = {
  minimum: (asked) => (value) => !isNumeric(value) || !isNumeric(asked) || value >= asked,
  maximum: (asked) => (value) => !isNumeric(value) || !isNumeric(asked) || value <= asked,
  exclusiveMinimum: (asked) => (value) => !isNumeric(value) || !isNumeric(asked) || value > asked,
  exclusiveMaximum: (asked) => (value) => !isNumeric(value) || !isNumeric(asked) || value < asked,
  multipleOf: (asked) => (value) => !isNumeric(value) || !isNumeric(asked) || isMultiple(value, asked),
  const: (asked) => {
    const wanted = canonicalJson(asked);
    return (value) => canonicalJson(value) === wanted;
  },
  enum: (asked) => {
    const wanted = new Set(Array.isArray(asked) ? asked.map(canonicalJson) : []);
    return (value) => wanted.has(canonicalJson(value));
  },
  uniqueItems: (asked) => (value) => asked !== true || !Array.isArray(value) || new Set(value.map(canonicalJson)).size === value.length,
};

const isNumeric = (value: JsonValue): value is number | bigint => typeof value === "number" || typeof value === "bigint";

/** In decimals, as numbers are written: 4.35 is a multiple of 0.01, which it isn't in binary. */
const isMultiple = (value: number | bigint, of: number | bigint): boolean => {
  const [a, b] = [decimal(value), decimal(of)];
  const exponent = Math.min(a.exponent, b.exponent);
  const divisor = b.digits * 10n ** BigInt(b.exponent - exponent);
  return divisor !== 0n && (a.digits * 10n ** BigInt(a.exponent - exponent)) % divisor === 0n;
};

/** `digits` times ten to the `exponent`, which a double keeps within ±350. */
const decimal = (value: number | bigint): { readonly digits: bigint; readonly exponent: number } => {
  const [mantissa = "", power = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
};

const makeAjv = (): Ajv2020 => {
  const ajv = new Ajv2020({
    meta: false,
    strict: false,
    validateFormats: false,
    validateSchema: false,
    inlineRefs: false,
    ownProperties: true,
    passContext: true,
    verbose: true,
    messages: true,
    logger: false,
    code: { regExp: Object.assign(linearExpression, { code: "linearExpression" }) },
  });
  ajv.addKeyword({
    keyword: stepKeyword,
    before: "$ref",
    errors: false,
    validate(this: Judgement, weight: number) {
      this.step(weight);
      return true;
    },
  });
  for (const [keyword, demand] of Object.entries(exactKeywords)) {
    ajv.removeKeyword(keyword);
    ajv.addKeyword({
      keyword,
      compile: (asked: JsonValue) => {
        const holds = demand(asked);
        return function (this: Judgement, data: unknown, place?: DataValidationCxt) {
          return holds(this.exact(data, place));
        };
      },
    });
  }
  ajv.removeKeyword("pattern");
  ajv.addKeyword({
    keyword: "pattern",
    type: "string",
    compile: (pattern: string) => {
      const matches = matcherOf(pattern);
      return function (this: Judgement, data: string) {
        this.step(1 + (data.length >> 4));
        return matches(data);
      };
    },
  });
  return ajv;
};

const matcherOf = (pattern: string): ((text: string) => boolean) => {
  if (pattern === base64Pattern) return isBase64;
  const expression = compilePattern(pattern, "");
  return (text) => expression.test(text);
};

/** What ajv matches the keys of `patternProperties` with. */
const linearExpression = (pattern: string): { test: (text: string) => boolean; toString: () => string } => ({
  test: matcherOf(pattern),
  toString: () => `/${pattern}/`,
});

/** The schema for ajv: every subschema counted, numbers as they are where our keywords read them and rounded elsewhere. */
const prepared = (schema: JsonObject): AnySchemaObject => {
  const prepare = (child: JsonValue): JsonValue => (isJsonObject(child) ? prepared(child) : child);
  const copy = mapChildren(schema, prepare);
  for (const [keyword, value] of Object.entries(copy)) {
    if (typeof value === "bigint" && !Object.hasOwn(exactKeywords, keyword)) copy[keyword] = Number(value);
  }
  delete copy.$schema;
  copy[stepKeyword] = 1 + namesIn(schema);
  return copy.contains === undefined ? copy : containingApart(copy);
};

/**
 * What ajv makes of `contains` goes wrong for an empty array: beside `prefixItems` it isn't looked at, and without a maximum the array counts as what the one
 * before it was.
 */
const containingApart = ({
  contains,
  minContains = 1,
  maxContains = Number.MAX_SAFE_INTEGER,
  ...rest
}: Record<string, JsonValue>): JsonObject => ({
  ...rest,
  allOf: [...(Array.isArray(rest.allOf) ? rest.allOf : []), { contains: contains ?? true, minContains, maxContains }],
});

/** ajv looks for each property that a schema names in every object, whether it is there or not. */
const namesIn = ({ properties, required }: JsonObject): number =>
  (isJsonObject(properties) ? Object.keys(properties).length : 0) + (Array.isArray(required) ? required.length : 0);

/** The schema for the meta-schema's judge, which compares no numbers that matter. */
const roundedCopy = (value: JsonValue): JsonValue => {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(roundedCopy);
  return Object.fromEntries(Object.entries(value as JsonObject).map(([key, item]) => [key, roundedCopy(item)]));
};
