import { Invalid } from "../api/errors.ts";
import schemas from "../api/generated/schemas.json" with { type: "json" };
import type { ToolGrant } from "../api/generated/toolgrant.ts";
import type { Workload } from "../api/generated/workload.ts";
import { isJsonObject, type JsonObject, type JsonValue, jsonObject } from "../api/json.ts";
import type { ObjectMeta } from "../api/object-meta.ts";
import { type AllowedHostRules, parseAllowedHost } from "../egress/allowed-host.ts";
import { originOf } from "../grants/sandboxed-component.ts";
import { checkMetadata } from "./metadata.ts";
import type { Finding, Problem } from "./problem.ts";
import { checkStructure, type StructuralSchema } from "./structural-schema.ts";
import { compileRules, type RuleCheck } from "./validation-rules.ts";
import { readYaml, type YamlDocument } from "./yaml-document.ts";

export const apiVersion = "ambit.dev/v1alpha1";

/** What is read of a Namespace: whose grants it accepts, by its annotation `ambit.dev/accepts-grants-from`. */
export interface NamespaceManifest {
  readonly kind: "Namespace";
  readonly metadata: ObjectMeta;
}

/** An object that holds, with defaults filled in, and where it is written: the file, its document there (from 0), the line (from 1). */
export type Manifest = Written<"Workload", Workload> | Written<"ToolGrant", ToolGrant> | Written<"Namespace", NamespaceManifest>;

export interface Written<K extends string, O> {
  readonly kind: K;
  readonly object: O;
  readonly file: string;
  readonly document: number;
  readonly line: number;
}

export interface ManifestFile {
  /** As problems name it; paths within the file's manifests are relative to its folder. */
  readonly path: string;
  readonly text: string;
}

export interface ReadOptions {
  /** Which allowed hosts may be asked for. */
  readonly allowedHosts?: AllowedHostRules;
  /** Throws `Invalid` where arguments can't be checked against a grant's schema. */
  readonly assertUsableSchema?: (schema: JsonObject) => void;
}

export interface ReadManifests {
  /** Objects without an error, in the order of the files. */
  readonly objects: readonly Manifest[];
  readonly problems: readonly Problem[];
}

/**
 * Reads Workloads, ToolGrants and Namespaces as an API server would admit them: the CRDs' schemas and CEL rules, unknown fields refused, defaults filled in.
 * Other kinds are left out with a notice. Never throws for what a file says.
 */
export const readManifests = (files: readonly ManifestFile[], options: ReadOptions = {}): ReadManifests => {
  const objects: Manifest[] = [];
  const problems: Problem[] = [];
  const firstPlace = new Map<string, string>();
  for (const { path: file, text } of files) {
    for (const [index, document] of readYaml(text).entries()) {
      // Tools keep all kinds of things in JSON beside manifests, such as lock files: nothing to tell anybody.
      if (file.endsWith(".json") && !hasKind(document.value)) continue;
      const found = readObject(document, options);
      const at = (finding: Finding, severity: Problem["severity"]): Problem => ({
        file,
        ...document.positionOf(finding.path),
        ...finding,
        severity,
      });
      problems.push(...found.errors.map((finding) => at(finding, "error")), ...found.notices.map((finding) => at(finding, "notice")));
      if (!found.object || found.errors.length > 0) continue;
      const { line } = document.positionOf("");
      const id = identityOf(found.object);
      const first = firstPlace.get(id);
      if (first !== undefined) {
        problems.push(at({ path: "/metadata/name", code: "DuplicateObject", message: `${id} is already written at ${first}` }, "error"));
        continue;
      }
      firstPlace.set(id, `${file}:${line}`);
      objects.push({ ...found.object, file, document: index, line });
    }
  }
  return { objects, problems };
};

type ReadObject =
  | { readonly kind: "Workload"; readonly object: Workload }
  | { readonly kind: "ToolGrant"; readonly object: ToolGrant }
  | { readonly kind: "Namespace"; readonly object: NamespaceManifest };

interface Found {
  readonly object: ReadObject | null;
  readonly errors: readonly Finding[];
  readonly notices: readonly Finding[];
}

