import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError } from "../../../src/kube/api-error.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { parseImageReference } from "../../../src/oci/reference.ts";
import { pullCredentials } from "../../../src/operator/pull-credentials.ts";
import { component, workload } from "./workload-world.ts";

const encoded = (config: object): string => Buffer.from(JSON.stringify(config)).toString("base64");

/** A cluster with one object, or one answer. */
const cluster = (answer: object | ApiError): Pick<ClusterClient, "get"> => ({
  get: (async () => {
    if (answer instanceof ApiError) throw answer;
    return answer;
  }) as ClusterClient["get"],
});

const of = component({ imagePullSecret: { name: "ghcr" } });

describe("a component's pull secret", () => {
  test("is what its registry is shown", async () => {
    const config = { auths: { "ghcr.io": { username: "reader", password: "secret" } } };
    const secret = { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": encoded(config) } };
    const credentials = await pullCredentials(cluster(secret))(workload(), of);
    const reference = parseImageReference("ghcr.io/example/tools:1");
    assert.ok(reference.kind === "registry");
    assert.deepEqual(credentials.credentialsFor(reference), { kind: "password", username: "reader", password: "secret" });
  });

  test("is asked for by no component that names none", async () => {
    const credentials = await pullCredentials(cluster(new ApiError("Forbidden", "", { status: 403 })))(workload(), component());
    assert.equal(credentials.helperFor({ kind: "registry", registry: "ghcr.io", repository: "x", tag: null, digest: null }), null);
  });

  const faults: Record<string, { answer: object | ApiError; code: string; says: RegExp }> = {
    "that is not there": {
      answer: new ApiError("NotFound", "", { status: 404 }),
      code: "PullSecretMissing",
      says: /no secret agents\/ghcr/,
    },
    "that the operator may not read": {
      answer: new ApiError("Forbidden", "", { status: 403 }),
      code: "PullSecretForbidden",
      says: /pullSecrets/,
    },
    "of another type": {
      answer: { type: "Opaque", data: { ".dockerconfigjson": "e30=" } },
      code: "PullSecretUnusable",
      says: /agents\/ghcr/,
    },
    "without its entry": {
      answer: { type: "kubernetes.io/dockerconfigjson", data: {} },
      code: "PullSecretUnusable",
      says: /dockerconfigjson/,
    },
    "that is no JSON": {
      answer: { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": "bm8=" } },
      code: "DockerConfigInvalid",
      says: /not JSON/,
    },
  };
  for (const [sentence, { answer, code, says }] of Object.entries(faults)) {
    test(`${sentence} is told with what to do`, async () => {
      await assert.rejects(pullCredentials(cluster(answer))(workload(), of), { code, message: says });
    });
  }
});
