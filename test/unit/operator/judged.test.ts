import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { WorkloadSpec } from "../../../src/api/generated/workload.ts";
import { Store } from "../../../src/kube/store.ts";
import { unjudgedGrants, workloadVersion } from "../../../src/operator/judged.ts";
import type { ClusterToolGrant } from "../../../src/operator/kinds.ts";
import { grantIndexes } from "../../../src/operator/toolgrant/indexes.ts";
import { grantOf } from "../grants/issues-tool.ts";
import { component, workload } from "./workload-world.ts";

const another: Record<string, { spec?: Partial<WorkloadSpec>; uid?: string; isAnother: boolean }> = {
  "further hosts": { spec: { components: [component({ localResources: { allowedHosts: ["a.example"] } })] }, isAnother: true },
  "a secret": {
    spec: { components: [component({ localResources: { environment: { secretFrom: [{ name: "token" }] } } })] },
    isAnother: true,
  },
  "an MCP server": {
    spec: { mcpServers: [{ name: "linear", limits: component().limits, remote: { url: "https://mcp.example.com" } }] },
    isAnother: true,
  },
  "another image": { spec: { components: [component({ image: "registry.test/other" })] }, isAnother: true },
  "another claim": { spec: { volumes: [{ name: "docs", persistentVolumeClaim: { claimName: "other" } }] }, isAnother: true },
  "the same spec under another uid": { uid: "another", isAnother: true },
  "more pods": { spec: { replicas: 5 }, isAnother: false },
  "a suspension": { spec: { suspend: true }, isAnother: false },
  "no drafts": { spec: { draftGrants: false }, isAnother: false },
};
for (const [what, { spec, uid = "uid-of-github", isAnother }] of Object.entries(another)) {
  test(`${what} ${isAnother ? "makes" : "does not make"} it another Workload to be judged by`, () => {
    const changed = workload(spec, { metadata: { ...workload().metadata, uid, generation: 4 } });
    assert.equal(workloadVersion(changed) !== workloadVersion(workload()), isAnother);
  });
}

test("with tags each generation is another, since a tag may mean something else by then", () => {
  const at = (generation: number) => workloadVersion(workload({ allowTags: true }, { metadata: { ...workload().metadata, generation } }));
  assert.notEqual(at(3), at(4));
});

describe("live grants that were judged by another Workload", () => {
  const of = workload();
  const counted: Record<string, { status: ClusterToolGrant["status"]; count: number }> = {
    "count when they are live": {
      status: { phase: "Active", observed: { digest: "v1:sha256:0", workload: "uid-of-github/before" } },
      count: 1,
    },
    "count when nothing says what they were judged by": { status: { phase: "Active" }, count: 1 },
    "don't count when they were judged by this one": {
      status: { phase: "Active", observed: { digest: "v1:sha256:0", workload: workloadVersion(of) } },
      count: 0,
    },
    "don't count when they are not live": { status: { phase: "Drifted" }, count: 0 },
  };
  const tools = { "a component": grantOf().spec.tool, "an MCP server": { mcpServer: "linear", tool: "list_issues" } };
  for (const [whose, tool] of Object.entries(tools)) {
    for (const [sentence, { status, count }] of Object.entries(counted)) {
      test(`of ${whose} ${sentence}`, () => {
        const toolGrants = new Store<ClusterToolGrant>(grantIndexes);
        const spec = { ...grantOf().spec, tool: { ...tool, workload: "github" } };
        toolGrants.apply({ ...grantOf(), spec, ...(status ? { status } : {}) } as ClusterToolGrant);
        assert.equal(unjudgedGrants({ toolGrants }, of), count);
      });
    }
  }
});