const readObject = (document: YamlDocument, options: ReadOptions): Found => {
  const { value, findings } = document;
  if (value === undefined) return { object: null, errors: findings, notices: [] };
  if (value === null) return nothing;
  if (!isJsonObject(value)) return failed("NotAnObject", "a manifest is an object with apiVersion and kind");
  const { apiVersion: version, kind } = value;
  if (typeof kind !== "string" || typeof version !== "string") {
    return isOurs(value)
      ? failed("NotAnObject", "a manifest needs apiVersion and kind as strings")
      : ignored("it has no apiVersion and kind");
  }
  if (version === "v1" && kind === "Namespace") return readNamespace(value);
  if (!version.startsWith("ambit.dev/")) return ignored(`${kind} of ${version} is not Ambit's`);
  if (version !== apiVersion)
    return failed("UnknownVersion", `${version} is not known here; this Ambit reads ${apiVersion}`, "/apiVersion");
  switch (kind) {
    case "Workload":
      return checked(
        value,
        workloadKind,
        (object) => ({ kind, object: object as unknown as Workload }),
        (object) => hostFindings(object, options),
      );
    case "ToolGrant":
      return checked(
        value,
        grantKind,
        (object) => ({ kind, object: object as unknown as ToolGrant }),
        (object) => schemaFindings(object, options),
      );
    default:
      return failed("UnknownKind", `ambit.dev has no kind ${JSON.stringify(kind)}, only Workload and ToolGrant`, "/kind");
  }
};

const hasKind = (value: JsonValue | undefined): boolean => value === undefined || (isJsonObject(value) && "kind" in value);

const nothing: Found = { object: null, errors: [], notices: [] };

const failed = (code: string, message: string, path = ""): Found => ({ object: null, errors: [{ path, code, message }], notices: [] });

const ignored = (why: string): Found => ({
  object: null,
  errors: [],
  notices: [{ path: "", code: "Ignored", message: `left out: ${why}` }],
});

const isOurs = ({ apiVersion: version, kind }: JsonObject): boolean =>
  (typeof version === "string" && version.startsWith("ambit.dev/")) || kind === "Workload" || kind === "ToolGrant";

interface Kind {
  readonly schema: StructuralSchema;
  readonly rules: RuleCheck;
}

const kindOf = (schema: StructuralSchema): Kind => ({ schema, rules: compileRules(schema) });
const workloadKind = kindOf(schemas.Workload as unknown as StructuralSchema);
const grantKind = kindOf(schemas.ToolGrant as unknown as StructuralSchema);

/** Structure first; rules and what else there is to check only of an object whose structure holds. `status` is the server's and is left out. */
const checked = (
  value: JsonObject,
  kind: Kind,
  typed: (object: JsonObject) => ReadObject,
  further: (object: JsonObject) => Finding[],
): Found => {
  const errors: Finding[] = [];
  const report = (finding: Finding) => {
    if (errors.length < mostFindings) errors.push(finding);
  };
  const { metadata, status: _, ...own } = value;
  const { metadata: ofMetadata, status: __, ...properties } = kind.schema.properties ?? {};
  const body = checkStructure({ ...kind.schema, properties }, jsonObject(Object.entries(own)), "", report);
  const meta = checkMetadata(metadata, report, ofMetadata?.properties?.name?.maxLength);
  if (errors.length === 0) kind.rules(body, "", report);
  if (!isJsonObject(body) || errors.length > 0) return { object: null, errors, notices: [] };
  errors.push(...further(body));
  const { apiVersion: version = null, kind: name = null, ...rest } = body;
  return { object: typed(jsonObject(Object.entries({ apiVersion: version, kind: name, metadata: meta, ...rest }))), errors, notices: [] };
};

/** Of one object. */
const mostFindings = 50;

const readNamespace = (value: JsonObject): Found => {
  const errors: Finding[] = [];
  const metadata = checkMetadata(value.metadata, (finding) => errors.push(finding));
  return { object: { kind: "Namespace", object: { kind: "Namespace", metadata: metadata as unknown as ObjectMeta } }, errors, notices: [] };
};

const hostFindings = (object: JsonObject, { allowedHosts }: ReadOptions): Finding[] => {
  const { spec } = object as unknown as Workload;
  const own = spec.components.flatMap((component, i) =>
    (component.localResources?.allowedHosts ?? []).flatMap((entry, j) =>
      findingOf(() => parseAllowedHost(entry, allowedHosts), `/spec/components/${i}/localResources/allowedHosts/${j}`),
    ),
  );
  const remote = (spec.mcpServers ?? []).flatMap((server, i) =>
    server.remote
      ? findingOf(() => parseAllowedHost(originOf(server.remote?.url ?? ""), allowedHosts), `/spec/mcpServers/${i}/remote/url`)
      : [],
  );
  return [...own, ...remote];
};

const schemaFindings = (object: JsonObject, { assertUsableSchema }: ReadOptions): Finding[] => {
  const { spec } = object as unknown as ToolGrant;
  return assertUsableSchema ? findingOf(() => assertUsableSchema(spec.declaration.parameters), "/spec/declaration/parameters") : [];
};

const findingOf = (check: () => unknown, path: string): Finding[] => {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    const inner = error.at?.startsWith("/") ? error.at : "";
    return [{ path: `${path}${inner}`, code: error.code, message: error.message }];
  }
};

const identityOf = ({ kind, object }: ReadObject): string =>
  kind === "Namespace" ? `Namespace ${object.metadata.name}` : `${kind} ${object.metadata.namespace ?? "default"}/${object.metadata.name}`;
