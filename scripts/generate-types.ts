import { readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";
import { parse } from "yaml";

/**
 * Writes `src/api/generated/` from `crds/`: the TypeScript types of the resources, and the schemas themselves for checking manifests without a cluster.
 *
 *   node scripts/generate-types.ts          writes the files
 *   node scripts/generate-types.ts --check  writes nothing and exits 1 if a file is not what it would write
 */

interface Schema {
  [keyword: string]: unknown;
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  required?: string[];
  description?: string | undefined;
}

interface Resource {
  readonly crd: string;
  readonly file: string;
  readonly kind: string;
  /** What the objects within are called, by their path in the schema; every object has a name. */
  readonly names: Readonly<Record<string, string>>;
}

const resources: readonly Resource[] = [
  {
    crd: "crds/ambit.dev_workloads.yaml",
    file: "src/api/generated/workload.ts",
    kind: "Workload",
    names: {
      "spec.components[]": "WorkloadComponent",
      "spec.components[].localResources": "LocalResources",
      "spec.components[].localResources.volumeMounts[]": "VolumeMount",
      "spec.components[].limits": "CallLimits",
      "spec.components[].reuse": "InstanceReuse",
      "spec.components[].wit": "WitText",
      "spec.components[].tools": "ToolSelection",
      "spec.components[].localResources.environment": "GuestEnvironment",
      "spec.components[].localResources.environment.configFrom[]": "EnvironmentConfigMap",
      "spec.components[].localResources.environment.secretFrom[]": "EnvironmentSecret",
      "spec.components[].imagePullSecret": "PullSecret",
      "spec.components[].resources": "PodResources",
      "spec.mcpServers[]": "McpServer",
      "spec.mcpServers[].remote": "RemoteMcpServer",
      "spec.mcpServers[].remote.headersFrom[]": "HeadersSecret",
      "spec.mcpServers[].tools": "McpToolSelection",
      "spec.mcpServers[].limits": "McpCallLimits",
      "spec.mcpServers[].resources": "BridgeResources",
      "spec.pod": "PodPlacement",
      "spec.volumes[]": "Volume",
      "spec.volumes[].ephemeral": "EphemeralVolume",
      "spec.volumes[].persistentVolumeClaim": "ClaimedVolume",
      "status.components[]": "ComponentStatus",
      "status.components[].fault": "ComponentFaultStatus",
      "status.components[].pods[]": "ReadyPodsStatus",
      "status.components[].egress[]": "AllowedHostStatus",
      "status.components[].egress[].notEnforcedBecause": "ClosedHostReason",
      "status.components[].tools[]": "OfferedFunctionStatus",
      "status.components[].notOffered[]": "NotOfferedFunctionStatus",
    },
  },
  {
    crd: "crds/ambit.dev_toolgrants.yaml",
    file: "src/api/generated/toolgrant.ts",
    kind: "ToolGrant",
    names: {
      "spec.tool": "GrantedTool",
      "spec.declaration": "GrantedDeclaration",
      "spec.subjects[]": "Subject",
      "spec.fields[]": "FieldRule",
      "spec.rateLimit": "RateLimit",
      "spec.maxEgressBytes": "EgressBudget",
      "spec.review": "Review",
      "status.observed": "ObservedDefinition",
      "status.changes[]": "ObservedChange",
      "status.leftOut[]": "ProviderRejection",
      "status.hiddenCharacters[]": "HiddenCharacterStatus",
    },
  },
];

const root = new URL("..", import.meta.url);
const banner = "// Generated from crds/ by `npm run generate`. Do not edit.\n";

/** Types written by hand, and the module in `src/api/` that has them. */
const ownTypes: Readonly<Record<string, string>> = {
  JsonObject: "json",
  JsonValue: "json",
  ObjectMeta: "object-meta",
  Condition: "condition",
  Reach: "definition",
};
const ownTypeAt: Readonly<Record<string, string>> = {
  metadata: "ObjectMeta",
  "status.conditions[]": "Condition",
  "spec.review.reach": "Reach",
  "status.observed.reach": "Reach",
};

/**
 * The CRD's schema as JSON Schema that says what a stored object has: every object is closed and has a name, what has a default is there, and open
 * places have our JSON types.
 */
const forTypes = (schema: Schema, resource: Resource, path: string): Schema => {
  const own = ownTypeAt[path];
  if (own) return { tsType: own, description: schema.description };
  if (schema["x-kubernetes-preserve-unknown-fields"] === true) {
    return { tsType: schema.type === "object" ? "JsonObject" : "JsonValue", description: schema.description };
  }
  // Alternatives of what is required would become a union of types, which says no more here and is harder to use.
  const { oneOf: _, ...made }: Schema = schema;
  if (schema.items) made.items = forTypes(schema.items, resource, `${path}[]`);
  if (schema.type === "object" && !schema.additionalProperties) {
    made.title = resource.names[path] ?? titleOf(resource.kind, path);
    made.additionalProperties = false as never;
    made.properties = Object.fromEntries(
      Object.entries(schema.properties ?? {}).map(([key, value]) => [key, forTypes(value, resource, path === "" ? key : `${path}.${key}`)]),
    );
    const defaulted = Object.entries(schema.properties ?? {}).flatMap(([key, value]) => ("default" in value ? [key] : []));
    made.required = [...(schema.required ?? []), ...defaulted];
    if (path === "") {
      made.required = ["apiVersion", "kind", "metadata", "spec"];
      made.properties.apiVersion = { const: "ambit.dev/v1alpha1" };
      made.properties.kind = { const: resource.kind };
    }
  }
  return made;
};

const titleOf = (kind: string, path: string): string =>
  kind +
  path
    .replaceAll("[]", "")
    .split(".")
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join("");

/** Properties and arrays as `readonly`, which the library has no option for. It writes one property a line and names every object. */
const readOnly = (source: string): string =>
  source.replace(/^( {2,})(?=[\w"]+\??: )/gm, "$1readonly ").replace(/(: |\| )((?:\w+|\([^()]*\)))\[\]/g, "$1readonly $2[]");

const typesOf = async (resource: Resource, schema: Schema): Promise<string> => {
  const body = await compile(forTypes(schema, resource, "") as never, resource.kind, {
    bannerComment: "",
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    style: { printWidth: 140, semi: true },
    unreachableDefinitions: false,
  });
  const used = Object.entries(ownTypes).filter(([name]) => new RegExp(`\\b${name}\\b`).test(body));
  const modules = [...new Set(used.map(([, module]) => module))].sort();
  const imports = modules.map((module) => {
    const names = used.flatMap(([name, from]) => (from === module ? [name] : []));
    return `import type { ${names.join(", ")} } from "../${module}.ts";\n`;
  });
  return `${banner}${imports.join("")}\n${readOnly(body)}`;
};

/** The checks need no descriptions; a property that is called `description` is a schema and stays. */
const isProse = (key: string, value: unknown): boolean => key === "description" && typeof value === "string";

const generated = new Map<string, string>();
const schemas: Record<string, Schema> = {};
for (const resource of resources) {
  const crd = parse(await readFile(new URL(resource.crd, root), "utf8"));
  const schema: Schema = crd.spec.versions[0].schema.openAPIV3Schema;
  schemas[resource.kind] = schema;
  generated.set(resource.file, await typesOf(resource, schema));
}
generated.set(
  "src/api/generated/schemas.json",
  `${JSON.stringify(schemas, (key, value) => (isProse(key, value) ? undefined : value), 1)}\n`,
);

let stale = 0;
for (const [file, text] of generated) {
  const url = new URL(file, root);
  if (!process.argv.includes("--check")) {
    await writeFile(url, text);
    continue;
  }
  const found = await readFile(url, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  if (found !== text) {
    stale++;
    console.error(`${file} is not what crds/ gives: run \`npm run generate\` and commit it`);
  }
}
process.exitCode = stale > 0 ? 1 : 0;
