import type { ToolGrantSpec } from "../api/generated/toolgrant.ts";
import { isWithin, unlabelled } from "./labels.ts";

/**
 * Why no caller without labels could ever call the tool, and what to change; null where one can. Such a caller's arguments are what a model wrote: untrusted,
 * without sources, Internal (docs/review.md).
 */
export const neverCallable = (spec: ToolGrantSpec): string | null => {
  const { mutates, egressCeiling, fields = [], declaration } = spec;
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
  const needsArguments = Array.isArray(required) && required.length > 0;
  if (mutates && fields.length === 0 && needsArguments) {
    return "it mutates and has no field rules, so it takes no argument that a model wrote; set mutates: false, or fields with oneOf or acceptUntrusted";
  }
  return null;
};

const at = (path: string): string => (path === "" ? "the whole of the arguments" : path);
