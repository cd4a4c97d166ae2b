import { type Sha256Digest, sha256Of } from "../api/digest.ts";
import type { ToolGrantSpec } from "../api/generated/toolgrant.ts";
import { canonicalJson, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";

/**
 * What a reviewer decided, as canonical JSON: the spec without its review and without what is as by default, so that it is the same whether a server has
 * filled the defaults in or not.
 */
export const grantText = (spec: ToolGrantSpec): string => {
  const { review: _, ...decided } = spec;
  const entries = Object.entries(decided as unknown as JsonObject);
  return canonicalJson(jsonObject(entries.filter(([key, value]) => !isDefault(key, value))));
};

/** SHA-256 of `grantText`. */
export const grantDigest = (spec: ToolGrantSpec): Sha256Digest => sha256Of(grantText(spec));

const isDefault = (key: string, value: JsonValue | undefined): boolean =>
  value === undefined ||
  (key === "mutates" && value === true) ||
  (key === "egressCeiling" && value === "Internal") ||
  (key === "outputSensitivity" && value === "Internal") ||
  (Array.isArray(value) && value.length === 0);
