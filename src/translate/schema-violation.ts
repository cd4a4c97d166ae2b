import type { ErrorObject } from "ajv/dist/2020.js";
import { compactJson, isJsonObject, type JsonValue, pointerTo } from "../api/json.ts";
import { cut, enumerated, inShort } from "./wording.ts";

/** Why a value doesn't satisfy a schema. `message` is one line that a model can act on and begins with the place. */
export interface SchemaViolation {
  /** JSON pointer into the value. */
  readonly pointer: string;
  readonly expected: string;
  readonly got: string;
  readonly message: string;
}

/**
 * The violation to tell of. Where alternatives all failed, the one that got furthest into the value is most likely the one that was meant.
 */
export const violationOf = (errors: readonly ErrorObject[], value: JsonValue): SchemaViolation => {
  const [first] = errors;
  if (!first) return violation("", "a value that the schema admits", "another");
  const furthest = errors.reduce((best, error) => (depthOf(error) > depthOf(best) ? error : best));
  const last = errors.at(-1) ?? first;
  const told = depthOf(furthest) > depthOf(last) || !isAlternative(last) ? furthest : last;
  return violationFrom(told, errors, inShort(valueAt(value, told.instancePath)));
};

/** ajv saw a copy with large integers rounded; the message shows what came. */
const valueAt = (value: JsonValue, pointer: string): JsonValue | undefined => {
  let here: JsonValue | undefined = value;
  for (const step of pointer.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    here = Array.isArray(here) ? here[Number(key)] : isJsonObject(here) ? here[key] : undefined;
  }
  return here;
};

export const violation = (pointer: string, expected: string, got: string): SchemaViolation => ({
  pointer,
  expected,
  got,
  message: `${pointer || "the arguments"}: expected ${expected}; got ${got}`,
});

const isAlternative = (error: ErrorObject): boolean => error.keyword === "anyOf" || error.keyword === "oneOf";
const depthOf = (error: ErrorObject): number => pointerOf(error).split("/").length;

const pointerOf = (error: ErrorObject): string => {
  const { keyword, params, instancePath } = error;
  if (keyword === "required" || keyword === "dependentRequired") return pointerTo(instancePath, params.missingProperty);
  if (keyword === "additionalProperties") return pointerTo(instancePath, params.additionalProperty);
  if (keyword === "unevaluatedProperties") return pointerTo(instancePath, params.unevaluatedProperty);
  return instancePath;
};

const violationFrom = (error: ErrorObject, all: readonly ErrorObject[], got: string): SchemaViolation => {
  const at = pointerOf(error);
  switch (error.keyword) {
    case "required":
    case "dependentRequired":
      return violation(at, "a value (it is required)", "nothing");
    case "additionalProperties":
    case "unevaluatedProperties":
      return violation(at, `only ${known(error)}`, "a property of another name");
    case "anyOf":
    case "oneOf": {
      const here = all.filter((one) => one !== error && one.instancePath === error.instancePath && !isAlternative(one));
      const wishes = [...new Set(here.map(wish))].slice(0, 5);
      return violation(at, wishes.length > 0 ? wishes.join(" or ") : "exactly one of the alternatives", got);
    }
    default:
      return violation(at, wish(error), got);
  }
};

const known = (error: ErrorObject): string => {
  const names = Object.keys((error.parentSchema?.properties as object | undefined) ?? {});
  if (names.length === 0) return "no properties";
  return enumerated(names);
};

const article = (type: string): string => (type === "null" ? "null" : /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`);

const asJson = (value: JsonValue): string => cut(compactJson(value), 60);

/** What a keyword asks for, in words. */
const wish = (error: ErrorObject): string => {
  const asked: unknown = error.schema;
  switch (error.keyword) {
    case "type":
      return [asked]
        .flat()
        .map((type) => article(String(type)))
        .join(" or ");
    case "enum":
      return `one of ${Array.isArray(asked) ? enumerated(asked.map(asJson)) : ""}`;
    case "const":
      return asJson(asked as JsonValue);
    case "minimum":
      return `at least ${asked}`;
    case "maximum":
      return `at most ${asked}`;
    case "exclusiveMinimum":
      return `more than ${asked}`;
    case "exclusiveMaximum":
      return `less than ${asked}`;
    case "multipleOf":
      return `a multiple of ${asked}`;
    case "minLength":
      return `at least ${asked} characters`;
    case "maxLength":
      return `at most ${asked} characters`;
    case "pattern":
      return `a string that matches the pattern ${cut(String(asked), 80)}`;
    case "minItems":
      return `at least ${asked} items`;
    case "maxItems":
      return `at most ${asked} items`;
    case "uniqueItems":
      return "items that all differ";
    case "minProperties":
      return `at least ${asked} properties`;
    case "maxProperties":
      return `at most ${asked} properties`;
    case "propertyNames":
      return "property names that the schema admits";
    case "required":
      return `an object with ${error.params.missingProperty}`;
    case "additionalProperties":
      return `an object with only ${known(error)}`;
    case "not":
      return "a value that the schema doesn't exclude";
    case "contains":
      return "an array with an item that the schema asks for";
    default:
      return "a value that the schema admits";
  }
};
