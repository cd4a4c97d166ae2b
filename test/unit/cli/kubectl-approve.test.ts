import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { stringify } from "yaml";
import { kubectlProgram } from "../../../src/cli/kubectl-program.ts";
import { run } from "../../../src/cli/program.ts";
import { definitionDigest, definitionText } from "../../../src/grants/definition.ts";
import type { ClusterToolGrant } from "../../../src/operator/kinds.ts";
import { code, grantOf, listIssues, otherCode, reach } from "../grants/issues-tool.ts";
import { ScriptedServer, type SeenRequest } from "../kube/scripted-server.ts";

const seenGrant = (status: ClusterToolGrant["status"] = {}, spec: Partial<ClusterToolGrant["spec"]> = {}): ClusterToolGrant => {
  const fn = listIssues();
  const grant = grantOf(spec);
  return {
    ...grant,
    metadata: { ...grant.metadata, generation: 3, resourceVersion: "77", uid: "u" },
    status: {
      phase: "Draft",
      observedGeneration: 3,
      observed: { digest: definitionDigest(fn), text: definitionText(fn), component: code, reach },
      ...status,
    },
  };
};

const conflict = { kind: "Status", reason: "Conflict", message: "the object has been modified", code: 409 };

/** Approves a grant at an API server on which, as often as `changes` has members, it becomes another while it is shown. */
const approving = async (grant: ClusterToolGrant, changes: readonly ClusterToolGrant[] = []) => {
  const versions = [grant, ...changes];
  await using server = await ScriptedServer.start(({ method, path, body }) => {
    if (path.endsWith("selfsubjectreviews")) return { json: { status: { userInfo: { username: "ada" } } } };
    if (method === "GET") return { json: versions[0] };
    if (versions.length > 1) versions.shift();
    return JSON.parse(body).metadata.resourceVersion === versions[0]?.metadata.resourceVersion ? {} : { status: 409, json: conflict };
  });
  const folder = await mkdtemp(join(tmpdir(), "ambit-approve-"));
  const kubeconfig = join(folder, "kubeconfig");
  await writeFile(
    kubeconfig,
    stringify({
      clusters: [{ name: "c", cluster: { server: server.url.origin, "insecure-skip-tls-verify": true } }],
      users: [{ name: "u", user: {} }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u", namespace: "agents" } }],
      "current-context": "x",
    }),
  );
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
    now: () => Date.UTC(2026, 0, 1),
  };
  try {
    const exit = await run(["approve", grant.metadata.name, "--yes", "--kubeconfig", kubeconfig], terminal, kubectlProgram);
    const writes: readonly SeenRequest[] = server.seen.filter(({ method }) => method === "PUT");
    return { exit, out, err, writes };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

test("an approval goes out with the resource version that was shown, the reviewer's name as the server says it, and no status", async () => {
  const { exit, writes, err } = await approving(seenGrant());
  assert.equal(exit, 0, err);
  const [sent] = writes;
  assert.equal(sent?.path, "/apis/ambit.dev/v1alpha1/namespaces/agents/toolgrants/github-list-issues");
  assert.equal(sent?.query.get("fieldManager"), "ambit-approve");
  const body = JSON.parse(sent?.body ?? "");
  assert.equal(body.metadata.resourceVersion, "77");
  assert.equal(body.status, undefined);
  assert.equal(body.spec.review.reviewer, "ada");
  assert.equal(body.spec.review.definition, definitionDigest(listIssues()));
  assert.deepEqual(body.spec.review.reach, reach);
});

const later = (grant: ClusterToolGrant): ClusterToolGrant => ({ ...grant, metadata: { ...grant.metadata, resourceVersion: "78" } });

test("a grant of which the operator says something else meanwhile is still what was shown, and is approved", async () => {
  const conditions = [{ type: "Ready", status: "False", lastTransitionTime: "", reason: "NoReview", message: "m" }] as const;
  const { exit, err, writes } = await approving(seenGrant(), [later(seenGrant({ conditions }))]);
  assert.equal(exit, 0, err);
  assert.deepEqual(
    writes.map(({ body }) => JSON.parse(body).metadata.resourceVersion),
    ["77", "78"],
  );
});

const observed = { digest: definitionDigest(listIssues()), text: definitionText(listIssues()), component: code, reach };
const changes: Record<string, ClusterToolGrant> = {
  "whose description was edited": later(seenGrant({}, { declaration: { ...grantOf().spec.declaration, description: "Something else." } })),
  "whose tool may touch more": later(seenGrant({ observed: { ...observed, reach: { ...reach, hosts: ["example.com"] } } })),
  "whose code is another": later(seenGrant({ observed: { ...observed, component: otherCode } })),
  "that was made anew under its name": (({ metadata, ...rest }) => ({ ...rest, metadata: { ...metadata, uid: "other" } }))(
    later(seenGrant()),
  ),
};

for (const [sentence, change] of Object.entries(changes)) {
  test(`a grant ${sentence} since it was shown is not approved, and the reviewer is told so`, async () => {
    const { exit, err, out, writes } = await approving(seenGrant(), [change]);
    assert.equal(exit, 1);
    assert.match(err, /GrantChanged/);
    assert.equal(out, "", "nothing to commit is printed");
    assert.equal(writes.length, 1, "what was shown was sent, and nothing else");
  });
}

const unapprovable: Record<string, { grant: ClusterToolGrant; exit: number; says: RegExp }> = {
  "a spec that the operator has not looked at": { grant: seenGrant({ observedGeneration: 2 }), exit: 1, says: /NotObserved/ },
  "a tool that nothing was observed of": {
    grant: seenGrant({
      observed: { digest: definitionDigest(listIssues()) },
      conditions: [
        { type: "Ready", status: "False", lastTransitionTime: "", reason: "WorkloadMissing", message: "there is no Workload github" },
      ],
    }),
    exit: 1,
    says: /NotObserved.*WorkloadMissing: there is no Workload github/,
  },
  "a status whose definition is not that of its digest": {
    grant: seenGrant({
      observed: { digest: definitionDigest(listIssues()), text: definitionText(listIssues({ docs: "Another." })), component: code, reach },
    }),
    exit: 2,
    says: /StatusMalformed/,
  },
  "a description with a hidden character": {
    grant: seenGrant({}, { declaration: { ...grantOf().spec.declaration, description: "List\u200b the issues." } }),
    exit: 1,
    says: /HiddenCharacters.*U\+200B/,
  },
};

for (const [sentence, { grant, exit, says }] of Object.entries(unapprovable)) {
  test(`${sentence} is not approved, and nothing is sent`, async () => {
    const result = await approving(grant);
    assert.equal(result.exit, exit, result.err);
    assert.match(result.err, says);
    assert.deepEqual(result.writes, []);
  });
}
