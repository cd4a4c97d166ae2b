import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readManifests } from "../../../src/manifests/read.ts";

/**
 * Each object with what an API server (apiextensions-apiserver 0.36) says of it under our CRDs: admitted where `code` is null, refused otherwise. The codes and
 * paths are ours, written by hand. docs/spec/workload.md tells how to compare anew.
 */
interface Case {
  readonly case: string;
  readonly object: unknown;
  readonly code: string | null;
  readonly path: string | null;
}

const cases: readonly Case[] = JSON.parse(readFileSync(new URL("../../golden/manifests/admission.json", import.meta.url), "utf8"));

for (const { case: sentence, object, code, path } of cases) {
  test(`${code === null ? "admitted" : "refused"}: ${sentence}`, () => {
    const { objects, problems } = readManifests([{ path: "m.json", text: JSON.stringify(object) }]);
    assert.equal(problems[0]?.code ?? null, code);
    assert.equal(problems[0]?.path ?? null, path);
    assert.equal(objects.length, code === null ? 1 : 0);
  });
}
