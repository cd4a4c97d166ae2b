import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse, stringify } from "yaml";
import { kubectlProgram } from "../../src/cli/kubectl-program.ts";
import { run } from "../../src/cli/program.ts";
import { draftObjectName } from "../../src/grants/draft.ts";
import { grantDigest } from "../../src/grants/grant-digest.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { type ClusterObject, objectPath, type ResourceType } from "../../src/kube/object.ts";
import { namespaces, toolGrants, workloads } from "../../src/kube/resource-types.ts";
import type { ClusterToolGrant } from "../../src/operator/kinds.ts";
import { ToolListings } from "../../src/operator/tool-listings.ts";
import { toolGrantControllers } from "../../src/operator/toolgrant/controllers.ts";
import { type ApiServer, startApiServer, whyNoApiServer } from "../cluster/api-server.ts";
import { becomes } from "../cluster/becomes.ts";
import { installCrds } from "../cluster/crds.ts";
import { listIssues } from "../unit/grants/issues-tool.ts";
import { applyTemplate } from "./chart-objects.ts";
import { clientAs } from "./client-as.ts";
import { MadeUpComponents, runControllers } from "./operator-under-test.ts";

const roleBindings: ResourceType = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  kind: "RoleBinding",
  plural: "rolebindings",
  namespaced: true,
};

const withinMs = 20_000;
const reason = whyNoApiServer();

