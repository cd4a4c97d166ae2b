import { isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { Finding } from "./problem.ts";

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const mapKey = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** All annotations of one object together, as an API server bounds them. */
const largestAnnotations = 256 * 1024;

/**
 * The metadata with what we read of it checked by Kubernetes' rules; the other fields are kept as they are. A namespace left out is `default`. `longestName` is what the kind's
 * schema says of names, which may be less than Kubernetes allows.
 */
export const checkMetadata = (
  metadata: JsonValue | undefined,
  report: (finding: Finding) => void,
  longestName: number | undefined = undefined,
): JsonObject => {
  if (!isJsonObject(metadata)) {
    report({ path: metadata === undefined ? "" : "/metadata", code: "MissingField", message: "needs metadata with a name" });
    return jsonObject([]);
  }
  const { name, namespace = null, labels = null, annotations = null, ...others } = metadata;
  if (typeof name !== "string") report({ path: "/metadata", code: "MissingField", message: "needs the field name, a string" });
  else if (name.length > 253 || !subdomain.test(name)) {
    report({
      path: "/metadata/name",
      code: "PatternMismatch",
      message: `${shown(name)} is no name: lower-case letters, digits, "-" and "."`,
    });
  } else if (longestName !== undefined && name.length > longestName) {
    report({
      path: "/metadata/name",
      code: "TooLong",
      message: `the name has ${name.length} characters, more than the ${longestName} allowed`,
    });
  }
  if (namespace !== null && (typeof namespace !== "string" || namespace.length > 63 || !label.test(namespace))) {
    report({
      path: "/metadata/namespace",
      code: "PatternMismatch",
      message: "a namespace is lower-case letters, digits and -, at most 63",
    });
  }
  const known: [string, JsonValue][] = [["name", name ?? null]];
  known.push(["namespace", namespace ?? "default"]);
  if (checkTextMap(labels, "/metadata/labels", report)) known.push(["labels", labels]);
  if (checkTextMap(annotations, "/metadata/annotations", report)) known.push(["annotations", annotations]);
  return jsonObject([...known, ...Object.entries(others)]);
};

const checkTextMap = (map: JsonValue, path: string, report: (finding: Finding) => void): boolean => {
  if (map === null) return false;
  if (!isJsonObject(map)) {
    report({ path, code: "WrongType", message: "must be an object of strings" });
    return false;
  }
  let size = 0;
  for (const [key, value] of Object.entries(map)) {
    const at = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (typeof value !== "string") report({ path: at, code: "WrongType", message: "must be a string; put numbers and booleans in quotes" });
    else {
      size += Buffer.byteLength(key) + Buffer.byteLength(value);
      if (path.endsWith("labels") && !labelValue.test(value))
        report({ path: at, code: "PatternMismatch", message: `${shown(value)} is no label value` });
    }
    if (!mapKey.test(key)) report({ path: at, code: "PatternMismatch", message: `${shown(key)} is no key of a label or annotation` });
  }
  if (size > largestAnnotations) report({ path, code: "TooLong", message: `has ${size} bytes, at most ${largestAnnotations} are allowed` });
  return true;
};

const shown = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}…` : text);
