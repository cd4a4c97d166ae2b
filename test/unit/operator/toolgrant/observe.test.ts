import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256Of } from "../../../../src/api/digest.ts";
import { Stalled, Waiting } from "../../../../src/api/errors.ts";
import { definitionDigest, definitionText } from "../../../../src/grants/definition.ts";
import type { ComponentStore, StoredComponent } from "../../../../src/operator/component-store.ts";
import { workloadVersion } from "../../../../src/operator/judged.ts";
import type { ClusterToolGrant, ClusterWorkload, Pod } from "../../../../src/operator/kinds.ts";
import { podAnnotations } from "../../../../src/operator/names.ts";
import { ToolListings } from "../../../../src/operator/tool-listings.ts";
import { observeTool } from "../../../../src/operator/toolgrant/observe.ts";
import { code, grantOf, listIssues, reach } from "../../grants/issues-tool.ts";
import { ManualClock } from "../../kube/manual-clock.ts";

const workload = {
  metadata: { name: "github", namespace: "agents", uid: "w", generation: 2 },
  spec: { components: [{ name: "github", image: "i" }], draftGrants: true, allowTags: false, suspend: false },
} as unknown as ClusterWorkload;

const grantSeen = (observed: Partial<NonNullable<NonNullable<ClusterToolGrant["status"]>["observed"]>> = {}): ClusterToolGrant => {
  const fn = listIssues();
  const facts = { digest: definitionDigest(fn), text: definitionText(fn), component: code, reach, workload: workloadVersion(workload) };
  return { ...(grantOf() as ClusterToolGrant), status: { phase: "Active", observed: { ...facts, ...observed } } };
};

/** A registry that never answers, as the component store sees it: it waits for as long as it is let. */
const hanging: ComponentStore = {
  fetch: (_, __, signal) =>
    new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true })),
};

const observing = async (components: ComponentStore, grant: ClusterToolGrant) => {
  const clock = new ManualClock();
  const result = observeTool(
    { components, clock, listings: new ToolListings(), images: new Map() },
    grant,
    workload,
    { own: [], server: [] },
    new AbortController().signal,
  );
  clock.pass(1000);
  return result;
};

test("a registry that hangs is not waited for, and is asked again soon", async () => {
  const { observed, passing } = await observing(hanging, grantOf() as ClusterToolGrant);
  assert.deepEqual(observed.codes, []);
  assert.equal(observed.absent?.code, "Pulling");
  assert.equal(passing?.retryAfterMs, 1000);
});

test("what was observed of the same Workload still counts while its registry is away", async () => {
  const { observed, passing } = await observing(hanging, grantSeen());
  assert.deepEqual(
    observed.codes.map(({ digest, fn }) => [digest, fn && definitionDigest(fn)]),
    [[code, definitionDigest(listIssues())]],
  );
  assert.equal(passing?.code, "Pulling");
});

const otherwise: Record<string, ClusterToolGrant> = {
  "of the Workload as it was before": grantSeen({ workload: "w/1" }),
  "of another Workload under its name": grantSeen({ workload: "v/2" }),
  "that does not fit its digest": grantSeen({ text: definitionText(listIssues({ docs: "Another." })) }),
  "that is no definition": grantSeen({ text: "{}", digest: `v1:${sha256Of("{}")}` }),
  "without code": grantSeen({ component: "any" }),
};

for (const [what, grant] of Object.entries(otherwise)) {
  test(`an observation ${what} counts for nothing`, async () => {
    const { observed } = await observing(hanging, grant);
    assert.deepEqual(observed.codes, []);
  });
}

test("what a person must mend is not passed over for what was observed before", async () => {
  const missing: ComponentStore = {
    fetch: async (): Promise<StoredComponent> => {
      throw new Stalled("ImageNotFound", "there is no such image");
    },
  };
  const { observed, passing } = await observing(missing, grantSeen());
  assert.deepEqual(observed.codes, []);
  assert.equal(observed.absent?.code, "ImageNotFound");
  assert.equal(passing, undefined);
});

test("code that ready pods run still counts while that which the Workload names is being pulled, and stands for no version of the Workload", async () => {
  const running: StoredComponent = {
    digest: code,
    resolved: "before",
    interface: { imports: [], exports: [], functions: [listIssues()], isAsynchronous: false, docs: { sources: [] } },
    bytes: async () => new Uint8Array(),
  };
  const pulling: ComponentStore = {
    fetch: async (_, { image }) => {
      if (image !== "before") throw new Waiting("Pulling", "it is being pulled", 1000);
      return running;
    },
  };
  const pod = {
    metadata: { name: "p", annotations: { [podAnnotations.delivered]: code } },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  } as unknown as Pod;
  const reader = { components: pulling, clock: new ManualClock(), listings: new ToolListings(), images: new Map([[code, "before"]]) };
  const widened = {
    ...workload,
    spec: { ...workload.spec, components: [{ name: "github", image: "i", localResources: { allowedHosts: ["example.com"] } }] },
  } as unknown as ClusterWorkload;
  const seen = await observeTool(reader, grantSeen({ workload: "w/1" }), widened, { own: [pod], server: [] }, new AbortController().signal);
  assert.deepEqual(
    seen.observed.codes.map(({ digest, fn, reach: now }) => [digest, fn && definitionDigest(fn), now.hosts]),
    [[code, definitionDigest(listIssues()), ["example.com"]]],
  );
  assert.equal(seen.workload, undefined);
  assert.equal(seen.passing?.code, "Pulling");
});
