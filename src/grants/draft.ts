import type { ToolIdentity } from "../api/definition.ts";
import { sha256Of } from "../api/digest.ts";
import { Invalid } from "../api/errors.ts";
import type { GrantedDeclaration, ToolGrant } from "../api/generated/toolgrant.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import { isUntyped, type ToolDefinition, type UntypedTool } from "../api/untyped.ts";
import { declarationOf } from "../declaration/declaration.ts";
import { childrenOf, mapChildren } from "../declaration/subschemas.ts";
import { closedSchema } from "./closed-schema.ts";
import { grantedTool, type ToolSource } from "./granted-tool.ts";

export const draftLabel = "ambit.dev/draft";
export const workloadLabel = "ambit.dev/workload";

export interface DraftOptions {
  readonly namespace: string;
  readonly workload: string;
  readonly source: ToolSource;
  readonly fn: ToolDefinition;
  /** The name that a model shall call; null where a person must choose one. */
  readonly name: string | null;
}

/**
 * The grant that is proposed for a tool: the far side's words, copied for review, and the narrowest rights. It names nobody and has no review, so it offers
 * nothing until a person has filled it in and approved it. The same tool always gives the same draft.
 *
 * Throws `Invalid` (`SchemaTooLarge`) where the tool's schema is too large to declare.
 */
export const draftGrant = ({ namespace, workload, source, fn, name }: DraftOptions): ToolGrant => {
  const { description, parameters } = isUntyped(fn) ? ownWords(fn) : declarationOf(fn, name ?? "");
  return {
    apiVersion: "ambit.dev/v1alpha1",
    kind: "ToolGrant",
    metadata: {
      name: draftName(workload, source.name, fn),
      namespace,
      labels: { [draftLabel]: "true", [workloadLabel]: labelValue(workload) },
    },
    spec: {
      tool: grantedTool(workload, source, fn),
      declaration: { name: name ?? "", description: description.length <= longestDescription ? description : "", parameters },
      mutates: true,
      egressCeiling: "Internal",
    },
  };
};

/** As the CRD bounds it. What is longer is not cut: a person writes what a model is to read. */
const longestDescription = 16_384;

/** Longest schema that is drafted, as for typed tools: a person has to read it. */
const longestParameters = 256 * 1024;

const ownWords = ({ description, inputSchema }: UntypedTool): Pick<GrantedDeclaration, "description" | "parameters"> => {
  const parameters = closedSchema(asDialectOfAll(withoutNotes(inputSchema)));
  const { length } = canonicalJson(parameters);
  if (length > longestParameters) {
    throw new Invalid("SchemaTooLarge", `its input schema has ${length} characters, more than ${longestParameters}`, "/inputSchema");
  }
  return { description: description ?? "", parameters };
};

/**
 * How arguments travel to an MCP server is between it and who speaks to it. And client-side apply drops what is null: a default of null would be gone after the first, and the
 * grant another than the one that was reviewed.
 */
const withoutNotes = (schema: JsonObject): JsonObject => {
  const kept = without(
    "x-mcp-header",
    mapChildren(schema, (child: JsonValue) => (isJsonObject(child) ? withoutNotes(child) : child)),
  );
  return kept.default === null ? without("default", kept) : kept;
};

const without = (keyword: string, schema: JsonObject): JsonObject => jsonObject(Object.entries(schema).filter(([key]) => key !== keyword));

/** Dialects whose keywords mean what they mean in 2020-12, but for those below. */
const olderDialects = /^https?:\/\/json-schema\.org\/(draft-0[67]\/schema|draft\/2019-09\/schema)#?$/;
const otherMeanings = ["additionalItems", "dependencies", "$recursiveRef", "$recursiveAnchor"];

/** The schema without naming an older dialect, where it says the same in 2020-12: most that are generated do. */
const asDialectOfAll = (schema: JsonObject): JsonObject => {
  if (typeof schema.$schema !== "string" || !olderDialects.test(schema.$schema) || meansOtherThings(schema)) return schema;
  return without("$schema", schema);
};

const meansOtherThings = (schema: JsonValue): boolean =>
  isJsonObject(schema) &&
  (Array.isArray(schema.items) ||
    otherMeanings.some((keyword) => schema[keyword] !== undefined) ||
    (schema.$ref !== undefined && Object.keys(schema).some((keyword) => !besideReference.has(keyword))) ||
    [...childrenOf(schema)].some(({ schema: child }) => meansOtherThings(child)));

/** Older dialects ignore what stands beside a reference; of these it makes no difference. */
const besideReference: ReadonlySet<string> = new Set([
  "$ref",
  "$schema",
  "title",
  "description",
  "$defs",
  "definitions",
  "default",
  "examples",
]);

/** The object name of the draft for this tool. */
export const draftName = (workload: string, component: string, fn: ToolDefinition): string =>
  draftObjectName(
    isUntyped(fn) ? { workload, component, tool: fn.name } : { workload, component, interface: fn.interface, function: fn.name },
  );

/** `<workload>-<tool>-<eight digits>`, the digits from the whole identity, so that `Foo` and `foo` are two objects. */
export const draftObjectName = (identity: ToolIdentity): string => {
  const hash = sha256Of(canonicalJson({ ...identity })).slice("sha256:".length, "sha256:".length + 8);
  const tool = "tool" in identity ? identity.tool : identity.function;
  const readable = `${identity.workload}-${tool}`.toLowerCase().replace(/[^a-z0-9-]/g, "-");
  return `${readable.slice(0, 200).replace(/^-+|-+$/g, "")}-${hash}`;
};

/** A label's value has at most 63 characters; a longer name is found by its grant's spec instead. */
const labelValue = (name: string): string => name.slice(0, 63).replace(/[^A-Za-z0-9]+$/, "");
