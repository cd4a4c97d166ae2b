import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parse } from "yaml";

const root = new URL("../../../", import.meta.url);
const crds = ["crds/ambit.dev_workloads.yaml", "crds/ambit.dev_toolgrants.yaml"].map((file) =>
  parse(readFileSync(new URL(file, root), "utf8")),
);

interface Schema {
  readonly [keyword: string]: unknown;
  readonly type?: string;
  readonly properties?: Record<string, Schema>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
}

const places = (schema: Schema, path: string): [string, Schema][] => [
  [path, schema],
  ...Object.entries(schema.properties ?? {}).flatMap(([key, inner]) =>
    path === "" && key === "metadata" ? [] : places(inner, `${path}.${key}`),
  ),
  ...(schema.items ? places(schema.items, `${path}[]`) : []),
  ...(schema.additionalProperties ? places(schema.additionalProperties, `${path}{}`) : []),
];

const all = crds.flatMap((crd) => places(crd.spec.versions[0].schema.openAPIV3Schema, ""));

/** What the offline check knows; a keyword beyond these would be obeyed by an API server alone. */
const known = new Set(
  "type format description properties additionalProperties required oneOf items enum pattern minLength maxLength minimum maximum minItems maxItems maxProperties default x-kubernetes-preserve-unknown-fields x-kubernetes-list-type x-kubernetes-list-map-keys x-kubernetes-map-type x-kubernetes-validations".split(
    " ",
  ),
);

test("the schemas use no keyword that the offline check does not know", () => {
  const unknown = all.flatMap(([path, schema]) =>
    Object.keys(schema).flatMap((keyword) => (known.has(keyword) ? [] : [`${path} ${keyword}`])),
  );
  assert.deepEqual(unknown, []);
});

test("every property is documented", () => {
  const bare = all.flatMap(([path, schema]) => (/\.[^.[\]{}]+$/.test(path) && typeof schema.description !== "string" ? [path] : []));
  assert.deepEqual(bare, []);
});

test("every string, list and map in a spec is bounded, so that rules cost little", () => {
  const boundless = all.flatMap(([path, schema]) => {
    if (!path.startsWith(".spec")) return [];
    if (schema.type === "string") return schema.maxLength === undefined && schema.enum === undefined ? [path] : [];
    if (schema.type === "array") return schema.maxItems === undefined ? [path] : [];
    return schema.additionalProperties && schema.maxProperties === undefined ? [path] : [];
  });
  assert.deepEqual(boundless, []);
});

test("the CRDs are far below the size at which client-side apply ends", () => {
  for (const crd of crds) assert(JSON.stringify(crd).length < 100_000);
});

test("the generated types and schemas are what the CRDs give", async () => {
  await promisify(execFile)(process.execPath, [fileURLToPath(new URL("scripts/generate-types.ts", root)), "--check"]);
});
