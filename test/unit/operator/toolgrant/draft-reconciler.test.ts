import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256Of } from "../../../../src/api/digest.ts";
import type { Workload } from "../../../../src/api/generated/workload.ts";
import { draftGrant } from "../../../../src/grants/draft.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { Applier } from "../../../../src/kube/apply.ts";
import type { ApiRequest, ClusterClient } from "../../../../src/kube/client.ts";
import type { ClusterObject, ManagedFields } from "../../../../src/kube/object.ts";
import { Store } from "../../../../src/kube/store.ts";
import type { ComponentStore } from "../../../../src/operator/component-store.ts";
import type { ClusterToolGrant, ClusterWorkload } from "../../../../src/operator/kinds.ts";
import { ToolListings } from "../../../../src/operator/tool-listings.ts";
import { draftReconciler } from "../../../../src/operator/toolgrant/draft-reconciler.ts";
import { grantIndexes } from "../../../../src/operator/toolgrant/indexes.ts";
import { listIssues } from "../../grants/issues-tool.ts";

const ours: readonly ManagedFields[] = [
  { manager: "ambit-toolgrant", operation: "Apply" },
  { manager: "ambit-toolgrant", operation: "Apply", subresource: "status" },
];

const draft = (docs: string, managedFields: readonly ManagedFields[] = ours): ClusterToolGrant => {
  const made = draftGrant({
    namespace: "agents",
    workload: "github",
    source: { name: "tool" },
    fn: listIssues({ docs }),
    name: "list_issues",
  });
  return { ...made, metadata: { ...made.metadata, uid: "u", resourceVersion: "7", managedFields } };
};

const workload = {
  metadata: { name: "github", namespace: "agents", uid: "w", resourceVersion: "1" },
  spec: { components: [{ name: "tool", image: "i" }], draftGrants: true, allowTags: false, suspend: false },
} as unknown as ClusterWorkload & Workload;

const components: ComponentStore = {
  fetch: async () => ({
    digest: sha256Of("i"),
    resolved: "i",
    interface: { imports: [], exports: [], functions: [listIssues({ docs: "New." })], isAsynchronous: false, docs: { sources: [] } },
    bytes: async () => new Uint8Array(),
  }),
};

/** Looks once or more at a Workload whose draft is `seen` in the store and `live` on the server. */
const looking = async (
  {
    seen,
    live,
    exists = true,
    times = 1,
    ending = false,
  }: {
    seen: ClusterToolGrant | null;
    live: ClusterToolGrant | null;
    exists?: boolean;
    times?: number;
    ending?: boolean;
  },
  answer: (request: ApiRequest) => unknown = () => ({ metadata: {} }),
) => {
  const writes: ApiRequest[] = [];
  const deletes: object[] = [];
  let reads = 0;
  const client = {
    get: async () => {
      reads++;
      if (!live) throw new ApiError("NotFound", "gone", { status: 404 });
      return live;
    },
    request: async (request: ApiRequest) => {
      writes.push(request);
      return answer(request);
    },
    delete: async (...[, , preconditions]: Parameters<ClusterClient["delete"]>) => {
      deletes.push(preconditions ?? {});
      return true;
    },
  } as unknown as ClusterClient;
  const stores = {
    toolGrants: new Store<ClusterToolGrant>(grantIndexes),
    workloads: new Store<ClusterWorkload>(),
    namespaces: new Store<ClusterObject>(),
  };
  stores.namespaces.apply({ metadata: { name: "agents", ...(ending ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) } });
  if (exists) stores.workloads.apply(workload);
  if (seen) stores.toolGrants.apply(seen);
  const reconcile = draftReconciler({
    stores,
    components,
    listings: new ToolListings(),
    client,
    applier: new Applier({ client, fieldManager: "ambit-toolgrant" }),
    events: { record: () => {} },
  });
  for (let i = 0; i < times; i++) await reconcile({ namespace: "agents", name: "github" }, new AbortController().signal);
  return { writes, deletes, reads: () => reads };
};

const sentIn = (request: ApiRequest | undefined): ClusterToolGrant => {
  assert.ok(request?.body);
  return request.body as ClusterToolGrant;
};

test("a draft is renewed only in the version that was found to be ours alone", async () => {
  const { writes } = await looking({ seen: draft("Old."), live: draft("Old.") });
  const [write] = writes;
  assert.equal(writes.length, 1);
  assert.equal(write?.query?.force, undefined, "nobody's field is taken");
  const { metadata, spec } = sentIn(write);
  assert.deepEqual([metadata.uid, metadata.resourceVersion], ["u", "7"]);
  assert.equal(spec.declaration.description, "New.");
});

test("a person's write between looking and renewing wins", async () => {
  const conflict = new ApiError("Conflict", "it was modified", { status: 409 });
  const refusing = looking({ seen: draft("Old."), live: draft("Old.") }, () => {
    throw conflict;
  });
  await assert.rejects(refusing, conflict, "it is looked at again later");
});

test("a draft is swept only in the very version that was found to be ours alone", async () => {
  const { deletes } = await looking({ seen: draft("Old."), live: draft("Old."), exists: false });
  assert.deepEqual(deletes, [{ uid: "u", resourceVersion: "7" }]);
});

const others: Record<string, readonly ManagedFields[]> = {
  "a person edited": [...ours, { manager: "kubectl-edit", operation: "Update" }],
  "Git applied": [...ours, { manager: "argocd-controller", operation: "Apply" }],
  "somebody put a label on": [...ours, { manager: "kubectl-label", operation: "Update" }],
  "somebody cleared the managers of": [],
};

for (const [what, managedFields] of Object.entries(others)) {
  for (const exists of [true, false]) {
    test(`a draft that ${what} is neither written nor deleted ${exists ? "when its tool changes" : "when its Workload goes"}, and is asked for once`, async () => {
      const { writes, deletes, reads } = await looking({ seen: draft("Old."), live: draft("Old.", managedFields), exists, times: 3 });
      assert.deepEqual([writes, deletes], [[], []]);
      assert.equal(reads(), 1);
    });
  }
}

test("one that was made anew under the name since is left alone", async () => {
  const anew = draft("Old.");
  const live = { ...anew, metadata: { ...anew.metadata, uid: "other" } };
  const { writes, deletes } = await looking({ seen: draft("Old."), live, exists: false });
  assert.deepEqual([writes, deletes], [[], []]);
});

test("a draft is only ever made where there is nothing, and somebody who was faster keeps theirs", async () => {
  const { writes } = await looking({ seen: null, live: null }, () => {
    throw new ApiError("Conflict", "it is there", { status: 409 });
  });
  assert.equal(writes.length, 1);
  const { metadata, spec } = sentIn(writes[0]);
  assert.equal(metadata.resourceVersion, "1", "a version that no object has");
  assert.equal(spec.review, undefined);
  assert.equal(spec.subjects, undefined);
});

test("nothing is drafted in a namespace that ends", async () => {
  const { writes, deletes } = await looking({ seen: null, live: null, ending: true });
  assert.deepEqual([writes, deletes], [[], []]);
});
