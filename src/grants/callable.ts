import type { ToolGrantSpec } from "../api/generated/toolgrant.ts";
import { compactJson, type JsonValue, jsonObject } from "../api/json.ts";
import { isWithin, unlabelled } from "./labels.ts";
import { bytesWithin } from "./limits.ts";

/**
 * Why no caller without labels could ever call the tool, and what to change; null where one can. Such a caller's arguments are what a model wrote: untrusted,
 * without sources, Internal (docs/review.md).
 */
export const neverCallable = (spec: ToolGrantSpec): string | null => {
  const { mutates, egressCeiling, fields = [], declaration, maxEgressBytes } = spec;
  if (!isWithin(unlabelled.sensitivity, egressCeiling)) {
    return `egressCeiling is ${egressCeiling}, and what a model writes is ${unlabelled.sensitivity}; raise egressCeiling`;
  }
  for (const { path, requireTrusted, allowedSources, maxSensitivity } of fields) {
    if (requireTrusted || allowedSources) {
      const rule = requireTrusted ? "requireTrusted" : "allowedSources";
      return `the rule for ${at(path)} has ${rule}, which nothing that a model writes satisfies; use oneOf or acceptUntrusted`;
    }
    if (maxSensitivity && !isWithin(unlabelled.sensitivity, maxSensitivity)) {
      return `the rule for ${at(path)} has maxSensitivity ${maxSensitivity}, and what a model writes is ${unlabelled.sensitivity}; raise it`;
    }
  }
  const { required } = declaration.parameters;
  const needed: readonly JsonValue[] = Array.isArray(required) ? required : [];
  const needsArguments = needed.length > 0;
  const smallest = fewestBytes(needed);
  if (maxEgressBytes && bytesWithin(maxEgressBytes).max < smallest) {
    return `maxEgressBytes is ${maxEgressBytes.bytes}, and its arguments have ${smallest} bytes at least; raise it`;
  }
  if (mutates && fields.length === 0 && needsArguments) {
    return "it mutates and has no field rules, so it takes no argument that a model wrote; set mutates: false, or fields with oneOf or acceptUntrusted";
  }
  return null;
};

/** Of arguments with these names, each of a value as short as any: `{"a":0,"b":0}`. */
const fewestBytes = (names: readonly JsonValue[]): number =>
  Buffer.byteLength(compactJson(jsonObject(names.map((name) => [String(name), 0]))), "utf8");

const at = (path: string): string => (path === "" ? "the whole of the arguments" : path);
