import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse } from "yaml";
import { becomes } from "./becomes.ts";
import type { Request } from "./request.ts";

interface CustomResourceDefinition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly { readonly name: string }[];
  };
}

/** How long an API server may take to serve a new kind. */
const servedWithinMs = 30_000;

/** Applies the repository's CRDs and waits until their kinds are served. Throws the server's answer where it refuses one. */
export const installCrds = async (request: Request): Promise<void> => {
  const root = resolve(import.meta.dirname, "../..");
  const texts = globSync("crds/*.yaml", { cwd: root }).map((path) => readFileSync(resolve(root, path), "utf8"));
  await Promise.all(texts.map((text) => installCrd(request, parse(text), text)));
};

const installCrd = async (request: Request, { metadata, spec }: CustomResourceDefinition, text: string): Promise<void> => {
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}?fieldManager=ambit-test&force=true`;
  const { status, body } = await request("PATCH", path, text, "application/apply-patch+yaml");
  if (status >= 300) throw new Error(`the API server refuses ${metadata.name} with ${status}: ${body}`);
  const list = `/apis/${spec.group}/${spec.versions[0]?.name}/${spec.names.plural}?limit=1`;
  const served = await becomes(async () => (await request("GET", list)).status === 200, servedWithinMs);
  if (!served) throw new Error(`the API server does not serve ${metadata.name} after ${servedWithinMs} ms`);
};