describe("kubectl ambit", { skip: reason ?? false }, () => {
  const suffix = randomBytes(4).toString("hex");
  const namespace = `ambit-kubectl-${suffix}`;
  const image = `registry.test/issues@sha256:${"0".repeat(64)}`;
  const components = new MadeUpComponents();
  const grantName = draftObjectName({
    workload: "github",
    component: "tool",
    interface: "example:github/issues@0.1.0",
    function: "list-issues",
  });
  let server: ApiServer;
  let client: ClusterClient;
  let operator: Awaited<ReturnType<typeof runControllers>>;
  let folder: string;

  const kubeconfigOf = (person: string): string => join(folder, `${person}.yaml`);

  /** What a person gets who types this. Nobody can be asked. */
  const kubectlAmbit = async (person: string, ...args: string[]): Promise<{ code: number; out: string; err: string }> => {
    let [out, err] = ["", ""];
    const terminal = {
      out: (text: string) => {
        out += text;
      },
      err: (text: string) => {
        err += text;
      },
      env: {},
      folder,
      interactive: false,
      colours: false,
      now: Date.now,
    };
    const code = await run([...args, "-n", namespace, "--kubeconfig", kubeconfigOf(person)], terminal, kubectlProgram);
    return { code, out, err };
  };
  const read = (): Promise<ClusterToolGrant> => client.get<ClusterToolGrant>(toolGrants, { name: grantName, namespace });
  const becomesPhase = async (phase: string): Promise<void> => {
    const isSo = async () => {
      const grant = await read().catch(() => null);
      return grant?.status?.phase === phase && grant.status.observedGeneration === grant.metadata.generation;
    };
    assert.ok(await becomes(isSo, withinMs), `the grant becomes ${phase}`);
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "ambit-kubectl-"));
    server = await startApiServer();
    await installCrds(server.request);
    await applyTemplate(server.request, "review-roles.yaml");
    await applyTemplate(server.request, "review-policy.yaml");
    client = await clientAs(server.kubeconfig);
    await client.create(namespaces, { metadata: { name: namespace } });
    const config = parse(await readFile(server.kubeconfig, "utf8"));
    for (const person of ["author", "reviewer"]) {
      const user = `${person}-${suffix}`;
      const users = config.users.map((one: { user: object }) => ({ ...one, user: { ...one.user, as: user } }));
      await writeFile(kubeconfigOf(person), stringify({ ...config, users }));
      await client.create<ClusterObject>(roleBindings, {
        metadata: { name: person, namespace },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: `ambit-${person}` },
        subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
      } as ClusterObject);
    }
    components.put(image, [listIssues()]);
    operator = await runControllers(client, components, (context) => toolGrantControllers(context, new ToolListings()));
    await client.create<ClusterObject>(workloads, {
      metadata: { name: "github", namespace },
      spec: { components: [{ name: "tool", image, localResources: { allowedHosts: ["api.github.com"] } }] },
    } as ClusterObject);
    await becomesPhase("Draft");
    const policyIsInEffect = await becomes(async () => (await kubectlAmbit("author", "review")).code === 0, withinMs);
    assert.ok(policyIsInEffect);
  });

  after(async () => {
    await operator?.[Symbol.asyncDispose]();
    await client?.delete(namespaces, { name: namespace });
    await client?.close();
    await server?.[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  test("review lists a draft and why it is one", async () => {
    const { code, out } = await kubectlAmbit("author", "review");
    assert.equal(code, 0);
    assert.match(out, new RegExp(`Draft +list_issues +${grantName} +nobody +NoReview`));
  });

  test("a grant that is not there, and a kubeconfig that is not, are said so", async () => {
    const { code, err } = await kubectlAmbit("author", "inspect", "nothing");
    assert.equal(code, 2);
    assert.match(err, /GrantMissing.*nothing/);
    const without = await kubectlAmbit("nobody", "review");
    assert.equal(without.code, 2);
    assert.match(without.err, /KubeconfigUnusable/);
  });

  test("inspect shows what a model would read, the reach and what keeps the tool from being called", async () => {
    const { code, out } = await kubectlAmbit("author", "inspect", grantName);
    assert.equal(code, 0);
    for (const part of [
      "List the issues in a repository.",
      "api.github.com",
      "wasi:http/outgoing-handler",
      components.digestOf(image),
      "it mutates",
    ])
      assert.ok(out.includes(part), `${part} in ${out}`);
  });

  test("what could never be called, or names nobody, is refused with the option that answers it", async () => {
    const nobody = await kubectlAmbit("reviewer", "approve", grantName, "--yes");
    assert.equal(nobody.code, 1);
    assert.match(nobody.err, /NoSubjects.*--subject/s);
    const never = await kubectlAmbit("reviewer", "approve", grantName, "--yes", "--subject", "Group:agents");
    assert.equal(never.code, 1);
    assert.match(never.err, /NeverCallable.*--read-only/s);
    const unasked = await kubectlAmbit("reviewer", "approve", grantName, "--subject", "Group:agents", "--read-only");
    assert.equal(unasked.code, 2);
    assert.match(unasked.err, /NotConfirmed/);
    assert.equal((await read()).spec.review, undefined);
  });

  const approval = [
    "approve",
    grantName,
    "--yes",
    "--subject",
    `ServiceAccount:${namespace}/triage`,
    "--read-only",
    "--note",
    "looks good",
  ];

  test("an author is refused by the API server, in its words", async () => {
    const refusedInTheEnd = await becomes(async () => {
      const { code, err } = await kubectlAmbit("author", ...approval);
      return code === 1 && /may not approve toolgrants/.test(err);
    }, withinMs);
    assert.ok(refusedInTheEnd);
    assert.equal((await read()).spec.review, undefined);
  });

  test("a reviewer approves, as whom the API server knows, under a field manager of its own, and gets the manifest to commit", async () => {
    const { code, out, err } = await kubectlAmbit("reviewer", ...approval);
    assert.equal(code, 0, err);
    await becomesPhase("Active");
    const grant = await read();
    assert.equal(grant.spec.review?.reviewer, `reviewer-${suffix}`);
    assert.equal(grant.spec.review?.note, "looks good");
    assert.deepEqual(grant.spec.review?.component, [components.digestOf(image)]);
    assert.ok(grant.metadata.managedFields?.some(({ manager, operation }) => manager === "ambit-approve" && operation === "Update"));
    const manifest = parse(out);
    assert.deepEqual(Object.keys(manifest), ["apiVersion", "kind", "metadata", "spec"]);
    assert.deepEqual(Object.keys(manifest.metadata).sort(), ["annotations", "labels", "name", "namespace"]);
    assert.equal(grantDigest(manifest.spec), grant.spec.review?.grant);
    assert.equal((await kubectlAmbit("author", "diff")).code, 0);
  });

  test("what changed since is told by diff, with exit code 1, and approving again brings the tool back", async () => {
    components.put(image, [listIssues({ docs: "List them all." })]);
    await client.request({
      method: "PATCH",
      path: objectPath(workloads, { name: "github", namespace }),
      contentType: "application/merge-patch+json",
      body: { spec: { allowTags: true } },
    });
    await becomesPhase("Drifted");
    const { code, out } = await kubectlAmbit("author", "diff", grantName);
    assert.equal(code, 1);
    assert.match(out, /DefinitionChanged.*\/definition\/docs\n +- List the issues in a repository\.\n +\+ List them all\./s);
    const again = await kubectlAmbit("reviewer", "approve", grantName, "--yes", "--also-component", `sha256:${"a".repeat(64)}`);
    assert.equal(again.code, 0, again.err);
    assert.match(again.err, /Changed since the last review:/);
    await becomesPhase("Active");
    assert.equal((await read()).spec.review?.component.length, 2);
  });
});
