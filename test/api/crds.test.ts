import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { canonicalJson, type JsonValue } from "../../src/api/json.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { installCrds } from "../cluster/crds.ts";

/**
 * The same examples by which test/unit/manifests/admission.test.ts judges our own reading of manifests, here judged by a real API server under our CRDs:
 * what one admits the other must, with the same defaults, and what it refuses it must refuse with a message that names the field.
 */
interface Case {
  readonly case: string;
  readonly object: { readonly kind: string; readonly metadata: object };
  /** Null where it is admitted. */
  readonly code: string | null;
  /** JSON Pointer of the field that is wrong, or of what contains it. */
  readonly path: string | null;
  readonly spec?: JsonValue;
}

const cases: readonly Case[] = JSON.parse(readFileSync(new URL("../golden/manifests/admission.json", import.meta.url), "utf8"));

const plurals: Readonly<Record<string, string>> = { Workload: "workloads", ToolGrant: "toolgrants" };

/** The nearest property name in a pointer: lists are numbered differently in Kubernetes' paths. */
const fieldNamed = (pointer: string): string =>
  pointer
    .split("/")
    .filter((part) => part !== "" && !/^[0-9]+$/.test(part))
    .at(-1) ?? "spec";

const reason = whyNoApiServer();

describe("a real API server under our CRDs", { skip: reason ?? false }, () => {
  /** Unlike any that a given cluster may have. */
  const namespace = `ambit-crds-${randomBytes(4).toString("hex")}`;
  let server: ApiServer;

  before(async () => {
    server = await startApiServer();
    await installCrds(server.request);
    const { status, body } = await server.request("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    assert.equal(status, 201, body);
  });

  after(async () => {
    await server.request("DELETE", `/api/v1/namespaces/${namespace}`);
    await server[Symbol.asyncDispose]();
  });

  for (const { case: sentence, object, code, path, spec } of cases) {
    test(`${code === null ? "admits" : "refuses"} ${sentence}`, async () => {
      const query = "dryRun=All&fieldValidation=Strict";
      const url = `/apis/ambit.dev/v1alpha1/namespaces/${namespace}/${plurals[object.kind]}?${query}`;
      const { status, body } = await server.request("POST", url, { ...object, metadata: { ...object.metadata, namespace } });
      const answer = JSON.parse(body);
      if (code === null) {
        assert.equal(status, 201, body);
        assert.equal(canonicalJson(answer.spec), canonicalJson(spec ?? null));
      } else {
        assert.ok(status === 400 || status === 422, body);
        assert.ok(answer.message.includes(fieldNamed(path ?? "")), `the message names ${path}: ${answer.message}`);
      }
    });
  }
});
