import assert from "node:assert/strict";
import { isSha256Digest, type Sha256Digest } from "../../src/api/digest.ts";
import type { Subject, ToolGrant } from "../../src/api/generated/toolgrant.ts";
import type { Workload } from "../../src/api/generated/workload.ts";
import { approve } from "../../src/grants/approve.ts";
import { toolOfDefinition } from "../../src/grants/definition-function.ts";
import { apply, type Kubectl } from "./installed.ts";

/** Reads what is in a namespace: `readAll(kubectl, "agents", "toolgrants")`, and one object of it by its name. */
export const readOne = async <T>(kubectl: Kubectl, namespace: string, kind: string, name: string): Promise<T> =>
  JSON.parse(await kubectl(["--namespace", namespace, "get", kind, name, "-o", "json"]));

export const readAll = async <T>(kubectl: Kubectl, namespace: string, kind: string, ...args: string[]): Promise<readonly T[]> =>
  JSON.parse(await kubectl(["--namespace", namespace, "get", kind, ...args, "-o", "json"])).items;

/** The draft of a Workload's function, once the operator has made it and seen what it is about; undefined before. */
export const draftOf = async (kubectl: Kubectl, namespace: string, workload: string): Promise<ToolGrant | undefined> =>
  (await readAll<ToolGrant>(kubectl, namespace, "toolgrants")).find(
    ({ spec, status }) => spec.tool.workload === workload && status?.phase === "Draft" && status.observed?.text !== undefined,
  );

/** Fills in subjects and the review, for the code that the Workload runs now or for the code given, as the account `reviewer`, which has the role of a reviewer in this namespace and no other right. */
export const approveAsReviewer = async (
  kubectl: Kubectl,
  draft: ToolGrant,
  subjects: readonly Subject[],
  code: readonly Sha256Digest[] | "any" | "as observed" = "as observed",
): Promise<void> => {
  const namespace = draft.metadata.namespace ?? "";
  await apply(kubectl, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "reviewer", namespace } });
  await apply(kubectl, {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: "reviewer", namespace },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "ambit-reviewer" },
    subjects: [{ kind: "ServiceAccount", name: "reviewer", namespace }],
  });
  const workload = await readOne<Workload>(kubectl, namespace, "workloads", draft.spec.tool.workload);
  const observed = workload.status?.components?.find(({ name }) => name === draft.spec.tool.component);
  const allowedHosts = workload.spec.components.find(({ name }) => name === draft.spec.tool.component)?.localResources?.allowedHosts;
  const digest = observed?.digest ?? "";
  assert.ok(isSha256Digest(digest), `the Workload's status has a digest: ${digest}`);
  const text = draft.status?.observed?.text;
  assert.ok(text !== undefined, "the draft's status has the definition");
  const reviewed = ({ status: _, ...bare }: ToolGrant): ToolGrant =>
    approve({
      grant: { ...bare, spec: { ...draft.spec, subjects: [...subjects], mutates: false } },
      fn: toolOfDefinition(text),
      reach: { hosts: [...(allowedHosts ?? [])], volumes: [], secrets: [], imports: observed?.imports ?? [] },
      component: code === "as observed" ? [digest] : code,
      reviewer: "reviewer",
      now: new Date(),
    });
  // The operator may write the status meanwhile, which makes it another version of the same draft.
  for (let shown = draft; ; shown = await readOne<ToolGrant>(kubectl, namespace, "toolgrants", draft.metadata.name)) {
    assert.deepEqual(shown.spec, draft.spec, "it is still what was shown");
    const replacing = kubectl([`--as=system:serviceaccount:${namespace}:reviewer`, "replace", "--filename", "-"], reviewed(shown));
    if (await replacing.then(() => true, unlessConflict)) return;
  }
};

const unlessConflict = (thrown: Error): false => {
  if (thrown.message.includes("(Conflict)")) return false;
  throw thrown;
};
