import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { canonicalJson, type JsonValue } from "../../../src/api/json.ts";
import { readManifests } from "../../../src/manifests/read.ts";

/**
 * Each object with what an API server says of it under our CRDs: admitted where `code` is null, and then `spec` is what it stores. Verdicts and specs come from
 * the API server's own code (test/oracle/admission); codes and paths are ours, written by hand.
 */
interface Case {
  readonly case: string;
  readonly object: object;
  readonly code: string | null;
  readonly path: string | null;
  readonly spec?: JsonValue;
}

const cases: readonly Case[] = JSON.parse(readFileSync(new URL("../../golden/manifests/admission.json", import.meta.url), "utf8"));

for (const { case: sentence, object, code, path, spec } of cases) {
  test(`${code === null ? "admitted" : "refused"}: ${sentence}`, () => {
    const { objects, problems } = readManifests([{ path: "m.json", text: JSON.stringify(object) }]);
    assert.equal(problems[0]?.code ?? null, code);
    assert.equal(problems[0]?.path ?? null, path);
    const [admitted] = objects;
    assert.equal(admitted !== undefined, code === null);
    if (admitted && admitted.kind !== "Namespace")
      assert.equal(canonicalJson({ ...admitted.object.spec } as never), canonicalJson(spec ?? null));
  });
}
