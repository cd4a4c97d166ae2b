import { Environment, EvaluationError } from "@marcbachmann/cel-js";
import { isJsonObject, type JsonValue, pointerTo } from "../api/json.ts";
import type { Finding } from "./problem.ts";
import type { StructuralSchema } from "./structural-schema.ts";

/**
 * Evaluates the CEL rules of a schema (`x-kubernetes-validations`) over a value that fits its structure, as an API server does on creation. The rules keep to
 * what the library and an API server evaluate alike (docs/spec/workload.md): no optionals, no transition rules, no extension libraries.
 */
export type RuleCheck = (value: JsonValue, path: string, report: (finding: Finding) => void) => void;

type Rule = { readonly holds: (self: unknown) => boolean; readonly message: string };

export const compileRules = (schema: StructuralSchema): RuleCheck => {
  const rules: Rule[] = (schema["x-kubernetes-validations"] ?? []).map(({ rule, message }) => ({ holds: compileRule(rule), message }));
  const properties = Object.entries(schema.properties ?? {}).map(([key, inner]) => [key, compileRules(inner)] as const);
  const items = schema.items ? compileRules(schema.items) : null;

  return (value, path, report) => {
    const self = rules.length > 0 ? celValue(schema, value) : null;
    for (const { holds, message } of rules) if (!holds(self)) report({ path, code: "RuleBroken", message });
    if (Array.isArray(value)) {
      for (const [i, item] of value.entries()) items?.(item, pointerTo(path, i), report);
    } else if (isJsonObject(value)) {
      for (const [key, check] of properties) {
        const inner = value[key];
        if (inner !== undefined) check(inner, pointerTo(path, key), report);
      }
    }
  };
};

/** A rule that fails to evaluate does not hold, as in an API server. */
const compileRule = (text: string): ((self: unknown) => boolean) => {
  const evaluate = new Environment().registerVariable("self", "dyn").parse(text);
  return (self) => {
    try {
      return evaluate({ self }) === true;
    } catch (error) {
      if (error instanceof EvaluationError) return false;
      throw error;
    }
  };
};

/** Integers as CEL's `int`, and properties that CEL reserves under their escaped names. */
const celValue = (schema: StructuralSchema | undefined, value: JsonValue): unknown => {
  if (typeof value === "number") return schema?.type === "integer" ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map((item: JsonValue) => celValue(schema?.items, item));
  if (!isJsonObject(value)) return value;
  const made: Record<string, unknown> = Object.create(null);
  for (const [key, inner] of Object.entries(value)) {
    const known = schema?.properties?.[key];
    made[known ? celName(key) : key] = celValue(known ?? schema?.additionalProperties, inner);
  }
  return made;
};

const reserved =
  /^(?:true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while)$/;

/** How a property is called in a rule (Kubernetes' CEL, escaping). */
const celName = (key: string): string => (reserved.test(key) ? `__${key}__` : key);
