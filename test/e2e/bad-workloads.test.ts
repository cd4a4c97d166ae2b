import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { eventually, fixture, Ground, type Pod, rebuilt, whyNoGround } from "./ground.ts";
import { ambitNamespace, apply } from "./installed.ts";
import { lyingRegistry, registryNames, toolsRegistry, toolsRegistryPort } from "./tools-registry.ts";
import { serveInWorld } from "./world-server.ts";

/**
 * Everything that can be wrong with a Workload and that an installed Ambit must tell, all in one namespace and at one time: each says why and what to do, mending it is enough, and one that is fine
 * runs beside them.
 */

const reason = await whyNoGround();

const longestName = "w".repeat(63);

/** A digest that nothing has. */
const nothing = `sha256:${"0".repeat(64)}`;

/** Says of any manifest that it is the one that was asked for, whatever its digest. */
const lie = `
  const manifest = JSON.stringify({ schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config: {}, layers: [] });
  require("node:http").createServer((_, response) => {
    response.setHeader("content-type", "application/vnd.oci.image.manifest.v1+json");
    response.end(manifest);
  }).listen(${toolsRegistryPort}, "${registryNames["liar.example.com"]}", () => console.log("listening"));`;

describe("a Workload that can't run", { skip: reason ?? false }, () => {
  let ground: Ground;
  let good: string;

  const put = (name: string, image: string, more: object = {}, spec: object = {}): Promise<void> =>
    ground.applyWorkload(name, [{ name: "tool", image, ...more }], spec);

  before(async () => {
    ground = await Ground.lay("bad");
    good = await ground.registry.push("tools/mission", fixture("mission"));
    await serveInWorld(ground, registryNames["liar.example.com"]?.[0] ?? "", [process.execPath, "-e", lie]);
    await put("beside", good);
    await ground.workloadIs("beside", "Ready", "True", "Serving");
    await Promise.all(Object.entries(broken).map(([name, { make }]) => make(name)));
  });

  after(() => ground?.[Symbol.asyncDispose]());

  const broken: Readonly<
    Record<
      string,
      { readonly since: string; readonly make: (name: string) => Promise<void>; readonly reason: string; readonly tells: RegExp }
    >
  > = {
    vanished: {
      since: "its image is not there",
      make: (name) => put(name, `${toolsRegistry}/tools/gone@${nothing}`),
      reason: "ImageNotFound",
      tells: /tools\/gone/,
    },
    swapped: {
      since: "the registry gives something else under the digest",
      make: (name) => put(name, `${lyingRegistry}/tools/liar@${nothing}`),
      reason: "DigestMismatch",
      tells: /sent something else/,
    },
    text: {
      since: "its image is no component",
      make: async (name) => put(name, await ground.registry.push("tools/text", Buffer.from("just a text"))),
      reason: "NotWasm",
      tells: /./,
    },
    refused: {
      since: "its component needs what no host has",
      make: async (name) => put(name, await ground.registry.push("tools/refused", fixture("wat/missing-import"))),
      reason: "ComponentRefused",
      tells: /example:nowhere\/door/,
    },
    "no-secret": {
      since: "the secret to pull it with is missing",
      make: async (name) => {
        const metadata = { name: "ambit-operator-pull-secrets", namespace: ground.namespace };
        const role = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: metadata.name };
        await apply(ground.kubectl, {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "Role",
          metadata,
          rules: [{ apiGroups: [""], resources: ["secrets"], resourceNames: ["nowhere"], verbs: ["get"] }],
        });
        await apply(ground.kubectl, {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "RoleBinding",
          metadata,
          roleRef: role,
          subjects: [{ kind: "ServiceAccount", name: "ambit-operator", namespace: ambitNamespace }],
        });
        const image = await ground.registry.push("tools/secret", rebuilt(fixture("mission"), name));
        await put(name, image, { imagePullSecret: { name: "nowhere" } });
      },
      reason: "PullSecretMissing",
      tells: /nowhere.*make it/,
    },
    "forbidden-secret": {
      since: "the operator may not read the secret to pull it with",
      make: async (name) => {
        const image = await ground.registry.push("tools/secret", rebuilt(fixture("mission"), name));
        await put(name, image, { imagePullSecret: { name: "theirs" } });
      },
      reason: "PullSecretForbidden",
      tells: /theirs.*pullSecrets/s,
    },
    taken: {
      since: "somebody else's Service has the name that it needs",
      make: async (name) => {
        await apply(ground.kubectl, {
          apiVersion: "v1",
          kind: "Service",
          metadata: { name: `${name}-tool`, namespace: ground.namespace },
          spec: { selector: { app: "somebody-else" }, ports: [{ port: 80 }] },
        });
        await put(name, good);
      },
      reason: "ForeignObject",
      tells: /taken-tool/,
    },
  };

  for (const [name, { since, reason, tells }] of Object.entries(broken)) {
    test(`since ${since}`, async () => {
      assert.match(await ground.workloadIs(name, "Ready", "False", reason), tells);
    });
  }

  test("leaves somebody else's object as it was", async () => {
    const { spec } = await ground.read<{ spec: { selector: object } }>("services", "taken-tool");
    assert.deepEqual(spec.selector, { app: "somebody-else" });
  });

  test("runs once it is mended", async () => {
    for (const name of ["vanished", "refused"]) await put(name, good);
    for (const name of ["vanished", "refused"]) await ground.workloadIs(name, "Ready", "True", "Serving");
  });

  test("tells of a host whose name leads nowhere, and runs without it", async () => {
    await put("nowhere", good, { localResources: { allowedHosts: ["nowhere.example.org"] } });
    await ground.workloadIs("nowhere", "Ready", "True", "Serving");
    const entry = async () => (await ground.workload("nowhere")).status?.components?.[0]?.egress?.[0];
    await eventually("the entry tells why it is closed", async () => (await entry())?.notEnforcedBecause?.reason === "NotResolved", entry);
    assert.match((await entry())?.notEnforcedBecause?.message ?? "", /nowhere\.example\.org/);
  });

  test("since a quota keeps its pods from being made", async () => {
    await apply(ground.kubectl, {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "full", namespace: ground.namespace },
      spec: { hard: { pods: "0" } },
    });
    await put("crowded", good);
    assert.match(await ground.workloadIs("crowded", "Ready", "False", "PodsRefused"), /quota/);
    await ground.kubectlHere(["delete", "resourcequota", "full"]);
    await ground.kubectlHere(["delete", "workload", "crowded"]);
    assert.deepEqual(await ground.podsOf("crowded"), []);
  });

  test("since it is suspended, which ends its pods and keeps the rest, until it is not", async () => {
    await put("beside-it", good);
    await ground.workloadIs("beside-it", "Ready", "True", "Serving");
    await put("beside-it", good, {}, { suspend: true });
    await ground.workloadIs("beside-it", "Ready", "False", "Suspended");
    assert.deepEqual(await ground.podsOf("beside-it"), []);
    assert.equal((await ground.readAll("services", "--selector=ambit.dev/workload=beside-it")).length, 1);
    await put("beside-it", good);
    await ground.workloadIs("beside-it", "Ready", "True", "Serving");
  });

  test("is no harm to those that can: one with the longest name that there is, and one that was there before", async () => {
    await put(longestName, good);
    await ground.workloadIs(longestName, "Ready", "True", "Serving");
    await ground.workloadIs("beside", "Ready", "True", "Serving");
    const pod: Pod = await ground.onlyPodOf("beside");
    assert.equal(pod.status.containerStatuses?.[0]?.restartCount, 0);
  });

  test("is refused at once where that can be told from the manifest, by a message that names the field", async () => {
    const cases: readonly { code: string | null; path: string | null; object: { kind: string; metadata: object } }[] = JSON.parse(
      readFileSync(new URL("../golden/manifests/admission.json", import.meta.url), "utf8"),
    );
    const invalid = cases.filter(({ code }) => code !== null);
    assert.ok(invalid.length > 10);
    for (const { object, path } of invalid) {
      const url = `/apis/ambit.dev/v1alpha1/namespaces/${ground.namespace}/${object.kind.toLowerCase()}s?dryRun=All&fieldValidation=Strict`;
      const { status, body } = await ground.cluster.request("POST", url, {
        ...object,
        metadata: { ...object.metadata, namespace: ground.namespace },
      });
      assert.ok(status === 400 || status === 422, body);
      // The nearest name: lists are numbered differently in Kubernetes' paths.
      const field = (path ?? "").split("/").findLast((part) => !/^[0-9]*$/.test(part)) ?? "spec";
      assert.ok(JSON.parse(body).message.includes(field), `${path}: ${body}`);
    }
  });
});
